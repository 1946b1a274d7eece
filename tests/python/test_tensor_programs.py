"""Programs of views and writes give what NumPy gives, read in any order, and building them runs nothing.

Each program is written once, over an `Arrays` that is either weft or NumPy, and says with `point` where
a user might realise. It runs with nothing realised before the end, with some tensors realised at
random points, and with all of them realised together.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, counters, dtypes

Results = dict[str, Any]


class OfNumPy:
    def array(self, values: Any, dtype: str = "float32") -> Any:
        return np.array(values, dtype)

    def empty(self, *shape: int, dtype: str = "float32") -> Any:
        return np.zeros(shape, dtype)

    def zeros(self, *shape: int, dtype: str = "float32") -> Any:
        return np.zeros(shape, dtype)

    def arange(self, n: int, dtype: str = "float32") -> Any:
        return np.arange(n, dtype=dtype)

    def assign(self, target: Any, value: Any) -> Any:
        target[...] = value
        return target

    def roll(self, x: Any, n: int) -> Any:
        return np.roll(x, n)

    def clone(self, x: Any) -> Any:
        return x.copy()

    def flatten(self, x: Any) -> Any:
        return x.reshape(-1)

    def permute(self, x: Any, *order: int) -> Any:
        return x.transpose(order)

    def point(self, *tensors: Any) -> None:
        pass


class OfWeft:
    def __init__(self, order: str, seed: int) -> None:
        self.order = order
        self.random = random.Random(seed)

    def array(self, values: Any, dtype: str = "float32") -> Any:
        return Tensor(np.array(values, dtype))

    def empty(self, *shape: int, dtype: str = "float32") -> Any:
        return Tensor.empty(*shape, dtype=dtype)

    def zeros(self, *shape: int, dtype: str = "float32") -> Any:
        return Tensor.zeros(*shape, dtype=dtype)

    def arange(self, n: int, dtype: str = "float32") -> Any:
        return Tensor.arange(n, dtype=dtype)

    def assign(self, target: Any, value: Any) -> Any:
        return target.assign(value)

    def roll(self, x: Any, n: int) -> Any:
        return x.roll(n)

    def clone(self, x: Any) -> Any:
        return x.clone()

    def flatten(self, x: Any) -> Any:
        return x.flatten()

    def permute(self, x: Any, *order: int) -> Any:
        return x.permute(*order)

    def point(self, *tensors: Any) -> None:
        if self.order == "at random":
            for t in self.random.sample(tensors, len(tensors)):
                if self.random.random() < 0.4:
                    t.realize()
        elif self.order == "together" and tensors:
            tensors[0].realize(*tensors[1:])


Arrays = Any
Program = Callable[[Arrays, int], Results]
PROGRAMS: dict[str, tuple[Program, tuple[int, ...]]] = {}


def program(*sizes: int) -> Callable[[Program], Program]:
    def add(function: Program) -> Program:
        PROGRAMS[function.__name__] = function, sizes
        return function

    return add


# ------------------------------------------------------------------------------------------ the programs


@program(1, 4, 1000, 10_000)
def set_each(m: Arrays, n: int) -> Results:
    a = m.empty(n)
    for i in range(n):
        a[i] = i
    return {"a": a}


@program(1, 4, 1000, 10_000)
def set_each_int(m: Arrays, n: int) -> Results:
    a = m.zeros(n, dtype="int32")
    m.point(a)
    for i in range(n):
        a[i] = i * 3 % 17
    return {"a": a}


@program(4, 1000)
def set_each_with_points(m: Arrays, n: int) -> Results:
    a = m.zeros(n)
    half = a[: n // 2]
    sums = []
    for i in range(n):
        a[i] = i
        if i % (n // 4) == 1:
            sums.append(half.sum())
            m.point(a, sums[-1])
    return {"a": a, "half": half, **{f"s{i}": s for i, s in enumerate(sums)}}


@program(2, 5, 1000)
def each_from_the_last(m: Arrays, n: int) -> Results:
    a = m.zeros(n)
    a[0] = 7
    m.point(a)
    for i in range(1, n):
        a[i] = a[i - 1] + 1
    return {"a": a}


@program(2, 5, 1000)
def add_to_the_first(m: Arrays, n: int) -> Results:
    a = m.arange(3)
    m.point(a)
    for _ in range(n):
        a[0] += 1
    return {"a": a}


@program(2, 5, 1000)
def each_from_the_first(m: Arrays, n: int) -> Results:
    a = m.arange(n)
    a[0] = 5
    m.point(a)
    for i in range(1, n):
        a[i] = a[0] + i
    return {"a": a}


@program(4, 64)
def assign_through_a_permutation(m: Arrays, n: int) -> Results:
    a = m.empty(n, n)
    b = m.arange(n * n).reshape(n, n)
    ret = m.assign(m.permute(a, 1, 0), b)
    m.point(ret, b)
    return {"ret": ret, "a": a, "b": b}


@program(4, 5000)
def result_keeps_the_old(m: Arrays, n: int) -> Results:
    a = m.arange(n)
    m.point(a)
    r = a * 10
    a[:2] = 9
    m.point(a)
    return {"a": a, "r": r}


@program(4, 5000)
def result_needed_again(m: Arrays, n: int) -> Results:
    x = m.arange(n)
    r = x * 10
    m.point(x)
    x[0] = 1
    z = r + x
    m.point(z)
    return {"z": z, "r": r, "x": x}


@program(4, 5000)
def same_schedule_twice(m: Arrays, n: int) -> Results:
    x = m.arange(n)
    m.assign(x, x + 1)
    m.point(x)
    r = x * 10
    m.assign(x, x + 1)
    m.point(x)
    return {"r": r, "x": x}


@program(6, 5000)
def three_sums(m: Arrays, n: int) -> Results:
    t = m.arange(n, "int32")
    s0 = t.sum()
    t[:3] = 1
    s1 = t.sum()
    m.point(s0, t)
    t[3:] = 2
    s2 = t.sum()
    m.point(s1, s2)
    return {"t": t, "s0": s0, "s1": s1, "s2": s2}


@program(4, 5000)
def both_from_the_old(m: Arrays, n: int) -> Results:
    a, b = m.arange(n), m.arange(n) * 3
    new_a = a + b
    new_b = a * 2
    m.assign(a, new_a)
    m.point(a, new_b)
    m.assign(b, new_b)
    m.point(b)
    return {"a": a, "b": b, "new_a": new_a, "new_b": new_b}


@program(8, 4096)
def writes_that_read_what_they_write(m: Arrays, n: int) -> Results:
    a = m.arange(n)
    m.point(a)
    a[1:] = a[:-1]
    m.point(a)
    a -= a[7:8]
    m.point(a)
    m.assign(a, m.roll(a, 1))
    return {"a": a}


@program(8, 4096)
def overlapping_moves(m: Arrays, n: int) -> Results:
    a = m.arange(n)
    left, right = a[:-2], a[2:]
    left[...] = right + a[1:-1]
    m.point(right, left)
    a[::2] = a[::-1][::2]
    m.point(a)
    a[: n // 2] += a[n // 2 :]
    return {"left": left, "a": a, "right": right}


@program(4, 60)
def transposed_into_itself(m: Arrays, n: int) -> Results:
    a = m.arange(n * n).reshape(n, n)
    m.point(a)
    m.assign(a, a.T)
    m.point(a)
    a[:, ::2] = 5
    return {"a": a, "t": a.T}


@program(3, 60)
def write_to_a_flat_view(m: Arrays, n: int) -> Results:
    a = m.arange(n * n).reshape(n, n)
    v = m.flatten(a)
    m.point(v)
    v[1:3] = 5
    m.point(a)
    return {"a": a, "v": v}


@program(3, 5000)
def view_of_what_is_not_there_yet(m: Arrays, n: int) -> Results:
    x = m.arange(n)
    y = x * 2
    z = y[:1]
    y[0] = 99
    m.point(z)
    return {"z": z, "y": y, "x": x}


@program(3, 5000)
def realised_in_the_middle(m: Arrays, n: int) -> Results:
    x = m.arange(n) * 2
    y = x + 1
    m.point(x)
    m.point(y)
    return {"y": y, "x": x}


@program(4, 24)
def product_used_twice(m: Arrays, n: int) -> Results:
    a = m.arange(n * n, "int32").reshape(n, n) % 5
    h = a @ a
    s = h.sum()
    m.point(s)
    g = h.max()
    m.point(g)
    return {"s": s, "g": g, "h": h}


@program(8, 300)
def doubling(m: Arrays, n: int) -> Results:
    x = m.arange(n, "int32")
    for i in range(64):
        x = x + m.roll(x, 1)
        if i % 20 == 7:
            m.point(x)
    return {"x": x}


@program(4, 3000)
def chains_of_clones(m: Arrays, n: int) -> Results:
    a = m.arange(n)
    b = m.clone(a)
    b[0] = 50
    c = m.clone(b)
    m.point(b)
    a += 1
    c[-1] = a[-1] * 2
    m.point(c, a)
    b *= c
    return {"c": c, "b": b, "a": a}


@program(4, 300)
def rows_in_a_loop(m: Arrays, n: int) -> Results:
    a = m.zeros(n, 3)
    x = m.arange(3)
    for i in range(n):
        a[i] = x * i
        if i == n // 2:
            m.point(a)
            x += 1
    return {"a": a, "x": x, "row": a[n // 2]}


@program(3, 1000)
def momentum(m: Arrays, n: int) -> Results:
    w, v = m.arange(n), m.zeros(n)
    for _ in range(8):
        g = w - 1
        m.assign(v, v + g)
        m.assign(w, w - v)
        m.point(w)
    return {"v": v, "w": w}


@program(6, 600)
def views_of_views(m: Arrays, n: int) -> Results:
    a = m.arange(n * 2).reshape(2, n)
    even = a[:, ::2]
    last = even[1][::-1]
    column = even.T[0]
    last[:2] = 100
    column += 1
    m.point(column, a)
    even[0, 1:] = last[1:]
    b = even + 0
    last *= 2
    return {"b": b, "a": a, "even": even, "last": last, "column": column}


# --------------------------------------------------------------------------------------------- the tests

CASES = [(name, n) for name, (_, sizes) in PROGRAMS.items() for n in sizes]


def expected_of(name: str, n: int) -> dict[str, Any]:
    return {key: np.array(value) for key, value in PROGRAMS[name][0](OfNumPy(), n).items()}


def check(tensors: Results, expected: dict[str, Any], order: list[str]) -> None:
    arrays = {key: tensors[key].numpy() for key in order}
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, expected[key], err_msg=key, strict=array.dtype == expected[key].dtype)


@pytest.mark.parametrize(("name", "n"), CASES)
def test_building_runs_nothing_and_the_end_is_right(name: str, n: int) -> None:
    counters.reset()
    tensors = PROGRAMS[name][0](OfWeft("at the end", 0), n)
    assert counters.kernels == 0
    check(tensors, expected_of(name, n), list(tensors))


@pytest.mark.parametrize(("name", "n"), CASES)
def test_read_backwards(name: str, n: int) -> None:
    tensors = PROGRAMS[name][0](OfWeft("at the end", 0), n)
    check(tensors, expected_of(name, n), list(tensors)[::-1])


@pytest.mark.parametrize(("name", "n"), CASES)
def test_realised_together(name: str, n: int) -> None:
    tensors = PROGRAMS[name][0](OfWeft("together", 0), n)
    first, *others = tensors.values()
    first.realize(*others)
    kernels = counters.kernels
    check(tensors, expected_of(name, n), list(tensors))
    assert counters.kernels == kernels  # reading what is realised is a copy


@pytest.mark.parametrize(("name", "n", "seed"), [(name, n, s) for name, n in CASES for s in range(2 if n >= 1000 else 6)])
def test_realised_at_random(name: str, n: int, seed: int) -> None:
    tensors = PROGRAMS[name][0](OfWeft("at random", seed), n)
    check(tensors, expected_of(name, n), random.Random(seed).sample(list(tensors), len(tensors)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_one_result_is_wanted(name: str) -> None:
    n = PROGRAMS[name][1][1]
    expected = expected_of(name, n)
    for key, value in expected.items():
        tensor = PROGRAMS[name][0](OfWeft("at the end", 0), n)[key]  # all else is gone
        np.testing.assert_array_equal(tensor.numpy(), value)


def test_what_is_realised_is_not_computed_again() -> None:
    x = (Tensor(np.ones((64, 64), np.float32)) * 2).sum(axis=1)
    y = x + 1
    x.realize()
    counters.reset()
    y.realize()
    assert counters.kernels == 1
    assert counters.bytes <= 2 * x.nbytes()  # x is read, not the 64 x 64 beneath it


def test_one_product_serves_two_reductions() -> None:
    a = Tensor(np.arange(256, dtype=np.float32).reshape(16, 16) % 7)
    h = a @ a
    total = h.sum().item()
    assert h.is_realized()
    expected = (np.arange(256).reshape(16, 16) % 7) @ (np.arange(256).reshape(16, 16) % 7)
    assert (total, h.max().item()) == (expected.sum(), expected.max())


def test_an_array_keeps_its_values() -> None:
    a = Tensor([1.0, 2.0, 3.0])
    first = a.numpy(copy=False)
    a += 1
    second = a.realize().numpy(copy=False)
    a[1] = 50
    assert not first.flags.writeable and not second.flags.writeable
    assert (first.tolist(), second.tolist(), a.tolist()) == ([1, 2, 3], [2, 3, 4], [2, 50, 4])


def test_threads_realise_what_they_share() -> None:
    for _ in range(20):
        x = Tensor(np.arange(100, dtype=np.float32)) + 1
        shared = (x * 2).sum()
        results: dict[int, Any] = {}

        def work(i: int, x: Tensor = x, shared: Tensor = shared, results: dict[int, Any] = results) -> None:
            mine = x * i
            mine[i] = shared
            results[i] = mine.sum().item()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {i: i * 5050 - i * (i + 1) + 10100 for i in range(8)}


def test_data_is_copied() -> None:
    data = np.arange(4)
    a = Tensor(data)
    data[0] = 9
    assert a.tolist() == [0, 1, 2, 3] and a.dtype == dtypes.int64


def test_errors_leave_everything_as_it_was() -> None:
    a = Tensor.arange(6).reshape(2, 3)
    view, result = a[1], a + 1
    for wrong in (lambda: a.assign(Tensor.zeros(4)), lambda: a.__setitem__((2, 0), 1), lambda: a.reshape(4, 2),
                  lambda: a.expand(2, 2, 3).__iadd__(1), lambda: a.__iadd__(Tensor.zeros(2, 2, 3, dtype=dtypes.int32))):
        with pytest.raises(weft.Error):
            wrong()
    assert (a.tolist(), view.tolist(), result.tolist()) == ([[0, 1, 2], [3, 4, 5]], [3, 4, 5], [[1, 2, 3], [4, 5, 6]])
