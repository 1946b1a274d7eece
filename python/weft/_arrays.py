"""Between NumPy arrays and weft: the data of tensors, and the reference evaluator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft import dtypes
from weft._core import DType, Ops, UOp, default_float, default_int, evaluate_bits
from weft.errors import DTypeError, ShapeError

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


_WEFT_DTYPES = {numpy_dtype(t): t for t in (*dtypes.ints, dtypes.bool, dtypes.float16, dtypes.float32, dtypes.float64)}
_WEFT_DTYPES.update({t: DType(name) for name, t in _NARROW_FLOATS.items() if t.kind not in "iu"})


def bytes_of_data(data: Any, dtype: DType | None) -> tuple[Array, list[int], DType]:
    """The elements as bytes (of the array that was given, where they lie there in order), shape and dtype of what
    Tensor(data, dtype) is given; the dtype is one that holds the data exactly where it is not the one asked for."""
    array: Any
    if isinstance(data, (bytes, bytearray, memoryview)):
        array = _array_of_buffer(np.frombuffer(data, np.uint8), dtype)
    elif isinstance(data, os.PathLike):
        array = _array_of_buffer(np.fromfile(data, np.uint8), dtype)
    else:
        array = data if isinstance(data, (np.ndarray, np.generic)) else _array_of_list(data, dtype)
    array = np.asarray(array)
    native = array.dtype.newbyteorder("=")
    if native not in _WEFT_DTYPES:
        raise DTypeError(f"[tensor] there are no tensors of NumPy's {array.dtype}")
    in_order = np.ascontiguousarray(array.astype(native, copy=False))
    return in_order.reshape(-1).view(np.uint8), list(array.shape), _WEFT_DTYPES[native]


def _array_of_buffer(data: Array, dtype: DType | None) -> Array:
    """The elements of raw memory: bytes, unless a dtype is given."""
    target = np.dtype(np.uint8) if dtype is None else numpy_dtype(dtype)
    if data.size % target.itemsize:
        raise ShapeError(f"[tensor] {data.size} bytes are no whole number of elements of {target}")
    return data.view(target)


def _array_of_list(data: Any, dtype: DType | None) -> Array:
    if not isinstance(data, (list, tuple)):
        raise TypeError(f"[tensor] a number, a list, a NumPy array or a Tensor is needed, not {type(data).__name__}")
    try:
        array = np.array(data)
    except ValueError:
        raise ShapeError("[tensor] lists side by side must have the same length") from None
    kind = array.dtype.kind
    if kind == "O" or kind not in "biuf":
        raise DTypeError(f"[tensor] a list holds numbers of at most 64 bits, not {_other_than_a_number(data)}")
    if array.size == 0 or (kind == "f" and dtype is None):
        with np.errstate(over="ignore"):
            return array.astype(numpy_dtype(default_float()))
    if kind in "iu":
        wanted = numpy_dtype(default_int()) if dtype is None else numpy_dtype(dtype) if dtype.is_int else array.dtype
        low, high = int(array.min()), int(array.max())
        if wanted.kind in "iu" and not (np.iinfo(wanted).min <= low and high <= np.iinfo(wanted).max):
            raise DTypeError(f"[tensor] {low if low < np.iinfo(wanted).min else high} is not a value of {wanted}")
        return array.astype(wanted)
    if kind == "f" and dtype is not None and dtype.is_int:
        info = np.iinfo(numpy_dtype(dtype))
        whole = np.trunc(array)  # both ends are exact as floats: the upper one is past the last value
        out = array[~((whole >= float(info.min)) & (whole < float(info.max // 2 + 1) * 2))]
        if out.size:
            raise DTypeError(f"[tensor] {out.flat[0]} is not a value of {dtype.name}")
    return array


def _other_than_a_number(data: Any) -> str:
    while isinstance(data, (list, tuple)):
        data = next((x for x in data if isinstance(x, (list, tuple)) or not isinstance(x, (bool, int, float))), data[0])
    return repr(data)


def array_of_bytes(flat: Array, dtype: DType, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Array:
    """The bytes as elements, strides and offset counted in them; it cannot be written."""
    target = numpy_dtype(dtype)
    width = target.itemsize
    array: Array = np.ndarray(shape, target, flat if flat.size else b"", offset * width, [s * width for s in strides])
    array.flags.writeable = False
    return array


def array_as(array: Array, dtype: Any, copy: bool | None) -> Array:
    """Tensor.__array__."""
    wanted = array.dtype if dtype is None else np.dtype(dtype)
    if copy is False and wanted != array.dtype:
        raise ValueError(f"[array] {array.dtype} becomes {wanted} in a copy alone, which copy=False forbids")
    return array.astype(wanted, copy=bool(copy))


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
