"""Functions of reals to a few units in the last place, in float32 and float64, on the evaluator and compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import Tensor

mpmath = pytest.importorskip("mpmath")

MOST = 3.0  # units in the last place


def spread(low: float, high: float) -> Any:
    """Both signs, evenly in the exponent."""
    r = np.random.default_rng(1)
    return np.exp(r.uniform(math.log(low), math.log(high), 300)) * r.choice([-1.0, 1.0], 300)


def even(low: float, high: float) -> Any:
    return np.random.default_rng(2).uniform(low, high, 300)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sin": (mpmath.sin, even(-10, 10)),
    "tan": (mpmath.tan, even(-10, 10)),
    "asin": (mpmath.asin, np.concatenate([even(-1, 1), spread(1e-8, 1)])),
    "acos": (mpmath.acos, even(-1, 1)),
    "atan": (mpmath.atan, np.concatenate([even(-3, 3), spread(1e-8, 1e8)])),
    "sinh": (mpmath.sinh, np.concatenate([even(-3, 3), spread(1e-8, 88)])),
    "cosh": (mpmath.cosh, spread(1e-4, 88)),
    "tanh": (mpmath.tanh, np.concatenate([even(-3, 3), spread(1e-8, 20)])),
    "asinh": (mpmath.asinh, np.concatenate([even(-3, 3), spread(1e-8, 1e20)])),
    "acosh": (mpmath.acosh, 1 + np.abs(spread(1e-5, 1e20))),
    "atanh": (mpmath.atanh, np.concatenate([even(-0.999, 0.999), spread(1e-8, 0.99)])),
    "erf": (mpmath.erf, np.concatenate([even(-4, 4), spread(1e-8, 6)])),
    "expm1": (mpmath.expm1, np.concatenate([even(-3, 3), spread(1e-8, 80)])),
    "log1p": (mpmath.log1p, np.concatenate([even(-0.99, 3), np.abs(spread(1e-8, 1e20))])),
    "log10": (mpmath.log10, np.abs(spread(1e-20, 1e20))),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), even(-80, 80)),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), even(-80, 80)),
    "logsigmoid": (lambda x: -mpmath.log1p(mpmath.exp(-x)), even(-80, 80)),
}


@pytest.mark.parametrize("device", ["REF", "CPU"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_units_in_the_last_place(name: str, dtype: str, device: str) -> None:
    exact, points = FUNCTIONS[name]
    x = points.astype(dtype)
    y = getattr(Tensor(x, device=device), name)().numpy()
    assert y.dtype == dtype
    with mpmath.workdps(40):
        for a, b in zip(x, y, strict=True):
            right = exact(mpmath.mpf(float(a)))
            unit = float(np.abs(np.spacing(np.dtype(dtype).type(float(right)))))
            assert abs((mpmath.mpf(float(b)) - right) / unit) <= MOST, (a, b, right)


@pytest.mark.parametrize("device", ["REF", "CPU"])
def test_powers(device: str) -> None:
    r = np.random.default_rng(3)
    x, y = r.uniform(0.01, 20, 500).astype(np.float32), r.uniform(-20, 20, 500).astype(np.float32)
    power = (Tensor(x, device=device) ** Tensor(y, device=device)).numpy()
    np.testing.assert_array_max_ulp(power, (x.astype(np.float64) ** y.astype(np.float64)).astype(np.float32), 1)


@pytest.mark.parametrize("device", ["REF", "CPU"])
def test_powers_of_float64(device: str) -> None:
    """To a unit in the last place up to the largest results; those that are numbers are exact."""
    r = np.random.default_rng(4)
    x = np.concatenate([np.exp(r.uniform(-300, 300, 500)), r.uniform(0.5, 2, 500), 1 + r.uniform(-1e-8, 1e-8, 200)])
    y = r.uniform(-1, 1, 1200) * np.minimum(700 / np.abs(np.log(x)), 1e10)
    power = (Tensor(x, device=device) ** Tensor(y, device=device)).numpy()
    with mpmath.workdps(40):
        for a, b, c in zip(x, y, power, strict=True):
            right = mpmath.power(mpmath.mpf(float(a)), mpmath.mpf(float(b)))
            assert abs(mpmath.mpf(float(c)) - right) <= float(np.spacing(float(right))), (a, b, c, right)
    for base in (3, 5, 7, 10):
        exponents = np.arange(23 if base == 10 else 19, dtype=np.float64)
        assert (base ** Tensor(exponents, device=device)).tolist() == [float(base**int(n)) for n in exponents]


def test_division_that_rounds_is_exact() -> None:
    tenth = Tensor([1.0, 0.3, -1.0, 7.5], dtype="float64")
    assert (tenth // 0.1).tolist() == [v // 0.1 for v in (1.0, 0.3, -1.0, 7.5)]
    assert (tenth % 0.1).tolist() == [v % 0.1 for v in (1.0, 0.3, -1.0, 7.5)]
    large = np.array([1e6 + 0.25, 123456.789, -99999.5], np.float32)
    np.testing.assert_array_equal(Tensor(large).fmod(0.7).numpy(), np.fmod(large, np.float32(0.7)))
    np.testing.assert_array_equal((Tensor(large) % float("inf")).numpy(), large % np.float32("inf"))
