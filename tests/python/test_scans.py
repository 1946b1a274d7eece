"""Cumulative operations against PyTorch: values, places, gradients, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft
from weft import Tensor

SHAPES = [(1,), (7,), (130,), (5, 9), (3, 70, 4), (2, 1, 3), (1, 65), (65, 1)]
FUNCTIONS = ["cumsum", "cumprod", "logcumsumexp"]


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def close(ours: Tensor, theirs: torch.Tensor, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_along_any_axis(name: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for axis in range(len(shape)):
        close(getattr(Tensor(x), name)(axis), getattr(torch.from_numpy(x), name)(axis), 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes_and_their_last_places(name: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for values in (x, np.round(x), np.where(x > 1, np.float32(np.nan), x), np.round(x * 2).astype("int32")):
        for axis in range(len(shape)):
            ours, theirs = getattr(Tensor(values), name)(axis), getattr(torch.from_numpy(values), name)(axis)
            np.testing.assert_array_equal(ours[0].numpy(), theirs[0].numpy())
            np.testing.assert_array_equal(ours[1].numpy(), theirs[1].numpy())


@pytest.mark.parametrize("row", [[0.0, 2, 0, 3], [np.nan, 1, 2], [np.inf, 1, -np.inf], [-np.inf, -np.inf, 1, 2], [-0.0, 0.0]])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, row: list[float]) -> None:
    close(getattr(Tensor(row), name)(0), getattr(torch.tensor(row), name)(0), 1e-5)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float64"])
def test_dtypes(name: str) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (6, 50)).astype("float32")
    ours = Tensor(bits).cast(name).cumsum(1).cast("float32")
    close(ours, torch.from_numpy(bits).to(getattr(torch, name)).cumsum(1).float())


def test_no_elements_and_no_axes() -> None:
    assert Tensor(np.zeros((0, 3), "float32")).cumsum(0).shape == (0, 3)
    assert Tensor(3.0).cumsum(0).item() == 3.0


@pytest.mark.parametrize("shape", [(7,), (5, 9), (3, 20, 4)])
@pytest.mark.parametrize("name", [*FUNCTIONS, "cummax"])
def test_first_and_second_gradients(name: str, shape: tuple[int, ...]) -> None:
    x, w = numbers(*shape), np.cos(numbers(*shape))
    if name != "logcumsumexp":  # PyTorch drops second gradients where the first is 0
        x.flat[2] = 0.0
    for axis in range(len(shape)):
        a, b = Tensor(x, requires_grad=True), torch.from_numpy(x).double().requires_grad_()
        ours, theirs = getattr(a, name)(axis), getattr(b, name)(axis)
        if name == "cummax":
            ours, theirs = ours[0], theirs[0]
        first = (ours * ours * Tensor(w)).sum().gradient(a)[0]
        (expected,) = torch.autograd.grad((theirs * theirs * torch.from_numpy(w)).sum(), b, create_graph=True)
        close(first, expected, 1e-4)
        if name == "cummax":
            continue
        (again,) = torch.autograd.grad((expected * expected).sum(), b)
        close((first * first).sum().gradient(a)[0], again, 5e-4)


def test_a_sum_of_many_is_as_exact_as_one_rounding() -> None:
    x = np.random.default_rng(0).standard_normal(4000).astype("float32") + np.float32(1)
    exact = np.cumsum(x.astype("float64"))
    error = np.abs(Tensor(x).cumsum(0).numpy() - exact) / np.abs(exact)
    assert error.max() <= 2.0**-24


@pytest.mark.parametrize("axis", [0, 1])
def test_one_kernel_with_the_arithmetic_around_it(axis: int) -> None:
    x = Tensor(numbers(20, 30)).realize()
    y = (x * 2).cumsum(axis) * 3 + 1
    assert y.kernel_count() == 1
    close(y, (torch.from_numpy(numbers(20, 30)) * 2).cumsum(axis) * 3 + 1, 1e-5)


def test_scans_of_scans_and_of_reductions() -> None:
    x = numbers(6, 7)
    t = torch.from_numpy(x)
    for first in (0, 1):
        for second in (0, 1):
            close(Tensor(x).cumsum(first).cumsum(second), t.cumsum(first).cumsum(second), 1e-5)
        close(Tensor(x).softmax(-1).cumsum(first), t.softmax(-1).cumsum(first), 1e-5)
        close((Tensor(x).cumsum(first) * Tensor(x)).sum(first), (t.cumsum(first) * t).sum(first), 1e-5)
        close(Tensor(x).flip(first).cumsum(first).flip(first), t.flip(first).cumsum(first).flip(first), 1e-5)


def test_writes_to_what_a_scan_gave() -> None:
    x = numbers(6, 7)
    for axis in (0, 1):
        y, t = Tensor(x).cumsum(axis), torch.from_numpy(x).cumsum(axis)
        y[1:3] = y[0:2] * 2
        t[1:3] = t[0:2].clone() * 2
        close(y, t, 1e-5)
    y = Tensor(x).realize()
    y.assign(y.cumsum(0))
    close(y, torch.from_numpy(x).cumsum(0), 1e-5)


def test_a_loop_of_scans() -> None:
    x = numbers(12, 9)
    y, t = Tensor.zeros(12, 9).contiguous(), torch.zeros(12, 9)
    z, u = Tensor(x).realize(), torch.from_numpy(x.copy())
    for i in range(12):
        y[i] = z[i].cumsum(0)
        t[i] = u[i].cumsum(0)
    for i in range(1, 12):
        z[i] = z[i - 1].cumsum(0) * 0.5
        u[i] = u[i - 1].cumsum(0) * 0.5
    close(y, t, 1e-5)
    close(z, u, 1e-4)


def test_is_what_the_reference_gives() -> None:
    x = Tensor(numbers(4, 33))
    for name in FUNCTIONS:
        weft.check(lambda t, name=name: getattr(t, name)(1) + getattr(t, name)(0), x)
    weft.check(lambda t: t.cummin(1)[0], x)
