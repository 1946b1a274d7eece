"""A reduction that is used again, along whichever axes, takes in every element once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor

RNG = np.random.default_rng(0)

Function = Callable[[Any, Any], Any]  # of a tensor or an array, and axes


def centred(x: Any, axis: Any) -> Any:
    return x - mean(x, axis)


def mean(x: Any, axis: Any) -> Any:
    return x.mean(axis, keepdim=True) if isinstance(x, Tensor) else x.mean(axis, keepdims=True)


def normed(x: Any, axis: Any) -> Any:
    d = centred(x, axis)
    return d / (mean(d * d, axis) + 1) ** 0.5


def softmax(x: Any, axis: Any) -> Any:
    if isinstance(x, Tensor):
        return x.softmax(axis)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x: Any, axis: Any) -> Any:
    return x.log_softmax(axis) if isinstance(x, Tensor) else np.log(softmax(x, axis))


def padded(x: Any, axis: Any) -> Any:
    if isinstance(x, Tensor):
        return (x.sum(axis) * 2).pad((50, 50))
    total = x.sum(axis) * 2
    return np.pad(total, [(0, 0)] * (total.ndim - 1) + [(50, 50)])


# function, weighed operations for each element at most (and 20 for each result), axes that it takes
FUNCTIONS = [(centred, 3, "any"), (normed, 10, "any"), (softmax, 26, "one"), (log_softmax, 26, "one"), (padded, 30, "one")]
SHAPES: list[tuple[tuple[int, ...], list[Any]]] = [
    ((200, 50), [0, 1]),
    ((7, 60, 35), [0, 1, 2, (0, 1), (0, 2), (1, 2)]),
    ((30, 4, 16, 3), [0, 1, 2, 3, (0, 2), (1, 3), (0, 2, 3)]),
]
CASES = [(f, most, shape, axis) for f, most, kind in FUNCTIONS for shape, axes in SHAPES for axis in axes
         if kind == "any" or isinstance(axis, int)]


@pytest.mark.parametrize("device", ["REF", "CPU"])
@pytest.mark.parametrize("view", ["whole", "strided", "turned"])
@pytest.mark.parametrize(("function", "most", "shape", "axis"), CASES, ids=lambda v: getattr(v, "__name__", str(v)))
def test_every_axis(function: Function, most: int, shape: tuple[int, ...], axis: Any, view: str, device: str) -> None:
    whole = RNG.standard_normal((*shape[:-1], 2 * shape[-1]) if view == "strided" else shape).astype(np.float32)
    x, a = Tensor(whole, device=device).realize(), whole
    if view == "strided":
        x, a = x[..., ::2], a[..., ::2]
    if view == "turned":
        x, a = x.transpose(0, 1), a.swapaxes(0, 1)
    weft.counters.reset()
    result = function(x, axis).realize()
    assert weft.counters.flops <= most * a.size + 20 * a.sum(axis).size
    np.testing.assert_allclose(result.numpy(), function(a.astype(np.float64), axis), rtol=1e-3, atol=1e-4)


def test_joined_reductions_are_computed_for_their_own_elements() -> None:
    a = RNG.standard_normal((40, 100)).astype(np.float32)
    x = Tensor(a).realize()
    weft.counters.reset()
    both = Tensor.cat(x.sum(1), x.max(1)).realize()
    assert weft.counters.flops <= 2.2 * a.size
    np.testing.assert_allclose(both.numpy(), np.concatenate([a.sum(1), a.max(1)]), rtol=1e-4, atol=1e-4)


def test_a_row_is_one_kernel() -> None:
    for rows, columns in [(64, 128), (256, 256), (512, 512)]:
        x = Tensor(RNG.standard_normal((rows, columns)).astype(np.float32), device="CPU").realize()
        assert x.softmax(-1).kernel_count() == 1
        assert normed(x, -1).kernel_count() == 1
