"""Kernels written on weft.ir, called on tensors: lazy, on the inputs of the call."""

from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, counters, custom_kernel, function, jit
from weft.ir import AxisType, Ops, UOp, dtypes

N = 4


def double(out: UOp, x: UOp) -> UOp:
    i = UOp.range(N, 0)
    return out.index(i).assign(x.index(i).load() * 2).end(i)


def sum_and_product(total: UOp, product: UOp, a: UOp, b: UOp) -> UOp:
    i = UOp.range(N, 0)
    x, y = a.index(i).load(), b.index(i).load()
    return UOp.sink(total.index(i).assign(x + y).end(i), product.index(i).assign(x * y).end(i))


def rows(out: UOp, x: UOp) -> UOp:
    i, r = UOp.range(3, 0), UOp.range(N, 1, AxisType.REDUCE)
    return out.index(i).assign(x.index(i * N + r).load().reduce(Ops.ADD, r)).end(i)


@pytest.fixture(params=["REF", "CPU"])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def of(values: Any, device: str) -> Tensor:
    return Tensor(np.asarray(values, np.float32), device=device)


def test_it_is_lazy_and_runs_once(device: str) -> None:
    x = of([1, 2, 3, 4], device) + 1
    counters.reset()
    y = custom_kernel(double, [((2, 2), dtypes.float32)], [x])
    z = y + 1
    assert counters.kernels == 0 and not y.is_realized() and y.device == device
    assert z.tolist() == [[5, 7], [9, 11]] and y.tolist() == [[4, 6], [8, 10]]
    assert counters.kernels <= 4


def test_inputs_are_those_of_the_call(device: str) -> None:
    x = of([1, 2, 3, 4], device)
    y = custom_kernel(double, [((4,), "float32")], [x])
    x.assign(0)
    x.realize()
    assert y.tolist() == [2, 4, 6, 8] and x.tolist() == [0, 0, 0, 0]


def test_outputs_can_be_written_and_seen_through_views(device: str) -> None:
    y = custom_kernel(double, [((4,), "float32")], [of([1, 2, 3, 4], device)])
    part = y[1:3]
    y[1] = 100
    assert part.tolist() == [100, 6] and y.tolist() == [2, 100, 6, 8]


def test_several_outputs_are_one_run(device: str) -> None:
    a, b = of([1, 2, 3, 4], device), of([5, 6, 7, 8], device)
    total, product = custom_kernel(sum_and_product, [((4,), "float32"), ((4,), "float32")], [a, b])
    counters.reset()
    assert product.tolist() == [5, 12, 21, 32] and counters.kernels == 1
    assert total.tolist() == [6, 8, 10, 12] and counters.kernels == 1


def test_an_output_that_nobody_wants(device: str) -> None:
    a = of([1, 2, 3, 4], device)
    total = custom_kernel(sum_and_product, [((4,), "float32"), ((4,), "float32")], [a, a])[0]
    assert (total * 2).sum().item() == 40


def test_inputs_of_any_layout(device: str) -> None:
    x = of(np.arange(12).reshape(4, 3), device)
    y = custom_kernel(rows, [((3,), "float32")], [x.T])
    assert y.tolist() == np.arange(12).reshape(4, 3).sum(0).tolist()


def test_kernels_of_kernels(device: str) -> None:
    x = of([1, 1, 1, 1], device)
    for _ in range(5):
        x = custom_kernel(double, [((4,), "float32")], [x * 1])
    assert x.tolist() == [32] * 4


def test_long_chains_are_freed() -> None:
    x = Tensor([1.0] * 4)
    for _ in range(5_000):
        x = custom_kernel(double, [((4,), "float32")], [x])
    del x


def test_without_inputs(device: str) -> None:
    def count(out: UOp) -> UOp:
        i = UOp.range(N, 0)
        return out.index(i).assign(i.cast(dtypes.int32)).end(i)

    assert custom_kernel(count, [(4, "int32")], device=device).tolist() == [0, 1, 2, 3]


def test_with_a_gradient(device: str) -> None:
    @function
    def doubled(x: Tensor) -> Tensor:
        return custom_kernel(double, [(x.shape, x.dtype)], [x])

    @doubled.backward
    def _(grad: Tensor, x: Tensor) -> Tensor:
        return custom_kernel(double, [(x.shape, x.dtype)], [grad])

    x = of([1, 2, 3, 4], device).requires_grad_()
    (doubled(x) * x).sum().backward()
    assert x.grad.tolist() == [4, 8, 12, 16]


def test_errors() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0])
    kind = [((4,), "float32")]

    def writes_input(out: UOp, x: UOp) -> UOp:
        i = UOp.range(N, 0)
        return x.index(i).assign(out.index(i).load()).end(i)

    with pytest.raises(weft.SpecError, match="memory 1 is an input"):
        custom_kernel(writes_input, kind, [x])
    with pytest.raises(weft.SpecError, match="no memory 7"):
        custom_kernel(lambda out, x: double(out, UOp.define_global(dtypes.float32, N, 7)), kind, [x])
    with pytest.raises(weft.SpecError):
        custom_kernel(lambda out, x: out, kind, [x])
    with pytest.raises(TypeError, match="a Tensor is needed, not list"):
        custom_kernel(double, kind, [[1.0]])  # type: ignore[list-item]
    with pytest.raises(weft.DeviceError):
        custom_kernel(double, kind, [x], device="NULL")

    @jit
    def captured(x: Tensor) -> Tensor:
        return custom_kernel(double, kind, [x])

    captured(x)
    with pytest.raises(weft.JitError, match="kernels of users"):
        captured(x)
