"""Files of NumPy: .npy holds one array, .npz is a zip archive of them. Arrays of Python objects, which are
pickles, are refused."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft import dtypes
from weft._core import DType, Tensor
from weft.errors import DTypeError
from weft.nn._archive import Archive
from weft.nn._memory import MOST_AXES, Bytes, File, Path, check_bools, tensor_of_array, write_file

_MOST_OF_HEADER = 1 << 16
# What NumPy raises on a header, which it parses as Python: MemoryError is that of many parentheses.
_WRONG = (ValueError, TypeError, SyntaxError, tokenize.TokenError, EOFError, OverflowError, RecursionError, MemoryError,
          struct.error, LookupError, AttributeError)


class _Header(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    begin: int  # of the elements


def npy_load(fn: Path, device: str | None = None) -> Tensor:
    """The array of a .npy file. Its memory is a map of the file, as with safe_load."""
    file = File(fn, "npy_load")
    header = _header(file, file.read_up_to(0, _MOST_OF_HEADER), file.size)
    is_native = header.dtype.newbyteorder("=") == header.dtype
    if not is_native or header.is_fortran:
        content = np.frombuffer(file.read(header.begin, file.size - header.begin), np.uint8)
        return tensor_of_array(_array(file, header, content), device)
    return file.tensor(header.begin, DType(header.dtype.name), list(header.shape), device)


def npz_load(fn: Path, device: str | None = None) -> dict[str, Tensor]:
    """The arrays of a .npz file by name. They are read now; what is compressed is so by deflate, as NumPy does it."""
    file = File(fn, "npz_load")
    archive = Archive(file)
    result = {}
    for name, entry in archive.entries.items():
        if not name.endswith(".npy"):
            file.fail(f"it holds {name[:80]}; arrays are allowed")
        data = archive.read(entry)
        header = _header(file, data[:_MOST_OF_HEADER], len(data))
        content = np.frombuffer(data, np.uint8, offset=header.begin)
        result[name[:-4]] = tensor_of_array(_array(file, header, content), device)
    return result


def npy_save(tensor: Tensor, fn: Path) -> None:
    """Writes a .npy file."""
    write_file(fn, [_bytes_of_tensor(tensor, "npy_save")])


def npz_save(tensors: Mapping[str, Tensor], fn: Path) -> None:
    """Writes a .npz file, uncompressed."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, tensor in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(_bytes_of_tensor(tensor, "npz_save"))
    write_file(fn, [memory.getbuffer()])


def _header(file: File, start: bytes, size: int) -> _Header:
    """The header of an array of `size` bytes with it, which `start` has all of."""
    head = io.BytesIO(start)
    form = np.lib.format
    try:
        version = form.read_magic(head)
        read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"version {version[0]}.{version[1]} of the format")
        shape, is_fortran, dtype = read(head)
    except _WRONG as error:
        file.fail(f"the header is none of an array: {str(error)[:200]}")
    if dtype.hasobject or dtype.kind not in "biuf" or dtype.itemsize > 8:
        file.fail(f"there are no tensors of NumPy's {str(dtype)[:80]}")
    if len(shape) > MOST_AXES or not all(type(n) is int and n >= 0 for n in shape):
        file.fail(f"{str(shape)[:80]} is no shape")
    native = DType(dtype.newbyteorder("=").name)
    file.check_shape(native, list(shape))
    content = size - head.tell()
    if content != math.prod(shape) * dtype.itemsize:
        file.fail(f"{content} bytes of elements; {dtype} of {str(shape)[:80]} has other")
    return _Header(dtype, shape, is_fortran, head.tell())


def _array(file: File, header: _Header, content: Bytes) -> npt.NDArray[Any]:
    dtype = header.dtype
    if content.ctypes.data % dtype.itemsize != 0:
        content = content.copy()
    if dtype.kind == "b":
        check_bools(content, file.where)
    array = content.view(dtype).reshape(header.shape, order="F" if header.is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _bytes_of_tensor(tensor: Tensor, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"[{what}] a Tensor is needed, not a {type(tensor).__name__}")
    if tensor.dtype in (dtypes.bfloat16, dtypes.float8_e4m3, dtypes.float8_e5m2):
        raise DTypeError(f"[{what}] NumPy has no {tensor.dtype.name}: cast to float32 first")
    memory = io.BytesIO()
    np.lib.format.write_array(memory, tensor.numpy(copy=False), allow_pickle=False)
    return memory.getbuffer()
