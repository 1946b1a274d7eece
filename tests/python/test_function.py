"""weft.function: operations with a gradient of their own."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import weft
from weft import Saved, Tensor, check, counters, function, jit, no_grad


@function
def cube(x: Tensor) -> Tensor:
    return x * x * x


@cube.backward
def _(grad: Tensor, x: Tensor) -> Tensor:
    return grad * 3 * x * x


@function
def exp(x: Tensor) -> Saved:
    y = x.exp()
    return Saved(y, y)


@exp.backward
def _(grad: Tensor, y: Tensor) -> Tensor:
    return grad * y


@function
def mul_add(a: Tensor, k: float, b: Tensor, *, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    return a * b * scale, a * k + b


@mul_add.backward
def _(by_product: Tensor, by_sum: Tensor, a: Tensor, k: float, b: Tensor, *, scale: float = 1.0) -> list[Tensor]:
    return [by_product * b * scale + by_sum * k, by_product * a * scale + by_sum]


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def test_first_second_and_third_derivatives() -> None:
    x = leaf(2.0, -1.0)
    y = cube(x)
    assert y.tolist() == [8, -1] and y.requires_grad and not y.is_leaf
    first = y.sum().gradient(x)[0]
    second = first.sum().gradient(x)[0]
    third = second.sum().gradient(x)[0]
    assert (first.tolist(), second.tolist(), third.tolist()) == ([12, 3], [12, -6], [6, 6])


def test_by_the_result_again_and_again() -> None:
    x = leaf(0.5)
    y: Any = exp(x * 2)
    for k in range(4):
        np.testing.assert_allclose(y.item(), 2.0**k * np.exp(1.0), rtol=1e-5)
        y = y.gradient(x)[0]


def test_several_arguments_and_results() -> None:
    a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
    product, total = mul_add(a, 10.0, b, scale=2.0)
    assert (product.tolist(), total.tolist()) == ([20, 42], [25, 37])
    (product.sum() + 100 * total.sum()).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1010, 1014], [104, 106])
    a.grad = b.grad = None
    product.sum().backward()  # the other has no gradient: 0
    assert (a.grad.tolist(), b.grad.tolist()) == ([10, 14], [4, 6])


def test_functions_of_functions_meet_once() -> None:
    x = leaf(1.5)
    calls = []

    @function
    def double(x: Tensor) -> Tensor:
        return x * 2

    @double.backward
    def _(grad: Tensor, x: Tensor) -> Tensor:
        calls.append(1)
        return grad * 2

    h = double(x)
    y = cube(h) + h * double(h) + double(cube(h))
    y.sum().backward()
    # y = 8x^3 + 8x^2 + 16x^3
    np.testing.assert_allclose(x.grad.item(), 72 * 1.5**2 + 16 * 1.5)
    assert len(calls) == 3


def test_arguments_are_those_of_the_call() -> None:
    x = leaf(2.0, 3.0)
    h = x * 1
    y = cube(h)
    h[0] = 100
    y[1] = 0  # no gradient goes through this one
    y.sum().backward()
    assert x.grad.tolist() == [12, 0]


def test_what_was_computed_between_is_not_needed() -> None:
    x = leaf(2.0)
    y = cube(x).realize()
    assert y.item() == 8
    y.backward()
    assert x.grad.item() == 12


def test_no_gradient_where_none_is_asked_for() -> None:
    x = leaf(2.0)
    with no_grad():
        assert not cube(x).requires_grad
    assert not cube(Tensor([2.0])).requires_grad and not cube(x.detach()).requires_grad
    y = Tensor([2.0])
    with pytest.raises(weft.Error, match="not among what this was computed from"):
        cube(y).gradient(y)


def test_none_is_no_gradient() -> None:
    @function
    def first(a: Tensor, b: Tensor) -> Tensor:
        return a + b

    @first.backward
    def _(grad: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, None]:
        return grad, None

    a, b = leaf(1.0), leaf(2.0)
    first(a, b).backward()
    assert a.grad.item() == 1 and b.grad is None


def test_straight_through_and_integers() -> None:
    @function
    def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.round(), x.round().cast("int32")

    @rounded.backward
    def _(grad: Tensor, by_ints: Tensor, x: Tensor) -> Tensor:
        return grad

    x = leaf(1.4, 2.6)
    y, n = rounded(x)
    assert n.tolist() == [1, 3] and not n.requires_grad
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 6]


def test_in_a_jit() -> None:
    w = leaf(1.0, 2.0)

    @jit
    def step(x: Tensor) -> Tensor:
        w.grad = None
        loss = (cube(w) * x).sum()
        loss.backward()
        with no_grad():
            w.assign(w - 0.1 * w.grad)
        return loss

    u, losses = np.array([1.0, 2.0]), []
    for i in range(4):
        losses.append(step(Tensor([1.0, 0.5 + i])).item())
        x = np.array([1.0, 0.5 + i])
        np.testing.assert_allclose(losses[-1], (u**3 * x).sum(), rtol=1e-3)
        u = u - 0.1 * 3 * u**2 * x
    assert step.captures == 1
    np.testing.assert_allclose(w.numpy(), u, rtol=1e-3)


def test_checked() -> None:
    x = leaf(1.0, 2.0)

    def run() -> Tensor:
        loss = (exp(x) + cube(x)).sum()
        loss.backward()
        return loss

    check(run)


def test_what_a_function_holds_is_let_go() -> None:
    class Held:
        pass

    x = leaf(1.0)
    held = Held()
    gone = weakref.ref(held)

    @function
    def keeps(x: Tensor, what: Held) -> Tensor:
        return x * 1

    y = keeps(x, held)
    del held
    assert gone() is not None
    y.realize()
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_results_that_are_saved_are_no_cycle() -> None:
    gc.collect()
    before = counters.live_values
    x = leaf(1.0)
    y = exp(x)
    y.gradient(x)[0].gradient(x)[0].item()
    del x, y
    gc.collect()
    assert counters.live_values <= before


def test_long_chains_are_freed() -> None:
    x = leaf(1.0)
    y: Any = x
    for _ in range(20_000):
        y = cube(y)
    del y
    assert x.grad is None


def test_errors() -> None:
    @function
    def bare(x: Tensor) -> Tensor:
        return x * 2

    x = leaf(1.0, 2.0)
    y = bare(x).sum()
    with pytest.raises(weft.Error, match=r"bare has no gradient: give it one by @bare.backward"):
        y.backward()

    bare.backward(lambda grad, x: grad.sum())
    with pytest.raises(weft.ShapeError, match=r"gave \(\) on .* as the gradient by tensor 0, which is \(2\)"):
        y.backward()
    bare.backward(lambda grad, x: (grad, grad))
    with pytest.raises(weft.ShapeError, match="gave 2 gradients for 1 tensors"):
        y.backward()
    bare.backward(lambda grad, x: 3)
    with pytest.raises(TypeError, match="not int"):
        y.backward()
    bare.backward(lambda grad, x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert x.grad is None
    with pytest.raises(TypeError, match="a function is needed"):
        function(3)  # type: ignore[arg-type]


def test_methods() -> None:
    class Layer:
        def __init__(self) -> None:
            self.scale = 3.0

        @function
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.scale

        @__call__.backward
        def _(grad: Tensor, self: Any, x: Tensor) -> Tensor:
            return grad * self.scale

    x = leaf(1.0)
    Layer()(x).backward()
    assert x.grad.item() == 3
