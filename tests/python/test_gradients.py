"""Gradients: each use differentiates the version that it read, through views, writes and realised values."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, no_grad


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def grad(x: Tensor) -> Any:
    assert x.grad is not None
    return x.grad.tolist()


def test_equal_expressions_are_two_values() -> None:
    x = Tensor([1.0, 2.0])
    a, b = x * 2, x * 2
    assert (a * 3 + b * 5).sum().gradient(a)[0].tolist() == [3, 3]
    assert (a * 3 + b * 5).sum().gradient(a, b, x)[2].tolist() == [16, 16]


def test_item_before_backward() -> None:
    x = leaf(1.0, 2.0, 3.0)
    hidden = (x * x).exp()
    loss = (hidden.sin() / hidden).sum()
    loss.item()
    loss.backward()
    e = np.exp(np.array([1.0, 4.0, 9.0]))
    expected = (np.cos(e) - np.sin(e) / e) * 2 * np.array([1, 2, 3])
    np.testing.assert_allclose(grad(x), expected, 2e-4)
    with pytest.raises(weft.Error, match="requires a gradient"):
        Tensor([1.0], requires_grad=False).backward()


def test_backward_adds_up() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    seen = x.grad
    (x * 3).sum().backward()
    assert grad(x) == [5, 7] and seen is not None and seen.tolist() == [5, 7]
    x.grad = None
    assert x.grad is None
    (x * 3).sum().backward()
    assert grad(x) == [3, 3]


# ---- writes

def overwritten(x: Tensor) -> Tensor:
    y = x * x
    y[0] = 10.0
    return y.sum()


def updated_slices(x: Tensor) -> Tensor:
    y = x * 1
    y[1:] += y[:-1] * 2
    y[:2] *= y[1:3]
    return (y * y).sum()


def through_views(x: Tensor) -> Tensor:
    y = (x * 1).reshape(2, 2)
    y.T[0] = y.T[1] * 3
    return (y * y).sum()


def overlapping(x: Tensor) -> Tensor:
    y = Tensor.zeros(6)
    y[0:4] = x
    y[2:6] = x * 2
    return (y * y).sum()


def read_before(x: Tensor) -> Tensor:
    y = x * 2
    square = y * y
    y[:] = 0.0
    return square.sum() + y.sum()


def read_between(x: Tensor) -> Tensor:
    y = x * 2
    total = y.sum() * 0
    for i in range(3):
        total = total + (y * y).sum()
        y[i] = y[i + 1] * y[i]
    return total


def last_of_overlap(x: Tensor) -> Tensor:
    y = Tensor.zeros(4)
    y.as_strided((3, 2), (1, 1)).assign(x[:2].reshape(1, 2).expand(3, 2) * Tensor([[1.0], [2.0], [3.0]]))
    return (y * y).sum()


PROGRAMS: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "overwritten": (overwritten, [0, 4, 6, 8]),
    "read_before": (read_before, [8, 16, 24, 32]),
    "through_views": (through_views, [0, 40, 0, 80]),
    "overlapping": (overlapping, [10, 20, 24, 32]),
    # memory: x0, 2*x0, 3*x0, 3*x1
    "last_of_overlap": (last_of_overlap, [2 * 14 * 1, 2 * 9 * 2, 0, 0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("realize", [False, True])
def test_writes(name: str, realize: bool) -> None:
    program, expected = PROGRAMS[name]
    x = leaf(1.0, 2.0, 3.0, 4.0)
    loss = program(x)
    if realize:
        loss.realize()
    loss.backward()
    assert grad(x) == expected


@pytest.mark.parametrize("program", [updated_slices, read_between])
def test_against_differences(program: Callable[[Tensor], Tensor]) -> None:
    at = np.array([1.0, 2.0, 0.5, 1.5])
    x = Tensor(at, requires_grad=True)
    program(x).backward()
    for i in range(4):
        step = np.eye(4)[i] * 1e-6
        slope = (program(Tensor(at + step)).item() - program(Tensor(at - step)).item()) / 2e-6
        assert grad(x)[i] == pytest.approx(slope, rel=1e-6)


def test_write_to_a_realised_leaf() -> None:
    x = leaf(1.0, 2.0, 3.0)
    x.realize()
    y = leaf(5.0)
    before = (x * x).sum()
    x[0] = y[0] * 2
    after = (x * x).sum()
    after.item()
    (before + after).backward()
    assert grad(x) == [2, 8, 12] and grad(y) == [40]
    assert x.tolist() == [10, 2, 3]


# ---- what passes nothing

def test_no_grad() -> None:
    x = leaf(1.0, 2.0)
    with no_grad():
        y = x * 2
        with weft.enable_grad():
            z = x * 3
    assert not y.requires_grad and z.requires_grad
    (y * z).sum().backward()
    assert grad(x) == [6, 12]

    @no_grad()
    def f() -> Tensor:
        return x * 2

    assert not f().requires_grad and (x * 2).requires_grad


def test_detach_shares_memory() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    d = y.detach()
    d[0] = 7.0
    assert y.tolist() == [7, 6] and not d.requires_grad and not d[0].requires_grad
    (y * d).sum().backward()
    assert grad(x) == [21, 18]  # the write did not hide where y came from
    with pytest.raises(weft.Error, match="clone"):
        d.requires_grad_()


def test_writes_without_gradients_pass_the_old_one_on() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    with no_grad():
        y[0:2] = 5
        y.assign(y * 10)
    (y[0:2] * 3).sum().backward()
    assert y.tolist() == [50, 50, 60] and grad(x) == [6, 6, 0]


def test_clones_and_copies_have_gradients_of_their_own() -> None:
    x = leaf(1.0, 2.0)
    a = x * 2
    b = a.clone()
    c = Tensor.zeros(2)
    c.assign(a)
    loss = (a * 3 + b * 5 + c * 7).sum()
    by = loss.gradient(a, b, c, x)
    assert [g.tolist() for g in by] == [[15, 15], [5, 5], [7, 7], [30, 30]]
    with no_grad():
        d = a.clone()
    assert not d.requires_grad


def test_gradient_of_a_view_is_a_view_of_the_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    (x[1:3] * x[1:3]).sum().backward()
    assert x[1:3].grad is not None and x[1:3].grad.tolist() == [4, 6]
    assert x.detach().grad is None


# ---- higher orders

def test_third_derivative() -> None:
    x = Tensor([2.0], requires_grad=True)
    y = x
    for expected in (5 * 2**4, 20 * 2**3, 60 * 2**2):
        y = (x * x * x * x * x if y is x else y).sum().gradient(x)[0]
        assert y.tolist() == [expected]


def test_weights() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(Tensor([1.0, 10.0]))
    assert grad(x) == [2, 40]
    with pytest.raises(weft.ShapeError, match="not one"):
        (x * x).backward()
    with pytest.raises(weft.ShapeError, match="is given for"):
        (x * x).backward(Tensor([1.0]))


def test_bad_input() -> None:
    with pytest.raises(weft.DTypeError, match="only floats"):
        Tensor([1, 2]).requires_grad_()
    x, y = Tensor([1.0]), Tensor([2.0])
    with pytest.raises(weft.Error, match="target 1 is not among"):
        (x * x).gradient(x, y)
    with pytest.raises(weft.Error, match="detach it"):
        (leaf(1.0) * 2).requires_grad = False
    with pytest.raises(weft.ShapeError, match=r"\[grad\]"):
        leaf(1.0).grad = Tensor([1.0, 2.0])
    with pytest.raises(weft.Error, match="not for this one"):
        Tensor([1.0], requires_grad=False).grad = Tensor([1.0])


def test_nothing_said_about_gradients() -> None:
    x, constant, used = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=False), Tensor([2, 3])
    assert (x.requires_grad, constant.requires_grad, used.requires_grad) == (None, False, False)
    assert ((x * 2).requires_grad, x.detach().requires_grad, Tensor.zeros(2, requires_grad=None).requires_grad) == (
        None, False, None)
    y = x * constant * used
    y.sum().backward()
    y = x * x
    y.sum().backward()
    assert grad(x) == [6 + 2, 12 + 4] and constant.grad is None and used.grad is None
    w = leaf(1.0, 1.0)  # where something requires a gradient, what nothing was said about does not
    x.grad = None
    (x * w).sum().backward()
    assert x.grad is None and grad(w) == [1, 2]
    with pytest.raises(weft.Error, match="requires a gradient"):
        (constant * 2).sum().backward()
    x.requires_grad_(None)
    assert x.requires_grad is None
    x.requires_grad = False
    with pytest.raises(weft.Error, match="requires a gradient"):
        (x * 2).sum().backward()
    x.requires_grad = True
    (x * 2).sum().backward()
    assert grad(x) == [2, 2]


def test_sine_and_cosine_of_one_number_in_one_kernel() -> None:
    at = np.array([0.5, 1e30, -2.0, 1e6])
    for device in ("CPU:C", "CPU:LLVM"):
        x = Tensor(at, device=device)
        np.testing.assert_allclose((x.sin() + 2 * x.cos()).numpy(), np.sin(at) + 2 * np.cos(at), 1e-9)


# ---- memory

def test_steps_hold_no_more_than_the_first() -> None:
    w = Tensor(np.ones(8, np.float32), requires_grad=True)
    momentum = Tensor.zeros(8)

    def step() -> None:
        w.grad = None
        ((w - 3.0) * (w - 3.0)).sum().backward()
        assert w.grad is not None
        with no_grad():
            momentum.assign(momentum * 0.5 + w.grad)
            w.assign(w - momentum * 0.1)
        Tensor.realize(w, momentum)

    for _ in range(3):
        step()
    gc.collect()
    before = weft.counters.live_values
    for _ in range(200):
        step()
    assert weft.counters.live_values == before


def test_what_gradients_do_not_read_is_freed() -> None:
    x = Tensor(np.ones(1 << 16, np.float32), requires_grad=True)
    y = x * 2  # reads nothing of x
    z = (y + 1).realize()
    before = weft.counters.live_bytes
    del y
    w = (z + 1).realize()
    del z
    assert weft.counters.live_bytes <= before + (1 << 18)
    w.sum().backward()
    assert grad(x)[:2] == [2, 2]


def test_made_with_gradients() -> None:
    made = [Tensor.zeros(2, requires_grad=True), Tensor.full((2,), 3.0, requires_grad=True),
            Tensor.randn(2, requires_grad=True), Tensor.uniform(2, low=1.0, requires_grad=True)]
    assert all(t.requires_grad and t.is_leaf for t in made)
    with pytest.raises(weft.DTypeError, match="only floats"):
        Tensor.zeros(2, dtype="int32", requires_grad=True)
