"""Kernels for Triton: every op on the edges of every dtype, and the shapes of loops, gates and workgroups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from weft import errors
from weft.ir import DType, Ops, UOp, dtypes

Array = npt.NDArray[Any]
NARROW = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}
TYPES = [dtypes.bool, *dtypes.ints, dtypes.float8_e4m3, dtypes.float8_e5m2, dtypes.float16, dtypes.bfloat16,
         dtypes.float32, dtypes.float64]
# Those that are exact: what they give is the same bits everywhere.
OPS = [Ops.NEG, Ops.NOT, Ops.RECIP, Ops.SQRT, Ops.TRUNC, Ops.FLOOR, Ops.CEIL, Ops.ROUND, Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV,
       Ops.IDIV, Ops.MOD, Ops.CDIV, Ops.CMOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.CMPLT,
       Ops.CMPEQ, Ops.CMPNE, Ops.WHERE]


def numpy_type(dtype: DType) -> np.dtype[Any]:
    return np.dtype(NARROW.get(dtype.name, dtype.name))


def edges(dtype: DType) -> Array:
    kind = numpy_type(dtype)
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        info = np.iinfo(kind)
        wanted = [0, 1, 2, 3, 5, 7, 31, 63, 64, 100, info.max - 1, info.max, info.max // 2, info.max // 2 + 1,
                  2**24 - 1, 2**24 + 1, 2**53 + 1]
        wanted += [-v for v in wanted] + [info.min, info.min + 1]
        return np.array(sorted({v for v in wanted if info.min <= v <= info.max}), dtype=kind)
    with np.errstate(all="ignore"):
        positive = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 1e-40, 1e-310, 127.5, 128.0, 255.5, 32768.0, 65504.0, 65520.0,
                             2147483520.0, 2147483647.0, 2.0**31, 4294967295.0, 2.0**32, 2.0**63 - 1024, 2.0**63, 2.0**64,
                             1e30, 3.4028234663852886e38, 1e300, 0.1, 1 / 3, np.inf, np.nan]).astype(kind)
        return np.concatenate([positive, -positive])


def operands(dtype: DType) -> list[Array]:
    """All pairs of edges, and a third out of step."""
    e = edges(dtype)
    i, j = (k.reshape(-1) for k in np.meshgrid(np.arange(len(e)), np.arange(len(e)), indexing="ij"))
    return [e[i], e[j], e[(i * 7 + j * 3 + 1) % len(e)]]


class Place:
    """A place of each of `threads` threads of enough workgroups for `size` places."""

    def __init__(self, size: int, threads: int) -> None:
        group, thread = UOp.special("gidx0", -(-size // threads)), UOp.special("lidx0", threads)
        self.at = group * threads + thread
        self.gate = self.at < size
        self.size = size

    def load(self, dtype: DType, number: int) -> UOp:
        zero = UOp.const(dtype, 0)
        return UOp.define_global(dtype, self.size, number).index(self.at).load(self.gate, zero)

    def store(self, value: UOp, number: int) -> UOp:
        return UOp.define_global(value.dtype, self.size, number).index(self.at).assign(value, self.gate)


def all_ops(dtype: DType, threads: int) -> tuple[UOp, dict[int, Array], dict[int, str]]:
    """A kernel with every op on a dtype, its memory, and what its arguments are."""
    given = operands(dtype)
    size = len(given[0])
    condition = np.arange(size) % 3 == 1
    place = Place(size, threads)
    x = [place.load(dtype, k) for k in range(3)]
    c = place.load(dtypes.bool, 3)
    values: dict[str, UOp] = {}

    def keep(name: str, make: Callable[[], UOp]) -> None:
        try:
            values[name] = make()
        except (errors.DTypeError, errors.SpecError):
            pass  # the op does not take the dtype

    for op in OPS:
        if op is Ops.WHERE:
            keep("WHERE", lambda: c.alu(Ops.WHERE, x[0], x[1]))
        elif op in (Ops.NEG, Ops.NOT, Ops.RECIP, Ops.SQRT, Ops.TRUNC, Ops.FLOOR, Ops.CEIL, Ops.ROUND):
            keep(op.name, lambda op=op: x[0].alu(op))  # type: ignore[misc]
        else:
            keep(op.name, lambda op=op: x[0].alu(op, x[1]))  # type: ignore[misc]
            for number in (-1, 0, 3, 200):
                if not dtype.is_int or dtype.min <= number <= dtype.max:
                    keep(f"{op.name} by {number}",
                         lambda op=op, n=number: x[0].alu(op, UOp.const(dtype, n)))  # type: ignore[misc]
    for to in TYPES:
        keep(f"CAST to {to.name}", lambda to=to: x[0].cast(to))  # type: ignore[misc]
        if to.itemsize == dtype.itemsize:
            keep(f"BITCAST to {to.name}", lambda to=to: x[0].bitcast(to))  # type: ignore[misc]
    memory = {**dict(enumerate(given)), 3: condition}
    names, stores = {}, []
    for number, (name, value) in enumerate(values.items(), start=4):
        stores.append(place.store(value, number))
        memory[number] = np.zeros(size, numpy_type(value.dtype))
        names[number] = f"{name} of {dtype.name}"
    return UOp.sink(*stores), memory, names


def difference(got: Array, want: Array) -> Array:
    """Where they are not the same bits; the bits of a NaN do not count."""
    with np.errstate(all="ignore"):
        nan = (got != got) & (want != want)
    width = f"u{got.dtype.itemsize}"
    return np.flatnonzero((got.view(width) != want.view(width)) & ~nan)
