"""Bytes of files as tensors: a map of the file is the memory of its tensors, where that can be."""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from weft import dtypes
from weft._core import DType, Tensor, from_dlpack
from weft.errors import FileFormatError

Path = Union[str, "os.PathLike[str]"]
Bytes = npt.NDArray[np.uint8]

LARGEST = 2**63 - 1  # a size of an axis, or a number of bytes
MOST_AXES = 64

_BITS: dict[DType, np.dtype[Any]] = {
    dtypes.bfloat16: np.dtype(np.uint16),
    dtypes.float8_e4m3: np.dtype(np.uint8),
    dtypes.float8_e5m2: np.dtype(np.uint8),
}


def map_file(path: Path) -> Bytes:
    """The bytes of a file, read when they are used. They cannot be written."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.empty(0, np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def tensor_of_bytes(data: Bytes, dtype: DType, shape: list[int], device: str | None, where: str) -> Tensor:
    """A tensor on this memory, or on a copy of it where its elements are not aligned. `where` is what
    an error begins with."""
    if data.size == 0:
        return Tensor.empty(shape, dtype=dtype, device=device)
    native: np.dtype[Any] = _BITS.get(dtype) or np.dtype(dtype.name)
    if data.ctypes.data % native.itemsize != 0:
        data = data.copy()
    if dtype == dtypes.bool and int(data.max()) > 1:
        raise FileFormatError(f"{where}: a bool is the byte {data.max()}; 0 and 1 are allowed")
    tensor = tensor_of_array(data.view(native), device).reshape(shape)
    return tensor.bitcast(dtype) if dtype in _BITS else tensor


def tensor_of_array(array: npt.NDArray[Any], device: str | None) -> Tensor:
    """A tensor on the memory of an array that nobody will write to."""
    if array.size == 0:
        return Tensor(array, device=device)
    array = array.view()
    array.flags.writeable = False
    try:
        return from_dlpack(array, device)
    except BufferError:  # of NumPy before 2.1, which lends no read-only memory
        return Tensor(array, device=device)


def bytes_of_tensor(tensor: Tensor) -> Bytes:
    """The elements in row-major order."""
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)


def write_file(path: Path, parts: list[Any]) -> None:
    """The file has all parts, or is what it was: they are written beside it and take its place."""
    target = os.path.realpath(path)
    beside = f"{target}.{secrets.token_hex(4)}.tmp"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
