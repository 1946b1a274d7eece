"""Functions of the array API on elements in order: weft.array_api has them all."""

from __future__ import annotations

from typing import NamedTuple, Union

from weft import dtypes
from weft._core import Tensor


def searchsorted(x1: Tensor, x2: Union[Tensor, bool, int, float], /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The places in x1, which is in order, or is when read by `sorter`, where elements of x2 go: before equal ones, or
    on the right of them. NaN is larger than all. A binary search in the graph: nothing is computed.

    >>> from weft import array_api as xp
    >>> xp.searchsorted(Tensor([1, 3, 3, 7]), Tensor([3, 0, 9]), side="right").tolist()
    [3, 0, 4]
    """
    if x1.ndim != 1:
        raise ValueError(f"[searchsorted] x1 has {x1.ndim} axes; it must have one")
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] there is no side {side!r}; allowed are 'left' and 'right'")
    wanted = x2 if isinstance(x2, Tensor) else Tensor(x2, device=x1.device)
    count = x1.shape[0] if sorter is None else sorter.shape[0]

    def is_before(a: Tensor, b: Tensor) -> Tensor:
        before = (a < b) | ((b != b) & (a == a))  # NaNs are last
        return before if side == "left" else before | (a == b) | ((a != a) & (b != b))

    place = Tensor.zeros(wanted.shape, dtype=dtypes.int32 if count < 2**31 else dtypes.int64, device=x1.device)
    for bit in reversed(range(count.bit_length())):
        further = place + 2**bit
        at = (further - 1).clip(0, count - 1)
        element = x1[at if sorter is None else sorter[at]]
        place = ((further <= count) & is_before(element, wanted)).where(further, place)
    return place


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


class _Runs:
    """The elements of a tensor in order, and where one begins that is not equal to the one before it. NaNs are all
    different."""

    def __init__(self, x: Tensor) -> None:
        self.shape, self.flat = x.shape, x.reshape(-1)
        self.order = self.flat.argsort()
        self.sorted = self.flat[self.order]
        first = Tensor.ones(min(1, self.flat.numel()), dtype=dtypes.bool, device=x.device)
        self.begins = first.cat(self.sorted[1:] != self.sorted[:-1])

    def values(self) -> Tensor:
        return self.sorted[self.begins]

    def indices(self) -> Tensor:
        return self.order[self.begins]

    def inverse(self) -> Tensor:
        number = self.begins.cast(dtypes.int32).cumsum(0) - 1
        result = Tensor.zeros(self.flat.shape, dtype=dtypes.int32, device=self.flat.device)
        result[self.order] = number
        return result.reshape(self.shape)

    def counts(self) -> Tensor:
        starts = self.begins.nonzero()[:, 0]
        return starts[1:].cat(Tensor([self.flat.numel()], dtype=starts.dtype, device=starts.device)) - starts \
            if starts.shape[0] else starts


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements, in order; computes x."""
    return _Runs(x).values()


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different elements in order, and how often each is there; computes x."""
    runs = _Runs(x)
    return UniqueCounts(runs.values(), runs.counts())


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different elements in order, and which of them each element of x is; computes x."""
    runs = _Runs(x)
    return UniqueInverse(runs.values(), runs.inverse())


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different elements in order, where each is first in x flattened, which of them each element of x is, and how
    often each is there; computes x.

    >>> from weft import array_api as xp
    >>> [t.tolist() for t in xp.unique_all(Tensor([5, 2, 5, 7]))]
    [[2, 5, 7], [1, 0, 3], [1, 0, 1, 2], [1, 2, 1]]
    """
    runs = _Runs(x)
    return UniqueAll(runs.values(), runs.indices(), runs.inverse(), runs.counts())
