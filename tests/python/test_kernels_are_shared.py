"""Kernels of one schedule that differ in their scalars alone are one, which reads them from a table."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Tensor, Variable, jit


def graphs(x: Tensor, *others: Tensor) -> tuple[int, int]:
    """The kernels that run, and how many different ones there are."""
    kernels = x.schedule(*others)
    return len(kernels), len({k.graph for k in kernels})


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "float16", "uint64"])
def test_chosen_places_in_a_loop(dtype: str) -> None:
    a, values = Tensor.zeros(30, dtype=dtype).realize(), np.zeros(30, dtype)
    for i in range(30):
        places = [(i * k + k * k) % 30 for k in (1, 7, 11, 13, 17)]
        a[places] = i * 3
        values[places] = i * 3
    calls, different = graphs(a)
    assert calls == 30 and different <= 4  # a number that is also in the kernel otherwise is no other number
    np.testing.assert_array_equal(a.numpy(), values)


def test_several_numbers_in_each() -> None:
    xs = [Tensor(np.arange(6, dtype="float32") + i).realize() for i in range(9)]
    ys = [x.reshape(2, 3).sum(axis=1) * (i + 1.25) + i * 3.5 for i, x in enumerate(xs)]
    for again in range(3):
        for i, y in enumerate(ys):
            expected = (np.arange(6) + i).reshape(2, 3).sum(axis=1) * (i + 1.25) + i * 3.5 + again
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
        ys = [y + 1 for y in ys]


def test_other_numbers_next_time() -> None:
    for start in (5.5, 9.25, 100.0):
        a, values = Tensor.zeros(20).realize(), np.zeros(20, "float32")
        for i in range(20):
            a[[i, i * 3 % 20]] = start + i * i
            values[[i, i * 3 % 20]] = start + i * i
        np.testing.assert_array_equal(a.numpy(), values)


def test_in_a_jit() -> None:
    @jit
    def write(a: Tensor) -> Tensor:
        b = a + 1
        for i in range(12):
            b[[i, i * 5 % 12]] = i * 2.5
        return b

    values = np.zeros(12, "float32")
    for i in range(12):
        values[[i, i * 5 % 12]] = i * 2.5
    for k in range(4):
        np.testing.assert_array_equal(write(Tensor.full((12,), float(k)).realize()).numpy(), values)


def test_beside_variables() -> None:
    size = Variable("size", 1, 20)
    x = Tensor(np.arange(20, dtype="float32")).realize()
    ys = [(x[:size.bind(7)] * (i + 2.5)).sum() for i in range(6)]
    ys[0].realize(*ys[1:])
    assert [y.item() for y in ys] == [21 * (i + 2.5) for i in range(6)]
