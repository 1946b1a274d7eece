"""weft.check: a function beside the eager reference."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft._core import DType, Recording, Tensor
from weft._guards import walk
from weft.errors import CheckError

Result = TypeVar("Result")
Array = npt.NDArray[Any]
Site = tuple[str, int]

# By the digits of a float: (relative, absolute). Sums are made in another order than the reference's.
_TOLERANCES = {64: (1e-9, 1e-12), 32: (1e-4, 1e-5), 16: (2e-2, 1e-2), 8: (0.3, 0.1)}
_FOLDER = os.path.dirname(__file__) + os.sep


def check(function: Callable[..., Result], *args: Any, rtol: float | None = None, atol: float | None = None,
          **kwargs: Any) -> Result:
    """Runs a function as it is, compares what it gives with the eager reference, and returns it.

    The reference is the same function with every operation computed at once, unscheduled, by the
    evaluator of graphs. Compared are the tensors that the function returns, those that it writes and
    the gradients that it collects. Where they differ a CheckError names the first operation that does:
    its number, its line, and the first element. Floats may differ by rtol and atol, which follow from
    the dtype where they are not given.

    The function runs twice, and once more where there is a difference; what it wrote and the random
    numbers that it drew are put back in between. Memory of other libraries is not.

    >>> from weft import check
    >>> total = Tensor([1.0, 2.0])
    >>> def step(x):
    ...     total.assign(total + x)
    ...     return (total * x).sum()
    >>> check(step, Tensor([3.0, 4.0])).item(), total.tolist()
    (36.0, [4.0, 6.0])
    """
    result: Result = _Check(function, args, kwargs, rtol, atol).run()
    return result


class _Run:
    """One call of the function whose operations are recorded."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, *, is_eager: bool) -> None:
        self.sites: list[Site] = []
        sites = self.sites
        self.recording = Recording(is_eager, lambda: sites.append(_site()))
        self.recording.start()
        try:
            self.result = function(*args, **kwargs)
            if is_eager:
                _realize(_tensors(self.result))
        finally:
            self.recording.stop()


class _Check:
    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, rtol: float | None, atol: float | None) -> None:
        self.call = function, args, kwargs
        self.name = getattr(function, "__name__", type(function).__name__)
        self.rtol, self.atol = rtol, atol
        given = _tensors((args, kwargs))
        _realize(given)
        self.generators = {device: Tensor.get_rng_state(device).realize()
                           for device in {Tensor.empty(0).device, *(t.device for t in given)}}

    def run(self) -> Any:
        function, args, kwargs = self.call
        self._restart()
        reference = _Run(function, args, kwargs, is_eager=True)
        expected = _contents(reference.result, reference.recording)
        reference.recording.undo_in_own_memory()
        self._restart()
        result = function(*args, **kwargs)
        difference = self._difference(_contents(result, reference.recording), expected)
        if difference is None:
            return result
        found = self._first_operation(reference)
        raise CheckError(f"[check] {self.name}: {found or difference}")

    def _restart(self) -> None:
        for device, state in self.generators.items():
            Tensor.set_rng_state(state, device)

    def _first_operation(self, reference: _Run) -> str | None:
        """The run again with all results held, and computed together at its end."""
        reference.recording.undo()
        self._restart()
        kept = _Run(*self.call, is_eager=False)
        ours, theirs = kept.recording.operations(), reference.recording.operations()
        _realize([t for _, t in ours])
        for i, ((name, mine), (_, other)) in enumerate(zip(ours, theirs)):
            if mine.shape != other.shape or mine.dtype != other.dtype:
                return f"operation {i}, {_where(kept.sites[i])}, is {_kind(mine)}; the reference has {_kind(other)}: " \
                       f"the function does not do the same twice"
            text = self._compare(mine, other)
            if text is not None:
                return f"operation {i}, {name} to {_kind(mine)}, {_where(kept.sites[i])}: {text}"
        return None

    def _difference(self, ours: list[tuple[str, Tensor]], theirs: list[tuple[str, Tensor]]) -> str | None:
        if [name for name, _ in ours] != [name for name, _ in theirs]:
            return f"it gave {len(ours)} tensors, and {len(theirs)} at the second time"
        for (name, mine), (_, other) in zip(ours, theirs):
            text = self._compare(mine, other)
            if text is not None:
                return f"{name}, {_kind(mine)}: {text}"
        return None

    def _compare(self, ours: Tensor, theirs: Tensor) -> str | None:
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"it is {_kind(ours)}; the reference has {_kind(theirs)}"
        mine, other = _array(ours), _array(theirs)
        wrong = ~self._close(mine, other, ours.dtype)
        if not wrong.any():
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"element {at} is {mine[at]}; the reference has {other[at]} ({wrong.sum()} of {wrong.size} elements differ)"

    def _close(self, mine: Array, other: Array, dtype: DType) -> Array:
        if not dtype.is_float:
            return np.asarray(mine == other)
        rtol, atol = _TOLERANCES[dtype.bits]
        rtol, atol = rtol if self.rtol is None else self.rtol, atol if self.atol is None else self.atol
        return np.asarray(np.isclose(mine, other, rtol, atol, equal_nan=True))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in walk(tree) if isinstance(leaf, Tensor)]


def _realize(tensors: list[Tensor]) -> None:
    if tensors:
        tensors[0].realize(*tensors[1:])


def _contents(result: Any, changes: Recording) -> list[tuple[str, Tensor]]:
    """What is compared, by name: the result, and what the memory holds now that was changed."""
    found = [(f"result {i}", t.detach()) for i, t in enumerate(_tensors(result))]
    for i, (content, gradient) in enumerate(changes.changed()):
        found.append((f"written memory {i}", content))
        if gradient is not None:
            found.append((f"gradient {i}", gradient))
    _realize([t for _, t in found])
    return found


def _array(tensor: Tensor) -> Array:
    narrow = tensor.dtype.is_float and tensor.dtype.bits < 32
    return (tensor.float() if narrow else tensor).numpy(copy=False)


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} {tensor.shape}"


def _site() -> Site:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _where(site: Site) -> str:
    text = linecache.getline(*site).strip()
    return f"at {site[0]}:{site[1]}" + (f" `{text}`" if text else "")
