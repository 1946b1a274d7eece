"""Tensors without elements have gradients as other ones have, in the places where PyTorch gives one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft
from weft import Tensor, jit

SHAPES = [(0, 2), (2, 0), (0,), (3,), (2, 3), ()]

# Of leaves with the shapes above, and what is cat in the library at hand.
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, cat: x[0].exp().sum(),
    "part of a leaf": lambda x, cat: (x[3][:0] * 2).sum(),
    "both": lambda x, cat: x[0].sum() + x[3].sum(),
    "scalar": lambda x, cat: (x[0] * x[5]).sum(),
    "reshape": lambda x, cat: x[0].reshape(5, 0).sum(),
    "permute": lambda x, cat: (x[1].permute(1, 0) + x[0]).sum(),
    "expand": lambda x, cat: x[2].expand(4, 0).sum(),
    "product": lambda x, cat: x[0].prod() * x[3].sum(),
    "sum of an axis": lambda x, cat: (x[0].sum(0) * 3).sum(),
    "sum of the other axis": lambda x, cat: x[0].sum(1).sum(),
    "mean": lambda x, cat: x[2].mean() * 0 + x[3].sum(),
    "matmul over none": lambda x, cat: ((x[1] @ x[0]) + 1).exp().sum(),
    "matmul to none": lambda x, cat: (x[0] @ x[4]).sum(),
    "cat": lambda x, cat: (cat([x[2], x[3]]) ** 2).sum(),
    "cat of none": lambda x, cat: cat([x[2], x[3][1:1]]).sum(),
    "cat of many": lambda x, cat: (cat([x[2], x[3], x[2]] + [x[3] * k for k in range(20)]) ** 2).sum(),
    "maximum": lambda x, cat: x[0].maximum(x[5]).sum(),
    "fancy read": lambda x, cat: x[3][x[3] > 100].sum(),
    "twice": lambda x, cat: x[0].sum() + (x[0] * x[0]).sum() + x[1].sum(),
}


def leaves() -> tuple[list[Tensor], list[torch.Tensor]]:
    arrays = [np.arange(int(np.prod(s)), dtype=np.float32).reshape(s) + 1 for s in SHAPES]
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    return ours, theirs


def check_grads(ours: list[Tensor], theirs: list[torch.Tensor]) -> None:
    for a, b, shape in zip(ours, theirs, SHAPES):
        assert (a.grad is None) == (b.grad is None), shape
        if a.grad is not None and b.grad is not None:
            assert a.grad.shape == shape
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("asked", [False, True], ids=["lazy", "asked first"])
def test_as_in_pytorch(name: str, asked: bool) -> None:
    ours, theirs = leaves()
    loss, expected = PROGRAMS[name](ours, Tensor.cat), PROGRAMS[name](theirs, torch.cat)
    assert loss.requires_grad
    if asked:
        np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-5)
    loss.backward()
    expected.backward()
    check_grads(ours, theirs)


def test_of_what_is_written_nowhere() -> None:
    ours, theirs = leaves()
    for x, zeros in ((ours, Tensor.zeros(3)), (theirs, torch.zeros(3))):
        y = zeros * 1
        y[:0] = x[2]
        y[1:] = x[3][1:]
        y[2:2] = x[5]
        y[[]] = x[2] * 2
        (y * 3).sum().backward()
    check_grads(ours, theirs)


def test_of_weights_given() -> None:
    x = Tensor.zeros(0, 2).clone()
    x.requires_grad = True
    x.exp().backward(Tensor.zeros(0, 2))
    assert x.grad is not None and x.grad.shape == (0, 2) and x.grad.dtype == weft.dtypes.float32


def test_adds_up() -> None:
    x = Tensor.zeros(0, 2, requires_grad=True)
    for _ in range(3):
        x.sum().backward()
    assert x.grad is not None and x.grad.tolist() == []


def test_of_targets_that_require_none() -> None:
    x, w = Tensor.zeros(0, 2), Tensor([1.0, 2.0])
    by_x, by_w = (x * w).sum().gradient(x, w)
    assert by_x.shape == (0, 2) and by_w.tolist() == [0, 0]


def test_twice() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    by, = (w[:0].sum() + (w * w * w).sum()).gradient(w)
    again, = by.sum().gradient(w)
    assert by.tolist() == [3, 12] and again.tolist() == [6, 12]


def test_detached_is_no_source() -> None:
    x = Tensor.zeros(0, 2, requires_grad=True)
    assert not x.detach().exp().requires_grad and not (x > 0).requires_grad
    with weft.no_grad():
        assert not x.exp().requires_grad
    with pytest.raises(weft.Error, match="requires a gradient"):
        x.detach().exp().sum().backward()


def test_of_a_function() -> None:
    @weft.function
    def double(x: Tensor) -> Tensor:
        return x * 2

    @double.backward
    def _(grad: Tensor, x: Tensor) -> Tensor:
        return grad * 2

    x = Tensor.zeros(0, 2, requires_grad=True)
    double(x).sum().backward()
    assert x.grad is not None and x.grad.shape == (0, 2)


def test_in_a_jit() -> None:
    w, x = Tensor([1.0, 2.0], requires_grad=True), Tensor.zeros(0, 2, requires_grad=True)

    @jit
    def step() -> Tensor:
        w.grad = x.grad = None
        loss = (x * w).sum() + (w * 3).sum()
        loss.backward()
        return loss

    for _ in range(4):
        assert step().item() == 9
        assert w.grad is not None and x.grad is not None
        assert w.grad.tolist() == [3, 3] and x.grad.shape == (0, 2)
