"""Loops of reads and writes: few kernels, the values of NumPy, whatever the body; docs/loops.md says how."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor, counters

N = 200
RANDOM = np.random.default_rng(0)
C = RANDOM.random(N).astype(np.float32)
PERMUTED = RANDOM.permutation(N).tolist()


class TestSetitemLoop:
    def test_arange(self) -> None:
        a = Tensor.empty(N)
        for i in range(N):
            a[i] = i
        assert a.kernel_count() == 1
        assert a.tolist() == list(range(N))


# A body runs on two sides: (the array to write, C, N, functions of the side).
Body = Callable[[object, object, object], object]


def sort_neighbours(b, c, xp):
    for last in range(19, 0, -1):
        for j in range(last):
            low, high = xp.minimum(b[j], b[j + 1]) + 0, xp.maximum(b[j], b[j + 1]) + 0
            b[j] = low
            b[j + 1] = high


def alternate(b, c, xp):
    for i in range(N):
        b[i] = c[i] * 2 if i % 2 else -c[i]


def table(b, c, xp):
    m = b[:196].reshape(14, 14)
    for i in range(1, 14):
        for j in range(1, 14):
            m[i, j] = (m[i - 1, j] + m[i, j - 1]) * 0.5


def carried_value(b, c, xp):
    s = c[:1] * 0
    for i in range(N):
        s = s * 0.5 + c[i]
        b[i] = s[0]


def carried_in_place(b, c, xp):
    s = c[:1] * 0
    for i in range(N):
        s += c[i]
        b[i] = s[0]


def swap_ends(b, c, xp):
    for i in range(N // 2):
        left, right = b[i] + 0, b[N - 1 - i] + 0
        b[i] = right
        b[N - 1 - i] = left


def two_writes(b, c, xp):
    for i in range(N // 2):
        b[2 * i] = c[i]
        b[2 * i + 1] = 2 * c[i]


def two_before(b, c, xp):
    for i in range(2, N):
        b[i] = (b[i - 1] + b[i - 2]) * 0.5


def listed_places(b, c, xp):
    for i in range(N):
        b[PERMUTED[i]] = b[i] + 1


def listed_places_in_place(b, c, xp):
    for i in range(N):
        b[PERMUTED[i]] += 1


def blocks(b, c, xp):
    m = b[:196].reshape(14, 14)
    random = np.random.default_rng(1)
    for _ in range(N):
        (i, j), (h, w) = random.integers(0, 11, 2), random.integers(1, 4, 2)
        m[i:i + h, j:j + w] = float(random.random())


def rows(b, c, xp):
    m = b[:196].reshape(14, 14)
    for i in range(1, 14):
        m[i] = m[i - 1] * c[:14] + m[i]


def shifted_parts(b, c, xp):
    for i in range(40):
        b[i + 1:i + 9] = b[i:i + 8] * 0.5


def reversed_parts(b, c, xp):
    for i in range(40):
        b[i:i + 8] = xp.flip(b[i:i + 8], 0) + c[i]


def sum_of_before(b, c, xp):
    for i in range(1, 60):
        b[i] = b[:i].sum() * 0.01


def by_range(b, c, xp):
    for i in range(N):
        if i < 70:
            b[i] = c[i] + 1
        elif i < 150:
            b[i] = b[i - 70] * c[i]
        else:
            b[i] = xp.maximum(b[i - 1], b[i - 150])


def eliminate(b, c, xp):
    m = b[:196].reshape(14, 14)
    for k in range(14):
        m[k, k] += 14
    for k in range(13):
        m[k + 1:, k] /= m[k, k] + 0
        m[k + 1:, k + 1:] -= (m[k + 1:, k:k + 1] + 0) * (m[k:k + 1, k + 1:] + 0)


def eliminate_by_rows(b, c, xp):
    m = b[:196].reshape(14, 14)
    for k in range(14):
        m[k, k] += 14
    for k in range(14):
        m[k] = m[k] / (m[k, k] + 0)
        for r in range(14):
            if r != k:
                m[r] = m[r] - (m[r, k] + 0) * m[k]


def tails(b, c, xp):
    for i in range(60):
        b[i:] += 1


def knapsack(b, c, xp):
    for i in range(30):
        w = 1 + i * i % 17
        b[w:] = xp.maximum(b[w:], b[:-w] + float(i % 7))


def from_a_filled_tensor(b, c, xp):
    b[:] = 1
    for i in range(2, N):
        b[i] = (b[i - 1] * 3 + b[i - 2]) % 97


def smaller_and_larger_of_zeros(b, c, xp):
    b[:] = 0
    for i in range(2, 60):
        b[i] = xp.maximum(b[i + 60], c[i]) - xp.minimum(b[i - 1], b[i + 100])


def sums_to_each(b, c, xp):
    for i in range(1, 60):
        b[i] = (c[:i] * c[i]).sum() * 0.5 + c[i:i + 8].max()


def new_tensor_each(b, c, xp):
    now = b[:20] * 0.5
    for i in range(40):
        new = c[:20] * 0
        new[1:-1] = (now[:-2] + now[2:]) * 0.5
        now = new
    b[:20] = now


def moving_averages(b, c, xp):
    w, m, v = c[:10] * 1, c[10:20] * 0, c[10:20] * 0
    for _ in range(60):
        g = w * 2 - 1
        m = m * 0.9 + g * 0.1
        v = v * 0.99 + g * g * 0.01
        w = w - m * 0.1 / (v + 1)
    b[:10] = w


def random_places(seed):
    return np.random.default_rng(seed).integers(0, N, (3 * N, 2)).tolist()


def counted(b, c, xp):
    for p, _ in random_places(6):
        b[p % 32] += 1


def best_of_items(b, c, xp):
    for p, q in random_places(7)[:40]:
        w = 1 + p % 20
        for j in range(39, w - 1, -1):
            b[j] = xp.maximum(b[j], b[j - w] + float(q))


def thirty_different_statements(b, c, xp):
    for i in range(1, 181):
        e = b[i - 1] * 0.125
        for bit in range(5):
            e = e + c[i] if i % 30 >> bit & 1 else e * c[i - 1]
        b[i] = e


def all_pairs(b, c, xp):
    m = b[:144].reshape(12, 12)
    for k in range(12):
        m[:] = xp.minimum(m, (m[:, k:k + 1] + 0) + (m[k:k + 1, :] + 0))
        m[:] = m * 0.5 + (m[k, k] + 0)


@pytest.mark.parametrize("body", [
    counted, best_of_items, thirty_different_statements, all_pairs, eliminate, eliminate_by_rows, tails, knapsack, from_a_filled_tensor, smaller_and_larger_of_zeros, sums_to_each,
    new_tensor_each, moving_averages, sort_neighbours, alternate, table, carried_value, carried_in_place, swap_ends, two_writes, two_before, listed_places,
    listed_places_in_place, blocks, rows, shifted_parts, reversed_parts, sum_of_before, by_range], ids=lambda f: f.__name__)
def test_few_kernels(body: Body) -> None:
    start = RANDOM.random(N).astype(np.float32)
    b, expected = Tensor(start).realize(), start.copy()
    body(b, Tensor(C).realize(), Tensor)
    body(expected, C, np)
    counters.reset()
    assert b.kernel_count() <= 4
    np.testing.assert_allclose(b.numpy(), expected, rtol=2e-6)
    assert counters.kernels <= 4


def test_writes_that_later_ones_cover_are_few_kernels() -> None:
    """Their values are parts of others, nested as deep as chance will have it."""
    n = 6000
    places = np.random.default_rng(5).integers(0, n, (n, 2)).tolist()
    start = np.random.default_rng(6).random((2, n)).astype(np.float32)

    def run(b, d):
        for p, q in places:
            b[p] = d[q] + b[q] * 0.5
            d[q] -= b[p] * 0.25

    b, d = (Tensor(x).realize() for x in start)
    run(b, d)
    expected = start.copy()
    run(*expected)
    assert b.kernel_count(d) <= 4
    b.realize(d)
    np.testing.assert_allclose(b.numpy(), expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(d.numpy(), expected[1], rtol=1e-4, atol=1e-5)


def test_reads_in_the_middle() -> None:
    a, expected, sums, parts = Tensor.zeros(N).contiguous().realize(), np.zeros(N, np.float32), [], []
    for i in range(N):
        a[i] = i * 1.5
        expected[i] = i * 1.5
        if i % 10 == 9:
            sums.append((a.sum(), expected.sum()))
            parts.append((a[i - 9:i + 2], expected[i - 9:i + 2].copy()))
    a[:] = 0
    Tensor.realize(*(s for s, _ in sums), *(p + 0 for p, _ in parts))
    for found, wanted in sums:
        assert found.item() == pytest.approx(float(wanted))
    assert a.tolist() == [0] * N


def test_sums_read_one_by_one_are_compiled_once() -> None:
    a, sums = Tensor.zeros(20 * N).contiguous().realize(), []
    for i in range(20 * N):
        a[i] = i % 8 * 0.25
        if i % N == N - 1:
            sums.append(a.sum())
    sources: set[str] = set()
    for i, s in enumerate(sums):
        sources |= {k.source for k in s.schedule()}
        assert s.item() == (i + 1) * N * 0.875
    assert len(sources) <= 4


def recurrence(c: Tensor) -> Tensor:
    b = Tensor.zeros(N, dtype="float64")
    for i in range(1, N):
        b[i] = b[i - 1] * 0.5 + c[i]
    return b


def random_writes(c: Tensor) -> Tensor:
    b = Tensor.zeros(N, dtype="float64")
    for i in range(N):
        b[PERMUTED[i]] = c[i] * 2 + c[PERMUTED[i]]
    return b


def windows(c: Tensor) -> Tensor:
    b = Tensor.zeros(N, dtype="float64")
    for i in range(N - 8):
        b[i:i + 3] = b[i + 1:i + 4] * 0.5 + c[i:i + 8].sum()
    return b


@pytest.mark.parametrize("loop", [recurrence, random_writes, windows], ids=lambda f: f.__name__)
def test_gradients_are_loops(loop: Callable[[Tensor], Tensor]) -> None:
    c = Tensor(C.astype(np.float64)).realize().requires_grad_()
    by = (loop(c) ** 2).sum().gradient(c)[0]
    again = (by * Tensor(PERMUTED)).sum().gradient(c)[0]
    assert by.kernel_count() <= 4
    assert again.kernel_count() <= 8
    # Loops that are linear in c: by(c) is linear, too.
    step = np.zeros(N)
    step[17] = 1
    other = Tensor(C + step).requires_grad_()
    change = (loop(other) ** 2).sum().gradient(other)[0].numpy() - by.numpy()
    np.testing.assert_allclose((change * np.array(PERMUTED)).sum(), again.numpy()[17], rtol=1e-9)


def test_numbers_of_a_loop_do_not_compile_again() -> None:
    """Places and scalars of small loops come from tables: other ones find the same kernel."""
    def run(first: int, scale: float) -> set[str]:
        b = Tensor(C).realize()
        for i in range(40):
            b[first + i] = b[first + i + 1] * scale
        sources = {k.source for k in b.schedule()}
        expected = C.copy()
        for i in range(40):
            expected[first + i] = expected[first + i + 1] * np.float32(scale)
        np.testing.assert_array_equal(b.numpy(), expected)
        return sources
    assert run(0, 0.5) == run(100, 0.25)


def test_a_loop_that_is_no_loop_program_says_why() -> None:
    program = ("from weft import Tensor\n"
               "b = Tensor.zeros(300).contiguous().realize()\n"
               "cs = [Tensor([float(i)] * (i + 1)).realize() for i in range(20)]\n"
               "for i in range(20): b[i] = cs[i].sum()\n"
               "b.realize()\n")
    done = subprocess.run([sys.executable, "-c", program], env={**__import__("os").environ, "WEFT_DEBUG": "2"},
                          capture_output=True, text=True, check=True)
    assert "not a loop program: 20 statements have 20 different bodies, such as that of: " in done.stderr
