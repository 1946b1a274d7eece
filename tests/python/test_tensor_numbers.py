"""Numbers that a dtype does not hold are refused, as in NumPy 2, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes

LARGE = 2**40
BYTE = "is not a value of uint8, which holds 0 to 255"


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Tensor.full((2,), LARGE), r"\[full\] 1099511627776 is not a value of int32"),
    (lambda: Tensor([1]).full_like(LARGE), r"\[full\] 1099511627776 is not a value of int32"),
    (lambda: Tensor(LARGE), r"\[tensor\] 1099511627776 is not a value of int32"),
    (lambda: Tensor(300, dtype="uint8"), rf"\[tensor\] 300 {BYTE}"),
    (lambda: Tensor([1, 300], dtype="uint8"), r"\[tensor\] 300 is not a value of uint8"),
    (lambda: Tensor([1.5, 256.0], dtype="uint8"), r"\[tensor\] 256.0 is not a value of uint8"),
    (lambda: Tensor([float("nan")], dtype="int64"), r"\[tensor\] nan is not a value of int64"),
    (lambda: Tensor([2.0**63], dtype="int64"), r"\[tensor\] 9.2\S* is not a value of int64"),
    (lambda: Tensor([1], dtype="uint8") + 300, rf"\[ADD\] 300 {BYTE}"),
    (lambda: -1 + Tensor([1], dtype="uint8"), rf"\[ADD\] -1 {BYTE}"),
    (lambda: Tensor([1], dtype="uint8").clamp(0, 256), rf"\[clamp\] 256 {BYTE}"),
    (lambda: Tensor([True]).where(Tensor([1], dtype="uint8"), -1), rf"\[where\] -1 {BYTE}"),
    (lambda: Tensor.full((1,), float("inf"), dtype="int32"), r"\[full\] inf is not a value of int32"),
    (lambda: Tensor.arange(LARGE), r"\[arange\] 1099511627775 is not a value of int32"),
])
def test_refused(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(weft.DTypeError, match=message):
        call()


def test_writes_refused() -> None:
    a = Tensor([1, 2, 3], dtype="uint8")

    def iadd() -> None:
        nonlocal a
        a += 256

    for write in (lambda: a.assign(256), lambda: a.__setitem__(0, -1), iadd, lambda: a.__setitem__(slice(1, 2), [300]),
                  lambda: a[1:].assign(1e9)):
        with pytest.raises(weft.DTypeError, match="is not a value of uint8"):
            write()
    assert a.tolist() == [1, 2, 3]


def test_the_first_and_the_last_value() -> None:
    assert Tensor([255.9, -0.9], dtype="uint8").tolist() == [255, 0]
    assert Tensor([-(2.0**63)], dtype="int64").tolist() == [-(2**63)]
    assert Tensor([2.0**64 - 2048], dtype="uint64").tolist() == [2**64 - 2048]
    assert (Tensor([0], dtype="uint8") + 255).tolist() == [255]


def test_bool_and_floats_take_any_number() -> None:
    assert Tensor.full((1,), LARGE, dtype="bool").tolist() == [True]
    assert Tensor.full((1,), LARGE, dtype="float16").tolist() == [float("inf")]
    assert (Tensor([1]) / LARGE).dtype is not None
    a = Tensor([1.0, 2.0])
    a[0] = LARGE
    assert a.tolist() == [LARGE, 2.0]


@pytest.mark.parametrize("number", [-(2**40), -1, 0, 127, 128, 255, 256, 2**40])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_comparisons_take_any_number(number: int, dtype: str) -> None:
    a = np.array([0, 1, 127], dtype)
    t = Tensor(a)
    for got, expected in ((t < number, a < number), (t > number, a > number), (t <= number, a <= number),
                          (t >= number, a >= number), (t == number, a == number), (t != number, a != number),
                          (number < t, number < a), (number >= t, number >= a)):
        np.testing.assert_array_equal(got.numpy(), expected)
        assert got.dtype == dtypes.bool
