"""Indices that are not computed yet: an error names the one that is out of range, and what cannot be is not checked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes, jit

N = 6
TABLE = np.arange(N, dtype=np.float32) * 10


def table() -> Tensor:
    return Tensor(TABLE)


def lazy(values: Any, dtype: Any = dtypes.int32) -> Tensor:
    return Tensor(values, dtype=dtype) + 0


@pytest.mark.parametrize("values, named", [([0, 6, 1], 6), ([0, -7, 1], -7), ([2**31 - 1], 2**31 - 1), ([-2**31], -2**31)])
def test_the_index_is_named(values: list[int], named: int) -> None:
    said = rf"^\[index\] {named} is out of bounds of axis 0 with size 6$"
    with pytest.raises(weft.IndexError, match=said):
        table()[lazy(values)].tolist()
    x = table()
    x[lazy(values)] = 1.0
    with pytest.raises(weft.IndexError, match=said):
        x.tolist()


@pytest.mark.parametrize("dtype, value, named", [
    ("int64", -2**63, -2**63 + 1), ("int64", 2**63 - 1, 2**63 - 1), ("int64", 2**40, 2**40), ("uint64", 2**63, 2**63 - 1),
    ("uint32", 2**32 - 1, 2**32 - 1), ("int8", -7, -7), ("uint8", 255, 255), ("int16", 6, 6)])
def test_the_index_is_named_in_every_dtype(dtype: str, value: int, named: int) -> None:
    index = Tensor(np.array([0, value], dtype)) + Tensor(np.array([0, 0], dtype))
    with pytest.raises(weft.IndexError, match=rf"{named} is out of bounds of axis 0 with size 6"):
        table()[index].tolist()


def test_axis_and_size_are_those_of_the_index() -> None:
    x = Tensor.arange(24).reshape(2, 3, 4)
    with pytest.raises(weft.IndexError, match="3 is out of bounds of axis 1 with size 3"):
        x[:, lazy([0, 3])].tolist()
    with pytest.raises(weft.IndexError, match="-5 is out of bounds of axis 2 with size 4"):
        x[lazy([1]), :, lazy([-5])].tolist()
    with pytest.raises(weft.IndexError, match="7 is out of bounds of axis 1 with size 3"):
        x.gather(1, lazy([[[7]]])).tolist()
    with pytest.raises(weft.IndexError, match="2 is out of bounds of axis 0 with size 2"):
        x.index_add(0, lazy([2]), x[:1]).tolist()


def test_an_axis_without_elements_has_no_index() -> None:
    for index in (Tensor([0]), lazy([0])):
        with pytest.raises(weft.IndexError, match="axis 0 has size 0"):
            Tensor.zeros(0)[index]
    assert Tensor.zeros(0)[lazy([])].shape == (0,)


def test_the_index_of_each_replay_is_named() -> None:
    x = table()

    @jit
    def f(index: Tensor) -> Tensor:
        return x[index + 1] * 2

    for _ in range(3):
        assert f(Tensor([0, 4])).tolist() == [20, 100]
    for bad in (8, 5):
        with pytest.raises(weft.IndexError, match=f"{bad + 1} is out of bounds of axis 0 with size 6"):
            f(Tensor([0, bad]))
    assert f(Tensor([0, 1])).tolist() == [20, 40]


# -------------------------------------------------------------------------------------------- many checks

MANY = 40


def many(bad: dict[int, int]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Writes by so many indices to one tensor, what is read by each from another one, and writes by each to one of its own."""
    places = [k % N for k in range(MANY)]
    for k, index in bad.items():
        places[k] = index
    i = lazy(places)
    written, reads, own = table(), [], []
    for k in range(MANY):
        written[i[k]] = float(k)
        reads.append(table()[i[k]] + 1)
        own.append(table())
        own[-1][i[k]] = -1.0
    return written, reads, own


def expect_one(x: Tensor, index: int) -> None:
    with pytest.raises(weft.IndexError, match=rf"^\[index\] {index} is out of bounds of axis 0 with size 6$"):
        x.tolist()


def test_what_failed_by_one_of_many_checks_fails_and_nothing_else() -> None:
    written, reads, own = many({7: 9, 30: -8})
    with pytest.raises(weft.IndexError, match="9 is out of bounds"):
        written.realize(*reads, *own)
    for _ in range(2):
        expect_one(written, 9)
        for k, (read, x) in enumerate(zip(reads, own, strict=True)):
            if k in (7, 30):
                for failed in (read, x):
                    expect_one(failed, 9 if k == 7 else -8)
            else:
                assert read.item() == k % N * 10 + 1
                assert x.tolist() == [-1 if n == k % N else n * 10 for n in range(N)]


