"""Files of NumPy: .npy holds one array, .npz is a zip archive of them. Arrays of Python objects, which are
pickles, are refused."""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from weft import dtypes
from weft._core import Tensor
from weft.errors import DTypeError, FileFormatError
from weft.nn._memory import MOST_AXES, Bytes, Path, map_file, tensor_of_array, write_file

_WRONG = (ValueError, TypeError, SyntaxError, tokenize.TokenError, EOFError, OverflowError, RecursionError, MemoryError,
          struct.error, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def npy_load(fn: Path, device: str | None = None) -> Tensor:
    """The array of a .npy file. Its memory is a map of the file, as with safe_load."""
    where = f"[npy_load] {os.fspath(fn)}"
    return tensor_of_array(_array_of_bytes(map_file(fn), where), device)


def npz_load(fn: Path, device: str | None = None) -> dict[str, Tensor]:
    """The arrays of a .npz file by name."""
    where = f"[npz_load] {os.fspath(fn)}"
    result = {}
    with open(fn, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    _fail(where, f"it holds {info.filename}; arrays are allowed")
                data = np.frombuffer(archive.read(info), np.uint8)
                result[info.filename[:-4]] = tensor_of_array(_array_of_bytes(data, where), device)
        except (*_WRONG, OSError) as error:
            if isinstance(error, FileFormatError):
                raise
            _fail(where, f"{type(error).__name__}: {error}")
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


def _array_of_bytes(data: Bytes, where: str) -> npt.NDArray[Any]:
    head = io.BytesIO(data[: 1 << 16].tobytes())
    form = np.lib.format
    try:
        version = form.read_magic(head)
        read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}.get(version)
        if read is None:
            _fail(where, f"version {version[0]}.{version[1]} of the format")
        shape, is_fortran, dtype = read(head)
    except _WRONG as error:
        if isinstance(error, FileFormatError):
            raise
        _fail(where, f"the header is none of an array: {error}")
    if dtype.hasobject or dtype.kind not in "biuf" or dtype.itemsize > 8:
        _fail(where, f"there are no tensors of NumPy's {dtype}")
    if len(shape) > MOST_AXES or not all(type(size) is int and size >= 0 for size in shape):
        _fail(where, f"{str(shape)[:80]} is no shape")
    content = data[head.tell() :]
    if content.size != math.prod(shape) * dtype.itemsize:
        _fail(where, f"{content.size} bytes of elements; {dtype} of {str(shape)[:80]} has other")
    if content.ctypes.data % dtype.itemsize != 0:
        content = content.copy()
    if dtype.kind == "b" and content.size and int(content.max()) > 1:
        _fail(where, f"a bool is the byte {content.max()}; 0 and 1 are allowed")
    array = content.view(dtype).reshape(shape, order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _bytes_of_tensor(tensor: Tensor, what: str) -> Any:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"[{what}] a Tensor is needed, not a {type(tensor).__name__}")
    if tensor.dtype in (dtypes.bfloat16, dtypes.float8_e4m3, dtypes.float8_e5m2):
        raise DTypeError(f"[{what}] NumPy has no {tensor.dtype.name}: cast to float32 first")
    memory = io.BytesIO()
    np.lib.format.write_array(memory, tensor.numpy(), allow_pickle=False)
    return memory.getbuffer()


def _fail(where: str, text: str) -> NoReturn:
    raise FileFormatError(f"{where}: {text}")
