"""Sums and products of floats round as the documentation says; NaN and infinity follow IEEE 754."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from weft import Tensor

DEVICES = ["CPU:LLVM", "CPU:C", "REF"]
FAST = ["CPU:LLVM", "CPU:C"]
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def numbers(kind: str, shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(1)
    if kind == "uniform":
        return random.uniform(0, 1, shape).astype(dtype)
    if kind == "normal":
        return random.standard_normal(shape).astype(dtype)
    return (random.standard_normal(shape) * 10.0 ** random.uniform(-8, 8, shape)).astype(dtype)  # "wide"


def exact_sum(x: Any) -> float:
    return math.fsum(x.astype(np.float64).ravel().tolist())


@pytest.mark.parametrize("device", FAST)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["uniform", "normal", "wide"])
def test_the_error_of_sums(device: str, dtype: str, kind: str) -> None:
    """Any order of n - 1 additions is within (n - 1) u sum|x| of the sum, to first order."""
    for n in [1, 2, 17, 1000, 65537]:
        x = numbers(kind, (n,), dtype)
        got = Tensor(x, device=device).sum().item()
        bound = n * UNIT[dtype] * 1.01 * exact_sum(np.abs(x))
        assert abs(got - exact_sum(x)) <= bound


@pytest.mark.parametrize("device", FAST)
def test_the_error_of_sums_by_rows_and_columns(device: str) -> None:
    x = numbers("normal", (123, 457), "float32")
    for axis in (0, 1):
        got = np.asarray(Tensor(x, device=device).sum(axis=axis).tolist(), np.float64)
        true = x.astype(np.float64).sum(axis=axis)
        bound = x.shape[axis] * UNIT["float32"] * 1.01 * np.abs(x).astype(np.float64).sum(axis=axis)
        assert (np.abs(got - true) <= bound).all()


@pytest.mark.parametrize("device", FAST)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1000, 1), (33, 129, 65), (64, 512, 48)])
def test_the_error_of_products(device: str, m: int, k: int, n: int) -> None:
    """|got - AB| is at most k u |A||B|: fused multiply-adds round once a term, others twice."""
    a, b = numbers("normal", (m, k), "float32"), numbers("normal", (k, n), "float32")
    got = np.asarray(Tensor(a, device=device).matmul(Tensor(b, device=device)).tolist(), np.float64)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = (k + 1) * UNIT["float32"] * 1.01 * (np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(got - wide_a @ wide_b) <= bound).all()


@pytest.mark.parametrize("device", FAST)
def test_elementwise_products_are_not_fused(device: str) -> None:
    a, b, c = (numbers("normal", (1000,), "float32") * s for s in (1, np.float32(1.1), np.float32(-1.3)))
    got = Tensor(a, device=device) * Tensor(b, device=device) + Tensor(c, device=device)
    assert (np.asarray(got.tolist(), np.float32) == a * b + c).all()


SPECIAL = [
    [1.0, math.nan, 2.0], [math.inf, 1.0, 2.0], [-math.inf, 1.0, 2.0], [math.inf, -math.inf, 0.0],
    [math.inf, math.nan, -math.inf], [-0.0, -0.0, -0.0], [3e38, 3e38, -3e38], [0.0, -0.0, 0.0],
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [3, 16, 37])
@pytest.mark.parametrize("values", SPECIAL, ids=str)
def test_special_values(device: str, size: int, values: list[float]) -> None:
    """At every place of a vector, and in its rest."""
    for at in {0, (size - 3) // 2, size - 3}:
        x = np.zeros(size, np.float32) if values[0] != 0 else np.full(size, values[0], np.float32)
        x[at:at + 3] = values
        t = Tensor(x, device=device)
        with np.errstate(all="ignore"):
            if not np.isfinite(x).all():  # what finite numbers that overflow give depends on their order
                assert same(t.sum().item(), x.sum())
                assert same((t * t).sum().item(), (x * x).sum())
            assert same(t.max().item(), x.max())
            assert same(t.min().item(), x.min())


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or a == b


@pytest.mark.parametrize("device", DEVICES)
def test_softmax(device: str) -> None:
    x = numbers("normal", (5, 37), "float32")
    x[1, 20] = math.nan
    x[2, 7] = math.inf
    x[3, :] = -math.inf
    x[4, 36] = -math.inf
    t = Tensor(x, device=device)
    e = (t - t.max(axis=1, keepdim=True)).exp()
    got = np.asarray((e / e.sum(axis=1, keepdim=True)).tolist())
    assert np.isnan(got[1:4]).all()
    wide = np.exp(x[[0, 4]].astype(np.float64) - x[[0, 4]].max(axis=1, keepdims=True))
    true = wide / wide.sum(axis=1, keepdims=True)
    assert np.abs(got[[0, 4]] - true).max() < 1e-6
    assert got[4, 36] == 0
