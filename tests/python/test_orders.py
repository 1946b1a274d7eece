"""Sorting and the first few in order, against PyTorch's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft
from weft import Tensor, jit

Array = np.ndarray[Any, Any]


def elements(kind: str, shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(len(kind) + sum(shape))
    x = (random.standard_normal(shape) * 100).astype("float32")
    if kind == "ties":
        return np.asarray(np.round(x / 50) + 0.0, "float32")
    if kind == "specials":
        x = np.where(random.random(shape) < 0.2, np.float32(-0.0), x)
        x = np.where(random.random(shape) < 0.1, np.float32(np.inf), x)
        return np.where(random.random(shape) < 0.1, np.float32(np.nan), x)
    return x > 0 if kind == "bool" else x.astype(kind)


def in_order(x: Array, axis: int, descending: bool) -> tuple[Array, Array]:
    values, places = torch.from_numpy(x).sort(dim=axis, descending=descending, stable=True)
    return values.numpy(), places.numpy()


KINDS = ["float32", "ties", "specials", "float64", "int32", "int64", "uint8", "int16", "bool"]


# Up to 16 elements are counted, more are sorted by digits; rows are lines of the last axis, or not.
@pytest.mark.parametrize("shape", [(1,), (16,), (17,), (100,), (3, 257), (2, 40, 3), (0, 70)])
@pytest.mark.parametrize("kind", KINDS)
def test_sorting_is_stable(kind: str, shape: tuple[int, ...]) -> None:
    x = elements(kind, shape)
    for axis in range(len(shape)):
        for descending in (False, True):
            values, places = Tensor(x).sort(axis, descending)
            expected = in_order(x, axis, descending)
            np.testing.assert_array_equal(values.numpy(), expected[0])
            np.testing.assert_array_equal(places.numpy(), expected[1])
            np.testing.assert_array_equal(Tensor(x).argsort(axis, descending).numpy(), expected[1])


@pytest.mark.parametrize(("shape", "k"), [((100,), 1), ((1000,), 3), ((3, 640), 10), ((2, 700, 2), 5), ((3, 65), 65),
                                          ((3, 65), 0), ((17,), 2), ((2, 16), 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_few(kind: str, shape: tuple[int, ...], k: int) -> None:
    x = elements(kind, shape)
    axis = int(np.argmax(shape))
    for largest in (False, True):
        values, places = Tensor(x).topk(k, axis, largest)
        expected = [np.take(e, range(k), axis) for e in in_order(x, axis, largest)]
        np.testing.assert_array_equal(values.numpy(), expected[0])
        np.testing.assert_array_equal(places.numpy(), expected[1])


@pytest.mark.parametrize("k", [3, 90])
def test_gradients_of_the_first_few(k: int) -> None:
    x, w = elements("float32", (4, 200)), elements("float32", (4, k))
    a, b = Tensor(x, requires_grad=True), torch.from_numpy(x).requires_grad_()
    ours = (a.topk(k)[0] * Tensor(w)).sum().gradient(a)[0]
    (theirs,) = torch.autograd.grad((b.topk(k)[0] * torch.from_numpy(w)).sum(), b)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_in_a_captured_function_and_by_the_reference() -> None:
    @jit
    def every_second(x: Tensor) -> Tensor:
        return (x * 2).sort(-1)[0][:, ::2] + 1

    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((5, 100)).astype("float32")
        np.testing.assert_array_equal(every_second(Tensor(x)).numpy(), np.sort(x * 2, -1)[:, ::2] + 1)
    weft.check(lambda t: t.sort(-1)[0] + 1, Tensor(x))
    weft.check(lambda t: t.topk(3)[0] + 1, Tensor(x))


def test_few_kernels() -> None:
    x = Tensor(elements("float32", (5, 1000))).realize()
    assert x.sort(-1)[0].kernel_count() <= 3
    assert x.topk(2)[0].kernel_count() <= 6
