"""Classes and rows that do not exist: an error on device weft wherever there is one on the CPU, and no weight changes in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("weft.torch", reason="the build has no weft.torch", exc_type=ImportError)

import torch
import torch.nn.functional as F

X = torch.linspace(-1, 1, 12).reshape(3, 4)
Make = Callable[[list[int]], torch.Tensor]


def on_cpu(values: list[int]) -> torch.Tensor:
    return torch.tensor(values)


def at_hand(values: list[int]) -> torch.Tensor:
    return torch.tensor(values).to("weft")


def lazy(values: list[int]) -> torch.Tensor:
    return at_hand(values) + at_hand([0] * len(values))


def bag(mode: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda p, t: F.embedding_bag(t, p, torch.tensor([0, 1]).to(p.device), mode=mode)


FUNCTIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "cross_entropy": F.cross_entropy,
    "cross_entropy, smoothed": lambda p, t: F.cross_entropy(p, t, label_smoothing=0.1),
    "cross_entropy, none": lambda p, t: F.cross_entropy(p, t, reduction="none"),
    "cross_entropy, weights": lambda p, t: F.cross_entropy(p, t, weight=torch.ones(4).to(p.device)),
    "cross_entropy, ignoring": lambda p, t: F.cross_entropy(p, t, ignore_index=2, reduction="sum"),
    "cross_entropy of images": lambda p, t: F.cross_entropy(p.T.reshape(1, 4, 3, 1), t.reshape(1, 3, 1)),
    "nll_loss": F.nll_loss,
    "embedding": lambda p, t: F.embedding(t, p),
    "embedding, padded": lambda p, t: F.embedding(t, p, padding_idx=1),
    "embedding, by frequency": lambda p, t: F.embedding(t, p, scale_grad_by_freq=True),
    "embedding_bag, sum": bag("sum"), "embedding_bag, mean": bag("mean"), "embedding_bag, max": bag("max"),
    "gather": lambda p, t: p.gather(1, t[:, None]),
    "scatter": lambda p, t: p.scatter(1, t[:, None], 2.0),
    "index_select": lambda p, t: p.index_select(1, t),
    "index_add": lambda p, t: p.index_add(0, t, p),
    "index_copy": lambda p, t: p.index_copy(0, t, p),
    "rows": lambda p, t: p[t],
    "index_put": lambda p, t: p.index_put((t,), p.sum()),
    "index_put, added": lambda p, t: p.index_put((t,), p.sum(), accumulate=True),
    "take": lambda p, t: p.take(t * 4),
    "multi_margin": F.multi_margin_loss,
    "multilabel_margin": lambda p, t: F.multilabel_margin_loss(p, torch.stack([t, t, t, t], 1)),
    "one_hot": lambda p, t: F.one_hot(t, 4) * p,
    "max_unpool": lambda p, t: F.max_unpool2d(p[:, :1].T.reshape(1, 1, 3, 1), t.reshape(1, 1, 3, 1), (1, 1), output_size=(3, 1)),
}


def gradient(function: Callable[..., torch.Tensor], make: Make, values: list[int]) -> str | list[float]:
    """That by the first operand, where nobody reads what the function gives; or "an error"."""
    p = X.clone().to("cpu" if make is on_cpu else "weft").requires_grad_()
    try:
        function(p, make(values)).sum().backward()
        assert p.grad is not None
        return [round(g, 4) for g in p.grad.cpu().flatten().tolist()]
    except (IndexError, RuntimeError):
        return "an error"


@pytest.mark.parametrize("values", [[0, 9, 1], [0, -77, 1], [0, -1, 1], [2, 0, 1]])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_fail_where_those_of_the_cpu_do(name: str, values: list[int]) -> None:
    expected = gradient(FUNCTIONS[name], on_cpu, values)
    assert gradient(FUNCTIONS[name], at_hand, values) == gradient(FUNCTIONS[name], lazy, values) == expected


def test_where_the_classes_are_in_memory_the_call_says_so() -> None:
    with pytest.raises(IndexError, match="9 is out of bounds of axis 1 with size 4"):
        F.cross_entropy(X.to("weft"), at_hand([0, 9, 1]))
    with pytest.raises(IndexError, match="-1 is out of bounds of axis 0 with size 3"):
        F.embedding(at_hand([-1]), X.to("weft"))


OPTIMIZERS: dict[str, Callable[[list[torch.Tensor]], Any]] = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda ps: torch.optim.Adam(ps),
    "adamw, foreach": lambda ps: torch.optim.AdamW(ps, foreach=True),
    "adamw, fused": lambda ps: torch.optim.AdamW(ps, fused=True),
}


@pytest.mark.parametrize("make", [at_hand, lazy])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_of_a_failed_step_are_never_read_as_data(name: str, make: Make) -> None:
    w, b = torch.nn.Parameter(X.clone().to("weft")), torch.nn.Parameter(torch.ones(4).to("weft"))
    optimizer = OPTIMIZERS[name]([w, b])
    F.cross_entropy(w + b, make([0, 1, 2])).backward()
    optimizer.step()
    optimizer.zero_grad()
    before = w.detach().cpu().clone()
    loss = torch.zeros(())
    try:
        loss = F.cross_entropy(w + b, make([0, 9, 1]))
        loss.backward()
        optimizer.step()
    except IndexError:
        pass
    for read in (lambda: w.detach().cpu(), lambda: w.sum().item(), lambda: (w.detach() * 1).cpu()):
        if make is at_hand:  # the call was refused: nothing has changed
            read()
            assert torch.equal(w.detach().cpu(), before)
        else:
            with pytest.raises(IndexError, match="9 is out of bounds"):
                read()
    with torch.no_grad():
        w.copy_(before.to("weft"))
    assert torch.equal(w.detach().cpu(), before)
