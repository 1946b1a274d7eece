"""Bytes of files as tensors: a map of the file is the memory of its tensors, where that can be."""

from __future__ import annotations

import math
import os
import secrets
from typing import Any, NoReturn, Union

import numpy as np
import numpy.typing as npt

from weft import dtypes
from weft._core import DType, MappedFile, Tensor, from_dlpack
from weft.errors import FileFormatError

Path = Union[str, "os.PathLike[str]"]
Bytes = npt.NDArray[np.uint8]

LARGEST = 2**63 - 1  # a size of an axis, or a number of bytes
MOST_AXES = 64


class File:
    """A file that tensors are read from. `what` names the function that reads it, in errors.

    Bytes are read as they are now; the map is touched by tensors alone, which look whether the file is
    still as long as it was.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.where = f"[{what}] {os.fspath(path)}"
        with open(path, "rb") as file:
            self._mapped = MappedFile.of(file.fileno())
        self.size = self._mapped.size

    def fail(self, text: str) -> NoReturn:
        raise FileFormatError(f"{self.where}: {text}")

    def read(self, begin: int, count: int) -> bytes:
        """The bytes of a part of the file, which is there."""
        return self._mapped.read(begin, count)

    def read_up_to(self, begin: int, count: int) -> bytes:
        """The same, or as many as there are."""
        begin = min(begin, self.size)
        return self.read(begin, min(count, self.size - begin))

    def tensor(self, begin: int, dtype: DType, shape: list[int], device: str | None, copy: bool = False) -> Tensor:
        """A tensor on a part of the file that is there, or on a copy: also where its elements are not aligned, and
        of bools, which are checked."""
        self.check_shape(dtype, shape)
        if dtype != dtypes.bool:
            return self._mapped.tensor(begin, shape, dtype, device or "", copy)
        data = np.frombuffer(self.read(begin, math.prod(shape)), np.uint8)
        check_bools(data, self.where)
        return tensor_of_array(data.view(np.bool_).reshape(shape), device)

    def check_shape(self, dtype: DType, shape: list[int]) -> None:
        """Sizes beside a 0 are those of an array, too."""
        if len(shape) > MOST_AXES or math.prod(size or 1 for size in shape) * dtype.itemsize > LARGEST:
            self.fail(f"{str(shape)[:80]} of {dtype.name} is no shape of an array")


def check_bools(data: Bytes, where: str) -> None:
    if data.size and int(data.max()) > 1:
        raise FileFormatError(f"{where}: a bool is the byte {data.max()}; 0 and 1 are allowed")


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
    return np.ascontiguousarray(tensor.numpy(copy=False)).reshape(-1).view(np.uint8)


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
