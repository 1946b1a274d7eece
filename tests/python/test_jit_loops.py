"""Loops under jit: as many turns as a Variable says, one capture for all counts."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor, Variable, jit

LENGTH = 60
C = np.random.default_rng(0).random(LENGTH).astype(np.float32)
HALF = np.float32(0.5)


def recurrence(c, n):
    b = c * 0
    for i in range(1, n):
        b[i] = b[i - 1] * HALF + c[i]
    return b


def carried(c, n):
    s = c[0] * 1
    for i in range(n):
        s = s * HALF + c[i]
    return s


def nested(c, n):
    b = c * 1
    for last in range(n - 1, 0, -1):
        for i in range(last):
            b[i] = b[i] + b[i + 1] * HALF
        if last % 7 == 0:
            b[0] = b[0] * HALF
    return b * (n % 3)


def by_size(c, n):
    part = c[:n]
    total = part[0] * 0
    for i in range(part.shape[0]):
        total = total + part[i] * HALF
    return total


@pytest.mark.parametrize("loop", [recurrence, carried, nested, by_size], ids=lambda f: f.__name__)
def test_one_capture_for_all_counts(loop: Callable[[object, object], object]) -> None:
    n, calls = Variable("n", 1, LENGTH), itertools.count()
    c = Tensor(C).realize()

    def counted(k: int) -> Tensor:
        next(calls)
        return loop(c, k)

    counted.__wrapped__ = loop  # type: ignore[attr-defined]
    f = jit(counted)
    counts = [5, 6, 31, 7, 12, 40, 5, 60, 13, 12, 31, 1, 2, 40, 6, 60, 59]
    for _ in range(2):
        for k in counts:
            np.testing.assert_allclose(f(n.bind(k)).numpy(), loop(C.copy(), k), rtol=1e-5)
            assert f.captures <= 1
    # Each count is recorded once, and the first call is not captured.
    assert next(calls) == len(set(counts)) + 1


def test_tensors_of_other_shapes_have_kernels_of_their_own() -> None:
    n = Variable("n", 1, 8)

    @jit
    def f(x: Tensor, k: int) -> Tensor:
        total = x[0] * 0
        for i in range(k):
            total = total + x[i] * (i + 1)
        return total

    for _ in range(3):
        for length, k in itertools.product((8, 9, 12), (3, 8, 5)):
            found = f(Tensor.arange(length), n.bind(k)).item()
            assert found == sum(i * (i + 1) for i in range(k))
