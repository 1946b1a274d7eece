"""Optimisers against PyTorch's, and against NumPy where it has none."""

import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, jit, nn
from weft.nn import optim
from weft.nn.state import get_state_dict, load_state_dict, safe_load, safe_save

SHAPES = [(3, 4), (3, 4), (5,), (), (2, 3, 2)]
MATRICES = [(4, 6), (6, 4), (4, 6), (5, 2, 3)]


class Rosters:
    """First values, and gradients of steps."""

    def __init__(self, shapes: list[tuple[int, ...]], steps: int = 10, dtype: Any = np.float32) -> None:
        rng = np.random.default_rng(0)
        self.first = [rng.normal(size=shape).astype(dtype) for shape in shapes]
        self.grads = [[rng.normal(size=shape).astype(dtype) for shape in shapes] for _ in range(steps)]

    def tensors(self) -> list[Tensor]:
        return [Tensor(value, requires_grad=True) for value in self.first]


def run(data: Rosters, make: Callable[[list[Tensor]], optim.Optimizer]) -> list[Any]:
    """The parameters after the steps."""
    tensors = data.tensors()
    optimizer = make(tensors)
    for grads in data.grads:
        for tensor, grad in zip(tensors, grads):
            tensor.grad = Tensor(grad)
        optimizer.step()
    assert all(tensor.is_realized() for tensor in get_state_dict(optimizer).values())
    return [tensor.numpy() for tensor in tensors]


SAME = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-4}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), SAME, ids=[f"{n}-{'-'.join(o)}" for n, o in SAME])
def test_pytorch_has_the_same(name: str, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    data = Rosters(SHAPES, dtype=dtype)
    theirs = [torch.tensor(value, requires_grad=True) for value in data.first]
    optimizer = getattr(torch.optim, name)(theirs, **{"lr": 0.001, **options})
    for grads in data.grads:
        for tensor, grad in zip(theirs, grads):
            tensor.grad = torch.tensor(grad)
        optimizer.step()
    mine = dict(options)
    if "betas" in mine:
        mine["b1"], mine["b2"] = mine.pop("betas")
    for value, expected in zip(run(data, lambda tensors: getattr(optim, name)(tensors, **mine)), theirs):
        np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-5 if dtype == "float32" else 1e-12,
                                   atol=1e-6 if dtype == "float32" else 1e-12)


def length(x: Any) -> float:
    return math.sqrt(float((x * x).sum()))


def lamb(data: Rosters, lr: float, b1: float, b2: float, eps: float, wd: float) -> list[Any]:
    out = []
    for i, first in enumerate(data.first):
        p, m, v = first.astype(np.float64), np.zeros(first.shape), np.zeros(first.shape)
        for t, grads in enumerate(data.grads, 1):
            g = grads[i].astype(np.float64)
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            update = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps) + wd * p
            p = p - lr * (length(p) / length(update) if length(p) and length(update) else 1.0) * update
        out.append(p)
    return out


def lars(data: Rosters, lr: float, momentum: float, wd: float, tcoef: float) -> list[Any]:
    out = []
    for i, first in enumerate(data.first):
        p, b = first.astype(np.float64), np.zeros(first.shape)
        for grads in data.grads:
            g = grads[i].astype(np.float64)
            trust = tcoef * length(p) / (length(g) + wd * length(p))
            b = momentum * b + lr * trust * (g + wd * p)
            p = p - b
        out.append(p)
    return out


def muon(data: Rosters, lr: float, momentum: float, wd: float, nesterov: bool) -> list[Any]:
    out = []
    for i, first in enumerate(data.first):
        p, b = first.astype(np.float64), np.zeros(first.shape)
        for grads in data.grads:
            g = grads[i].astype(np.float64)
            b = momentum * b + (1 - momentum) * g
            u = ((1 - momentum) * g + momentum * b if nesterov else b).reshape(len(p), -1)
            rows, columns = u.shape
            x = u.T if rows > columns else u
            x = x / (length(x) + 1e-7)
            for _ in range(5):
                a = x @ x.T
                x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
            u = (x.T if rows > columns else x).reshape(p.shape)
            p = p * (1 - lr * wd) - lr * math.sqrt(max(1, rows / columns)) * u
        out.append(p)
    return out


