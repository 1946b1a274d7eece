"""Random basic indices read and write what NumPy's do, and share memory as its views do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor

SHAPES = [(), (1,), (0,), (7,), (3, 4), (2, 0, 3), (1, 5, 1), (2, 3, 4), (2, 1, 3, 2)]


def random_index(r: random.Random, shape: tuple[int, ...]) -> Any:
    key: list[Any] = []
    for n in shape[: r.randint(0, len(shape))]:
        kind = r.random()
        if kind < 0.3 and n:
            i = r.randint(-n, n - 1)
            key.append(r.choice([i, i, np.int64(i)]))
        elif kind < 0.4:
            key.append(slice(None))
        else:
            bounds = [r.choice([None, r.randint(-n - 2, n + 2)]) for _ in range(2)]
            key.append(slice(*bounds, r.choice([None, 1, 1, 2, 3, -1, -1, -2, -7])))
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        key.insert(r.randint(0, len(key)), None)
    if r.random() < 0.3:
        used = sum(k is not None for k in key)
        key.insert(r.randint(0, len(key)) if used == len(shape) else len(key), ...)
    return key[0] if len(key) == 1 and r.random() < 0.5 else tuple(key)


@pytest.mark.parametrize("shape", SHAPES)
def test_read(shape: tuple[int, ...]) -> None:
    r = random.Random(str(shape))
    array = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int32).reshape(shape)
    tensor = Tensor(array)
    for _ in range(60):
        key = random_index(r, shape)
        part = tensor[key]
        assert part.shares_memory_with(tensor)
        np.testing.assert_array_equal(part.numpy(), array[key], err_msg=str(key), strict=array[key].shape != ())
        assert part.shape == array[key].shape


@pytest.mark.parametrize("shape", SHAPES)
def test_read_of_a_read(shape: tuple[int, ...]) -> None:
    r = random.Random(f"again {shape}")
    array = np.arange(np.prod(shape, dtype=np.int64), dtype=np.float32).reshape(shape)
    for _ in range(40):
        tensor, part = Tensor(array) * 1, array
        for _ in range(3):
            key = random_index(r, part.shape)
            tensor, part = tensor[key], np.asarray(part[key])
        np.testing.assert_array_equal(tensor.numpy(), part)


@pytest.mark.parametrize("is_realised", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_write(shape: tuple[int, ...], is_realised: bool) -> None:
    r = random.Random(f"write {shape} {is_realised}")
    for round_ in range(15):
        array = np.arange(np.prod(shape, dtype=np.int64), dtype=np.float32).reshape(shape)
        tensor = Tensor(array) if is_realised else Tensor(array) + 0
        array = array.copy()
        for step in range(5):
            key = random_index(r, shape)
            sizes = array[key].shape
            value: Any = r.randint(100, 200)
            if r.random() < 0.6:
                keep = r.randint(0, len(sizes))
                sizes = tuple(1 if r.random() < 0.2 else n for n in sizes[keep:])
                value = (np.arange(np.prod(sizes, dtype=np.int64)) + 1000 * step).reshape(sizes).astype(np.float32)
            array[key] = value
            tensor[key] = Tensor(value) if isinstance(value, np.ndarray) and r.random() < 0.7 else value
        np.testing.assert_array_equal(tensor.numpy(), array, err_msg=f"{shape} {round_}")


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
def test_update(shape: tuple[int, ...]) -> None:
    r = random.Random(f"update {shape}")
    for _ in range(15):
        array = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int32).reshape(shape)
        tensor = Tensor(array)
        for step in range(4):
            key = random_index(r, shape)
            array[key] += step + 1
            tensor[key] += step + 1
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_values_are_cast_to_the_tensor() -> None:
    a = Tensor([1, 2, 3])
    a[0] = 7.9
    a[1:] = Tensor([2.5, -3.5])
    assert a.tolist() == [7, 2, -3] and a.dtype == weft.dtypes.int32
    a[:2] = [4, 5]
    a[2] = True
    assert a.tolist() == [4, 5, 1]


def test_bounds_of_any_size() -> None:
    a = Tensor.arange(5)
    assert a[-(2**70) : 2**70].tolist() == [0, 1, 2, 3, 4]
    assert a[2**70 :: -(2**63)].tolist() == [4] and a[:: 2**63].tolist() == [0] and a[2**40 :].shape == (0,)


def test_rows_are_iterated_over() -> None:
    a = Tensor.arange(6).reshape(3, 2)
    rows = list(a)
    assert len(rows) == len(a) == 3
    rows[1] += 10
    assert a.tolist() == [[0, 1], [12, 13], [4, 5]]
    x, y = a[0]
    assert (x.item(), y.item()) == (0, 1)


def test_an_update_of_a_part_is_one_write() -> None:
    a = Tensor.zeros(3)
    part = a[1]
    a[1] += 1
    part += 1
    assert a.tolist() == [0, 2, 0]


def test_a_part_of_a_part_that_is_alone_is_a_view() -> None:
    whole = Tensor([[1, 2], [3, 4]]) + 1
    part = whole[:, :1]
    del whole
    view = part[:, None, :1]
    view[:, 0] = 9
    assert part.tolist() == [[9], [9]] and part.shares_memory_with(view)