def test_many_checks_are_one_output() -> None:
    written, reads, own = many({})
    together = written.schedule(*reads, *own)
    assert sum(kernel.buffers for kernel in together) <= 3 * MANY  # what is read and written, and hardly more
    written.realize(*reads, *own)
    assert written.tolist() == [float(max(k for k in range(MANY) if k % N == n)) for n in range(N)]


def test_what_is_computed_later_with_an_index_that_was_checked() -> None:
    places = lazy([1, 2, 3, 4, 9, 5])
    later = [table()[places[k]] for k in range(6)]
    doubled = [x * 2 for x in later]
    with pytest.raises(weft.IndexError, match="9 is out of bounds"):
        doubled[0].realize(*doubled[1:])
    for k, expected in enumerate([30, 60, 90, 120, None, 150]):
        if expected is None:
            expect_one(later[k] * 3, 9)
        else:
            assert (later[k] * 3).item() == expected


# ------------------------------------------------------------------------------------ what is not checked

X = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, -4.0]], np.float32)
KNOWN: dict[str, Callable[[], Tensor]] = {
    "arange": lambda: Tensor.arange(N),
    "arange by steps": lambda: Tensor.arange(1, N, 2),
    "arange from the end": lambda: Tensor.arange(-1, -N - 1, -1),
    "arange backwards": lambda: N - 1 - Tensor.arange(N),
    "argmax": lambda: Tensor(X).argmax(1),
    "argmin": lambda: Tensor(X).argmin(0),
    "argmax of all": lambda: Tensor(X).argmax(),
    "argsort": lambda: Tensor(X).argsort(1),
    "argsort of many": lambda: (Tensor.arange(100) % 5).float().argsort()[:3] % N,
    "constant": lambda: Tensor.full((3,), 4),
    "remainder": lambda: (Tensor(X) * 100).cast("int32") % N,
    "clip": lambda: (Tensor(X) * 100).cast("int32").clip(0, N - 1),
    "comparison": lambda: (Tensor(X) > 1).cast("int32"),
    "choice": lambda: (Tensor(X) > 1).where(Tensor.full((), N - 1), Tensor.full((), -N)),
    "bits": lambda: (Tensor(X) * 100).cast("int32") & 3,
    "uint8 of few": lambda: (Tensor(np.arange(3, dtype=np.uint8)) + 0).minimum(5).cast("int16"),
    "views": lambda: Tensor.arange(N).reshape(2, 3).T[::-1].expand(2, 3, 2),
}
UNKNOWN: dict[str, Callable[[], Tensor]] = {
    "memory": lambda: Tensor.arange(N) + Tensor([0]),
    "one more": lambda: Tensor.arange(N + 1)[:N] + 0,
    "floats": lambda: Tensor(X).cast("int32"),
    "negative past the end": lambda: Tensor.arange(0, -N - 2, -1)[:N],
    "wraps": lambda: Tensor.arange(3) + 2**30 + 2**30 + 2**30 + 2**30,
}


def kernels_of(index: Callable[[], Tensor]) -> int:
    """Of a read; nobody holds the index, which would be stored too."""
    read = table()[index()]
    weft.counters.reset()
    read.realize()
    return weft.counters.kernels


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_is_not_checked(name: str) -> None:
    assert kernels_of(KNOWN[name]) == kernels_of(lambda: KNOWN[name]().clip(-N, N - 1))
    np.testing.assert_array_equal(table()[KNOWN[name]()].numpy(), TABLE[KNOWN[name]().numpy()])


def test_one_kernel_where_there_is_no_check_and_two_where_there_is() -> None:
    assert kernels_of(lambda: Tensor.arange(N)) == kernels_of(lambda: lazy([1, 2]) % N) == 1
    assert kernels_of(lambda: lazy([1, 2])) == 2


def test_writes_too() -> None:
    def kernels(index: Callable[[], Tensor]) -> int:
        x = table()
        x[index()] = 5.0
        weft.counters.reset()
        x.realize()
        return weft.counters.kernels

    assert kernels(lambda: lazy([1, 2]) % N) < kernels(lambda: lazy([1, 2]))


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_be_out_of_range_is_checked(name: str) -> None:
    assert kernels_of(UNKNOWN[name]) > kernels_of(lambda: UNKNOWN[name]().clip(-N, N - 1))
    np.testing.assert_array_equal(table()[UNKNOWN[name]()].numpy(), TABLE[UNKNOWN[name]().numpy()])


def test_long_graphs_are_looked_at_in_part() -> None:
    index = Tensor.arange(N)
    for _ in range(2000):
        index = (index + 1) % N
    assert table()[index].tolist() == [TABLE[(i + 2000) % N] for i in range(N)]
