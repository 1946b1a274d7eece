"""How many kernels programs take. Results are compared with NumPy too: few wrong kernels are no gain."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes

RNG = np.random.default_rng(0)

Program = tuple[list[Tensor], list[Any]]  # results, and what they must be


def realised(*shape: int) -> tuple[Tensor, Any]:
    data = RNG.integers(-4, 5, shape).astype(np.float32)
    tensor = Tensor(data)
    tensor.realize()
    return tensor, data


def kernels(results: list[Tensor]) -> int:
    weft.counters.reset()
    results[0].realize(*results[1:])
    return weft.counters.kernels


def check(make: Callable[[], Program], most: int, tolerance: float = 0.0) -> None:
    weft.counters.reset()
    results, expected = make()
    assert weft.counters.kernels == 0, "building runs nothing"
    predicted = results[0].kernel_count() if len(results) == 1 else None
    count = kernels(results)
    assert count <= most
    assert predicted in (None, count)
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def chain() -> Program:
    x, a = realised(16, 16)
    y, b = realised(16, 16)
    return [((x + 1) * 2 - y).maximum(x) * 0.5], [np.maximum((a + 1) * 2 - b, a) * 0.5]


def reduce_then_elementwise() -> Program:
    x, a = realised(16, 16)
    return [x.sum(axis=1) * 2 + 1], [a.sum(1) * 2 + 1]


def two_values_of_one() -> Program:
    x, a = realised(16, 16)
    return [x + 1, x * 2], [a + 1, a * 2]


def mean_and_variance() -> Program:
    x, a = realised(16, 16)
    mean = x.mean(axis=1, keepdim=True)
    return [mean, ((x - mean) * (x - mean)).mean(axis=1)], [a.mean(1, keepdims=True), a.var(1)]


def sgd(shapes: list[tuple[int, ...]]) -> Program:
    parameters, expected = [], []
    for shape in shapes:
        (p, a), (g, b) = realised(*shape), realised(*shape)
        p -= g * 0.5
        parameters.append(p)
        expected.append(a - b * np.float32(0.5))
    return parameters, expected


def momentum() -> Program:
    results, expected = [], []
    for _ in range(20):
        (p, a), (g, b), (m, c) = realised(8, 4), realised(8, 4), realised(8, 4)
        m.assign(m * 0.5 + g)
        p.assign(p - m * 2)
        results += [p, m]
        expected += [a - (c * np.float32(0.5) + b) * 2, c * np.float32(0.5) + b]
    return results, expected


def disjoint_slices() -> Program:
    a, x = realised(100)
    y, b = realised(40)
    x = x.copy()
    a[0:10] = 1
    a[20:40] = 2
    a[50:90] = y
    x[0:10], x[20:40], x[50:90] = 1, 2, b
    return [a], [x]


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(axis=-1, keepdim=True)).exp()
    return e / e.sum(axis=-1, keepdim=True)


def softmax_of(a: Any) -> Any:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def row_softmax() -> Program:
    x, a = realised(64, 32)
    return [softmax(x)], [softmax_of(a)]


def layernorm() -> Program:
    x, a = realised(64, 32)
    w, b = realised(32)
    d = x - x.mean(axis=-1, keepdim=True)
    y = d / ((d * d).mean(axis=-1, keepdim=True) + 1e-5).sqrt() * w + w
    n = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    return [y], [n * b + b]


def attention() -> Program:
    (q, a), (k, b), (v, c) = (realised(2, 4, 16, 8) for _ in range(3))
    scores = q.matmul(k.transpose(-1, -2)) * 0.25
    return [softmax(scores).matmul(v)], [softmax_of(a @ b.swapaxes(-1, -2) * 0.25) @ c]


def row_writes() -> Program:
    a = Tensor.zeros(200, 8)
    x, b = realised(200, 8)
    for i in range(200):
        a[i] = x[i] * 2
    return [a], [b * 2]


def row_recurrence() -> Program:
    a, x = realised(200, 8)
    x = x.copy()
    for i in range(1, 200):
        a[i] = a[i - 1] * 0.5 + i
        x[i] = x[i - 1] * np.float32(0.5) + np.float32(i)
    return [a], [x]


def both_from_the_old() -> Program:
    (a, x), (b, y) = realised(32), realised(32)
    new_a, new_b = a + b, a * 2
    a.assign(new_a)
    b.assign(new_b)
    return [a, b], [x + y, x * 2]


ONE = {
    "chain": chain,
    "reduce then elementwise": reduce_then_elementwise,
    "two values of one": two_values_of_one,
    "mean and variance": mean_and_variance,
    "sgd of 20 of one shape": lambda: sgd([(32, 16)] * 20),
    "sgd with momentum": momentum,
    "disjoint slices": disjoint_slices,
    "both from the old": both_from_the_old,
}


@pytest.mark.parametrize("name", ONE)
def test_one(name: str) -> None:
    check(ONE[name], 1, 1e-5)


@pytest.mark.parametrize("make", [row_softmax, layernorm, row_writes, row_recurrence])
def test_at_most_two(make: Callable[[], Program]) -> None:
    check(make, 2, 1e-5)


def test_attention_takes_at_most_three() -> None:
    check(attention, 3, 1e-5)


def test_updates_of_different_shapes_take_one_each() -> None:
    check(lambda: sgd([(8 + i % 4, 16) for i in range(20)]), 4, 1e-5)


LOOPS: dict[str, tuple[Callable[[Any, int], None], int]] = {
    "a[i] = i": (lambda a, i: a.__setitem__(i, i), 0),
    "a[i] = a[i-1] + 1": (lambda a, i: a.__setitem__(i, a[i - 1] + 1), 1),
    "a[0] += 1": (lambda a, i: a.__setitem__(0, a[0] + 1), 0),
    "a[i] = a[0] + i": (lambda a, i: a.__setitem__(i, a[0] + i), 1),
}


# Loops that read start from memory that somebody has written.
CASES = [(loop, memory) for loop in LOOPS for memory in ("zeros", "realised")] + [("a[i] = i", "empty")]


@pytest.mark.host  # on a GPU, loops of one kernel do not run one after the other
@pytest.mark.parametrize("n", [10, 1_000, 10_000])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int32])
@pytest.mark.parametrize("loop, memory", CASES)
def test_a_loop_of_setitems_is_one_kernel(loop: str, memory: str, dtype: Any, n: int) -> None:
    a = Tensor.empty(n, dtype=dtype) if memory == "empty" else Tensor.zeros(n, dtype=dtype)
    if memory == "realised":
        a.realize()
    want = np.zeros(n, dtype.name)
    step, first = LOOPS[loop]
    weft.counters.reset()
    for i in range(first, n):
        step(a, i)
        step(want, i)
    assert weft.counters.kernels == 0
    assert kernels([a]) == 1
    np.testing.assert_array_equal(a.numpy(), want)


def test_values_that_no_formula_gives_come_from_a_table() -> None:
    values = RNG.standard_normal(300).astype(np.float32)
    places = RNG.permutation(300)
    a = Tensor.zeros(300)
    want = np.zeros(300, np.float32)
    for place, value in zip(places, values, strict=True):
        a[int(place)] = float(value)
        want[place] = value
    assert kernels([a]) == 1
    np.testing.assert_array_equal(a.numpy(), want)


def test_a_matmul_that_is_used_twice_runs_once() -> None:
    a, x = realised(16, 16)
    h = a @ a
    weft.counters.reset()
    assert h.sum().item() == (x @ x).sum()
    assert h.max().item() == (x @ x).max()
    assert weft.counters.kernels == 3  # the product, its sum, its largest


def test_rolling_sums_do_not_explode() -> None:
    x, a = realised(8)
    for _ in range(64):
        x = x + x.roll(1)
        a = a + np.roll(a, 1)
    assert kernels([x]) <= 64
    np.testing.assert_allclose(x.numpy(), a, rtol=1e-4)


def test_the_same_program_is_scheduled_once() -> None:
    def program() -> Tensor:
        x, _ = realised(8, 8)
        return (x * 2).sum(axis=1) + 1

    first, second = program(), program()
    assert first.kernel_count() == second.kernel_count() == 1


@pytest.mark.parametrize(("rows", "columns", "count"), [
    (300, 7, 1),   # a nest of loops: nothing is computed twice
    (300, 32, 2),  # columns that vectors run along: the product is worth more alone
    (20, 7, 2),    # too few rows would be left to run in parallel
])
def test_a_product_in_the_reduction_of_its_columns(rows: int, columns: int, count: int) -> None:
    x, a = realised(rows, 24)
    w, b = realised(24, columns)
    check(lambda: ([x.matmul(w).relu().sum(axis=1)], [np.maximum(a @ b, 0).sum(1)]), count)


def test_a_product_that_two_reductions_use_is_stored() -> None:
    x, a = realised(300, 24)
    w, b = realised(24, 7)
    y = x.matmul(w)
    check(lambda: ([y.sum(axis=1), y.max(axis=1)], [(a @ b).sum(1), (a @ b).max(1)]), 2)


def test_the_mean_of_a_convolution_over_its_places() -> None:
    x, a = realised(2, 3, 6, 5)
    w, b = realised(160, 3, 3, 3)
    check(lambda: ([x.conv2d(w, padding=1).relu().mean(axis=(2, 3))], [mean_of_convolution(a, b)]), 1, 1e-5)


def mean_of_convolution(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0).mean(axis=(2, 3))


@pytest.mark.parametrize(("program", "size", "most"), [("gpt2", 12, 115), ("resnet18", 4, 19)])
def test_models_of_the_benchmark(program: str, size: int, most: int) -> None:
    """The forward of GPT-2-small and of ResNet-18: nothing runs."""
    root = pathlib.Path(__file__).resolve().parents[2]
    command = [sys.executable, str(root / "bench/schedule_programs.py"), "weft", program, str(size), "1", "60"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed)["kernels"] <= most
