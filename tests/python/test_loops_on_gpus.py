"""Loops of reads and writes where the loops of a kernel cannot follow each other across a device: few kernels, too."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import weft
from weft import Tensor

N = 120
RANDOM = np.random.default_rng(3)
START, OTHER = (RANDOM.random(N).astype(np.float32) for _ in range(2))
PERMUTED = RANDOM.permutation(N).tolist()
PLACES = RANDOM.integers(0, N, N).tolist()

Body = Callable[[object, object, object], object]


def sort_neighbours(b, c, xp):
    for last in range(12, 0, -1):
        for j in range(last):
            low, high = xp.minimum(b[j], b[j + 1]) + 0, xp.maximum(b[j], b[j + 1]) + 0
            b[j] = low
            b[j + 1] = high


def two_before(b, c, xp):
    for i in range(2, N):
        b[i] = (b[i - 1] + b[i - 2]) * 0.5 + c[i]


def alternate(b, c, xp):
    for i in range(N):
        b[i] = c[i] * 2 if i % 2 else -c[i]


def by_list(b, c, xp):
    for i in range(N):
        b[PERMUTED[i]] = b[i] + 1


def counts(b, c, xp):
    for i in range(N):
        b[PLACES[i]] += c[i]


def carried(b, c, xp):
    s = c[:1] * 0
    for i in range(N):
        s = s * 0.5 + c[i]
        b[i] = s[0]


def rows(b, c, xp):
    m = b[:100].reshape(10, 10)
    for i in range(1, 10):
        for j in range(9):
            m[i, j] = m[i - 1, j + 1] * 0.5 + m[i, j]
        m[i] = m[i] + m[i - 1, :1]


def levels(b, c, xp):
    for k in range(3):
        for i in range(30):
            b[30 * k + i + 30] = b[30 * k + i] * 0.5 + c[i]


BODIES = [sort_neighbours, two_before, alternate, by_list, counts, carried, rows, levels]


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", ["OPENCL", "WEBGPU", "CUDA"])
def test_values(device: str, body: Body) -> None:
    if device not in weft.Device.names():
        pytest.skip(f"no {device}")
    b, expected = Tensor(START, device=device).realize(), START.copy()
    body(b, Tensor(OTHER, device=device).realize(), Tensor)
    body(expected, OTHER, np)
    assert b.kernel_count() <= 12
    np.testing.assert_allclose(b.numpy(), expected, rtol=2e-6)


@pytest.mark.parametrize("n", [200, 1000])
def test_what_is_compiled_does_not_grow(n: int) -> None:
    program = f"""
from weft import Tensor
def schedule(body):
    b, c = Tensor.zeros({n}).contiguous().realize(), Tensor.ones({n}).realize()
    body(b, c)
    kernels = b.schedule()
    print(body.__name__, len(kernels), sum("threadIdx" in k.source or "blockIdx" in k.source for k in kernels))
def recurrence(b, c):
    for i in range(2, {n}): b[i] = (b[i - 1] + b[i - 2]) * .5 + c[i]
def independent(b, c):
    for i in range({n} // 2):
        b[2 * i] = c[i] + 1
        b[2 * i + 1] = c[i] * c[i + 1]
schedule(recurrence)
schedule(independent)
"""
    done = subprocess.run([sys.executable, "-c", program], env={**__import__("os").environ, "WEFT_DEVICE": "NULL:CUDA"},
                          capture_output=True, text=True, check=True)
    # A kernel that one thread runs; for each of two statements one that all threads do.
    assert done.stdout.split() == ["recurrence", "1", "0", "independent", "2", "2"]