def test_lamb() -> None:
    data = Rosters(SHAPES)
    values = run(data, lambda tensors: optim.LAMB(tensors, 0.05, weight_decay=0.1))
    for value, expected in zip(values, lamb(data, 0.05, 0.9, 0.999, 1e-6, 0.1)):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_lars() -> None:
    data = Rosters(SHAPES)
    for value, expected in zip(run(data, lambda tensors: optim.LARS(tensors, 2.0)), lars(data, 2.0, 0.9, 1e-4, 0.001)):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nesterov", [True, False])
def test_muon(nesterov: bool) -> None:
    data = Rosters(MATRICES)
    values = run(data, lambda tensors: optim.Muon(tensors, 0.05, nesterov=nesterov))
    for value, expected in zip(values, muon(data, 0.05, 0.95, 0.1, nesterov)):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)


def test_muon_is_near_that_of_pytorch() -> None:
    """PyTorch's iteration is in bfloat16."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("PyTorch has no Muon yet")
    data = Rosters(MATRICES[:3])
    theirs = [torch.tensor(value, requires_grad=True) for value in data.first]
    optimizer = torch.optim.Muon(theirs, lr=0.05)
    for grads in data.grads:
        for tensor, grad in zip(theirs, grads):
            tensor.grad = torch.tensor(grad)
        optimizer.step()
    for value, expected in zip(run(data, lambda tensors: optim.Muon(tensors, 0.05)), theirs):
        np.testing.assert_allclose(value, expected.detach().numpy(), atol=0.02)


def test_momentum_with_the_rate_in_it() -> None:
    data = Rosters([(3,)])
    values = run(data, lambda tensors: optim.SGD(tensors, 0.1, momentum=0.9, classic=True))
    other = run(data, lambda tensors: optim.SGD(tensors, 0.1, momentum=0.9))
    np.testing.assert_allclose(values[0], other[0], rtol=1e-5)


# -------------------------------------------------------------------------------------- their costs


def one(value: float = 1.0, **options: Any) -> tuple[Tensor, optim.Optimizer]:
    tensor = Tensor([value], requires_grad=True)
    return tensor, optim.SGD([tensor], **options)


def test_kernels_of_a_step() -> None:
    data = Rosters([(8, 8)] * 6 + [(8,)] * 6, steps=1)
    tensors = data.tensors()
    for make, most in ((optim.SGD, 2), (optim.Adam, 3)):
        optimizer = make(tensors)
        for tensor, grad in zip(tensors, data.grads[0]):
            tensor.grad = Tensor(grad)
        weft.counters.reset()
        optimizer.step()
        assert weft.counters.kernels <= most, make


def test_a_new_rate_compiles_nothing() -> None:
    tensor, optimizer = one(lr=0.5)
    for rate in (0.5, 0.25, 0.125):
        optimizer.lr.assign(rate)
        tensor.grad = Tensor([1.0])
        optimizer.step()
    assert tensor.tolist() == [1 - 0.875] and optimizer.lr.item() == 0.125


def test_steps_in_a_jit() -> None:
    weights = Tensor([4.0, -2.0], requires_grad=True)
    optimizer = optim.Adam([weights], lr=0.1)
    plain_weights = Tensor([4.0, -2.0], requires_grad=True)
    plain = optim.Adam([plain_weights], lr=0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (weights * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for i in range(6):
        x = Tensor([1.0, i])
        loss = step(x)
        plain.zero_grad()
        expected = (plain_weights * x).square().sum()
        expected.backward()
        plain.step()
        assert abs(loss.item() - expected.item()) < 1e-4
    np.testing.assert_allclose(weights.numpy(), plain_weights.numpy(), rtol=1e-6)


def test_memory_stays_flat() -> None:
    import resource

    tensors = [Tensor.ones(4).requires_grad_() for _ in range(3)]
    optimizer = optim.Adam(tensors)

    def steps(count: int) -> int:
        for _ in range(count):
            optimizer.zero_grad()
            sum((t * t).sum() for t in tensors).backward()
            optimizer.step()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    steps(50)
    before = steps(100)
    assert steps(300) - before < 2000  # KB


# ----------------------------------------------------------------------------------------- the rest


def test_state_dicts(tmp_path: pathlib.Path) -> None:
    data = Rosters(SHAPES, steps=4)
    straight = run(data, lambda tensors: optim.AdamW(tensors, 0.1))
    tensors = data.tensors()
    optimizer: optim.Optimizer = optim.AdamW(tensors, 0.1)
    for i, grads in enumerate(data.grads):
        if i == 2:
            safe_save(get_state_dict(optimizer), tmp_path / "x")
            tensors = [Tensor.zeros(*shape).requires_grad_() for shape in SHAPES]
            optimizer = optim.AdamW(tensors, 0.7)
            load_state_dict(optimizer, safe_load(tmp_path / "x"))
        for tensor, grad in zip(tensors, grads):
            tensor.grad = Tensor(grad)
        optimizer.step()
    for tensor, expected in zip(tensors, straight):
        assert tensor.tolist() == expected.tolist()


def test_parameters_without_a_gradient_are_left() -> None:
    used, unused, constant = (Tensor([1.0], requires_grad=flag) for flag in (True, True, False))
    optimizer = optim.Adam([used, unused, constant, used])
    assert (len(optimizer.params), len(optimizer.buffers)) == (2, 1)
    used.sum().backward()
    optimizer.step()
    assert used.item() < 1 and unused.item() == 1 and constant.item() == 1
    optimizer.zero_grad()
    assert used.grad is None
    optimizer.step()


def test_narrow_floats_have_wide_states() -> None:
    tensor = Tensor([1.0], dtype="bfloat16").clone()
    tensor.requires_grad = True
    optimizer = optim.Adam([tensor], lr=0.5)
    for _ in range(3):
        tensor.grad = Tensor([1.0], dtype="bfloat16")
        optimizer.step()
    assert tensor.dtype.name == "bfloat16" and tensor.tolist() == [-0.5] and optimizer.m[0].dtype.name == "float32"


def test_a_step_is_no_part_of_a_gradient() -> None:
    tensor, optimizer = one(3.0, lr=0.5)
    loss = (tensor * tensor).sum()
    loss.backward()
    optimizer.step()
    assert tensor.tolist() == [0] and tensor.requires_grad
    optimizer.zero_grad()
    (tensor * 2).sum().backward()
    assert tensor.grad is not None and tensor.grad.tolist() == [2] and loss.item() == 9


def test_an_optimiser_asks_for_gradients_where_nothing_was_said() -> None:
    a, b, c = Tensor([1.0]), Tensor([2.0]) * 2, Tensor([1.0], requires_grad=False)
    optimizer = optim.SGD([a, b, c, Tensor([1])], lr=0.5)
    assert [len(optimizer.params), len(optimizer.buffers)] == [2, 2] and a.requires_grad and b.requires_grad
    (a * b * c).sum().backward()
    optimizer.step()
    assert (a.tolist(), b.tolist(), c.tolist()) == ([-1.0], [3.5], [1.0])
    norm = nn.BatchNorm(2)
    assert [norm.running_mean.requires_grad, norm.running_var.requires_grad] == [False, False]


WRONG = [
    (lambda t: optim.SGD([t], lr=-1), ValueError, r"\[SGD\] a rate of -1; 0 or more"),
    (lambda t: optim.SGD([t], momentum=-0.1), ValueError, r"\[SGD\] a momentum of -0.1; 0 or more"),
    (lambda t: optim.AdamW([t], weight_decay=-1), ValueError, r"\[AdamW\] a weight decay of -1; 0 or more"),
    (lambda t: optim.SGD([]), ValueError, r"\[SGD\] no tensor with requires_grad"),
    (lambda t: optim.Adam([Tensor([1.0], requires_grad=False)]), ValueError, r"\[Adam\] no tensor with requires_grad"),
    (lambda t: optim.Adam([1.0]), TypeError, r"\[Adam\] a parameter is a Tensor, not a float"),
    (lambda t: optim.SGD([t], nesterov=True), ValueError, r"\[SGD\] nesterov needs a momentum"),
    (lambda t: optim.Muon([t]), weft.ShapeError, r"\[Muon\] a parameter of shape \(1,\); two axes"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_errors(call: Callable[[Tensor], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(Tensor([1.0], requires_grad=True))
