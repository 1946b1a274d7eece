"""Writes to a few places that a list of ints or a number in a tensor names: as NumPy's, and in a loop as cheap as through slices."""

from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor

S = slice(None)
KEYS: list[Any] = [
    [3], [-1], [1, 4], [4, 1], [0, 2, 4], [5, 3, 1], [0, 0], [2, 0, 5], [1, 1, 3], [5, -1, 0, 2], [0, 1, 2, 3, 4, 5],
    [3, 1, 4, 1, 5, 0, 2], (S, [2, 0]), (S, [0, 3, 1]), (..., [1, 3]), ([0, 5], None), (None, [4, 2, 3]), ([1, 2], slice(1, 4, 2)),
    (slice(4, 1, -1), [3, 0]), (S, None, [0, 2]), ([0, 2], ..., None), (slice(1, 3), ..., [1, 2, 0]),
]


def base() -> Any:
    return np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize("form", ["list", "tensor"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_as_numpy(key: Any, form: str) -> None:
    keys = key if isinstance(key, tuple) else (key,)
    ours_key = tuple(Tensor(k) if form == "tensor" and isinstance(k, list) else k for k in keys)
    shape = base()[keys].shape
    random = np.random.default_rng(0)
    for value in (7, random.normal(size=shape).astype(np.float32), np.float32([[9.0]]), random.normal(size=shape[-1:]).astype(np.float32)):
        expected, ours = base(), Tensor(base())
        expected[keys] = value
        ours[ours_key] = Tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("key", [[0, 1, 3], [3, 0, 2], [2, 1]], ids=str)
def test_of_a_view_of_itself(key: list[int]) -> None:
    expected, ours = base(), Tensor(base())
    expected[key] = expected[1:1 + len(key)].copy()
    ours[key] = ours[1:1 + len(key)]
    np.testing.assert_array_equal(ours.numpy(), expected)


def test_updates() -> None:
    expected, ours = base(), Tensor(base())
    for key in ([1, 4], [2, 0, 5], [3, 3]):
        expected[key] += 2
        ours[key] += 2
        expected[key] *= expected[0]
        ours[key] *= ours[0]
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("key", [[6], [0, -7], [0, 1, 9]], ids=str)
def test_out_of_range_changes_nothing(key: list[int]) -> None:
    x = Tensor(base())
    with pytest.raises(weft.IndexError, match=f"{key[-1]} is out of bounds of axis 0 with size 6"):
        x[key] = 1.0
    with pytest.raises(weft.ShapeError):
        x[[0, 1, 3]] = Tensor.zeros(2, 4)
    np.testing.assert_array_equal(x.numpy(), base())


def test_gradients() -> None:
    for key in ([1], [0, 2], [2, 0, 1], [1, 1, 0]):
        x, v = Tensor(base(), requires_grad=True), Tensor(np.ones((len(key), 4), np.float32), requires_grad=True)
        y = x * 2
        y[key] = v * 3
        (y * y).sum().backward()
        written = np.zeros((6, 4), bool)
        written[key] = True
        last = [i for i, k in enumerate(key) if k not in key[i + 1:]]
        by_v = np.zeros((len(key), 4), np.float32)
        by_v[last] = 18
        np.testing.assert_allclose(x.grad.numpy(), np.where(written, 0, base() * 8))
        np.testing.assert_allclose(v.grad.numpy(), by_v)


@pytest.mark.parametrize("places", [1, 2, 3, 4])
def test_a_loop_is_few_kernels(places: int) -> None:
    n = 500
    expected, ours = np.zeros(n, np.float32), Tensor.zeros(n).realize()
    for i in range(n):
        key = [(i * (2 * k + 1) + 3 * k) % n for k in range(places)]
        expected[key] = i
        ours[key] = i
    weft.counters.reset()
    ours.realize()
    assert weft.counters.kernels <= n // 20
    np.testing.assert_array_equal(ours.numpy(), expected)


def test_in_a_jit() -> None:
    x = Tensor.zeros(6).realize()

    @weft.jit
    def f(v: Tensor) -> Tensor:
        x[[1, 4]] = v
        x[[5, 0, 2]] += v
        return x * 2

    expected = np.zeros(6, np.float32)
    for i in range(4):
        result = f(Tensor([float(i)]))
        expected[[1, 4]] = i
        expected[[5, 0, 2]] += i
        np.testing.assert_array_equal(result.numpy(), expected * 2)


# ---------------------------------------------------------------------------------- tensors of no axes

NUMBER_KEYS: list[Any] = [np.int32(3), np.int64(-1), np.uint8(2), (np.int32(1), np.int64(3)), (S, np.int32(-2)), (np.int32(5), None, [0, 2]),
                          (np.int32(5), S, None), ([1, 4, 4], np.int32(2)), (..., np.int32(0)), (np.int16(4), [3, 1])]


@pytest.mark.parametrize("is_realized", [True, False], ids=["realised", "lazy"])
@pytest.mark.parametrize("key", NUMBER_KEYS, ids=str)
def test_a_tensor_of_no_axes_is_its_number(key: Any, is_realized: bool) -> None:
    keys = key if isinstance(key, tuple) else (key,)

    def made(k: Any) -> Any:
        if not isinstance(k, np.integer):
            return Tensor(k) if isinstance(k, list) else k
        numbers = Tensor(np.array([0, k])).realize()
        return numbers[1] if is_realized else (numbers * 1)[1]

    ours_key = tuple(made(k) for k in keys)
    expected, ours = base(), Tensor(base())
    before = ours[ours_key]
    expected_before = expected[keys].copy()
    expected[keys] = 50
    ours[ours_key] = 50
    expected[keys] = expected[keys] + 2
    ours[ours_key] += 2
    assert before.shape == expected_before.shape
    np.testing.assert_array_equal(before.numpy(), expected_before)  # a copy, not a view
    np.testing.assert_array_equal(ours.numpy(), expected)


@pytest.mark.parametrize("index", [np.int32(6), np.int64(-7), np.uint64(2**64 - 1)], ids=str)
def test_a_number_out_of_range_is_named(index: Any) -> None:
    x, i = Tensor(base()), Tensor(np.array(index)).realize()
    for call in (lambda: x[i], lambda: x.__setitem__(i, 1), lambda: x.__setitem__((i, slice(1)), Tensor([1.0]))):
        with pytest.raises(weft.IndexError, match=rf"^\[index\] {index} is out of bounds of axis 0 with size 6$"):
            call()
    np.testing.assert_array_equal(x.numpy(), base())


def test_a_loop_over_a_tensor_of_indices_is_one_kernel() -> None:
    n = 300
    order = np.random.default_rng(1).permutation(n)
    places, expected, ours = Tensor(order).realize(), np.zeros(n, np.float32), Tensor.zeros(n).realize()
    for k in range(n):
        ours[places[k]] = k
    expected[order] = np.arange(n)
    weft.counters.reset()
    ours.realize()
    assert weft.counters.kernels == 1
    np.testing.assert_array_equal(ours.numpy(), expected)


def test_a_number_that_a_jit_replays_with_another_one() -> None:
    x = Tensor.zeros(6).realize()

    @weft.jit
    def f(i: Tensor) -> Tensor:
        x[i] = x[i] + 1
        return x * 2

    expected = np.zeros(6, np.float32)
    for i in (3, 0, 3, 5, 2):
        result = f(Tensor(i))
        expected[i] += 1
        np.testing.assert_array_equal(result.numpy(), expected * 2)
