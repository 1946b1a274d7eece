"""The reference evaluator on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft._core import DType, Ops, UOp, evaluate_bits
from weft.errors import DTypeError

Array = npt.NDArray[Any]

try:
    import ml_dtypes

    _NARROW_FLOATS: dict[str, np.dtype[Any]] = {
        "bfloat16": np.dtype(ml_dtypes.bfloat16),
        "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
        "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    }
except ImportError:  # then arrays hold the bits
    _NARROW_FLOATS = {
        "bfloat16": np.dtype(np.uint16),
        "float8_e4m3": np.dtype(np.uint8),
        "float8_e5m2": np.dtype(np.uint8),
    }


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype of one lane; index is int64."""
    name = dtype.element.name
    if name in _NARROW_FLOATS:
        return _NARROW_FLOATS[name]
    return np.dtype(np.int64 if name == "index" else name)


def evaluate(root: UOp, buffers: dict[int, Array] | None, variables: Mapping[str, int] | None) -> Any:
    """UOp.evaluate."""
    memory = {} if buffers is None else buffers
    types = dict(_memory(root))
    given = {}
    for number, array in memory.items():
        if number in types:
            given[number] = _data_of_array(array, types[number], number)
    results, after = evaluate_bits(root, given, dict(variables or {}))
    for number, (dtype, shape, bits) in after.items():
        if number not in given:
            memory[number] = _array_of_data(dtype, shape, bits)
        elif bits != given[number][2]:
            memory[number][...] = _array_of_data(dtype, shape, bits).reshape(memory[number].shape)
    arrays = tuple(None if d.is_void else _array_of_data(d, shape, bits) for d, shape, bits in results)
    return arrays if root.op is Ops.SINK else arrays[0]


def _memory(root: UOp) -> Iterator[tuple[int, DType]]:
    """The id and dtype of the memory that a graph names, outside of the kernels in it."""
    nodes = root.toposort()
    has_kernels = any(u.op is Ops.KERNEL for u in nodes)
    for u in nodes:
        if u.op is Ops.BUFFER or (u.op is Ops.DEFINE_GLOBAL and not has_kernels):
            yield u.arg, u.dtype.pointee


def _data_of_array(array: Array, dtype: DType, number: int) -> tuple[DType, list[int], bytes]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"[evaluate] buffer {number} must be a NumPy array, not {type(array).__name__}")
    if array.dtype != numpy_dtype(dtype):
        raise DTypeError(f"[evaluate] buffer {number} has dtype {array.dtype}; {dtype.name} is needed, "
                         f"which is NumPy's {numpy_dtype(dtype)}")
    flat = np.ascontiguousarray(array).reshape(-1)
    if dtype.is_float:
        wide = flat.view(f"u{flat.dtype.itemsize}").astype(np.uint64)
    else:
        wide = flat.astype(np.int64 if dtype.is_signed else np.uint64).view(np.uint64)
    return dtype, [len(flat) // dtype.lanes], wide.tobytes()


def _array_of_data(dtype: DType, shape: list[int], bits: bytes) -> Array:
    """The elements in the shape; the lanes of vectors are a last axis."""
    wide = np.frombuffer(bits, np.uint64)
    target = numpy_dtype(dtype)
    if dtype.is_float:
        flat = wide.astype(f"u{target.itemsize}").view(target)
    else:
        flat = wide.view(np.int64).astype(target) if dtype.is_signed else wide.astype(target)
    return flat.reshape([*shape, dtype.lanes] if dtype.is_vector else shape)
