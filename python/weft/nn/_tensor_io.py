"""Tensors of bytes as files, and the files in archives as tensors."""

from __future__ import annotations

import io
import os
import pathlib
import tarfile
from typing import Any

from weft import dtypes
from weft._core import Tensor
from weft.errors import DTypeError, ShapeError


class TensorIO(io.RawIOBase):
    """A vector of bytes as a file to read.

    >>> from weft.nn.state import TensorIO
    >>> file = TensorIO(Tensor(b"some text"))
    >>> file.seek(5), file.read()
    (5, b'text')
    """

    def __init__(self, tensor: Tensor) -> None:
        if tensor.ndim != 1:
            raise ShapeError(f"[TensorIO] a vector is needed, not {tensor.shape}")
        if tensor.dtype != dtypes.uint8:
            raise DTypeError(f"[TensorIO] a tensor of bytes is needed, not of {tensor.dtype.name}")
        self._tensor = tensor
        self._place = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The bytes from here on, as many as there is room for."""
        part = self._tensor[self._place:self._place + len(buffer)]
        count = part.shape[0]
        buffer[:count] = part.numpy(copy=False).tobytes()
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes to a place, counted from the start, from here or from the end; one outside is an end."""
        size = self._tensor.shape[0]
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: size}[whence]
        self._place = min(max(start + offset, 0), size)
        return self._place


def tar_extract(file: Tensor | str | os.PathLike[str]) -> dict[str, Tensor]:
    """The files of a tar archive, compressed or not, by name: a tensor of bytes each. What is none is tarfile.ReadError.

    >>> import io, tarfile
    >>> memory = io.BytesIO()
    >>> with tarfile.open(fileobj=memory, mode="w") as archive:
    ...     entry = tarfile.TarInfo("a.txt")
    ...     entry.size = 3
    ...     archive.addfile(entry, io.BytesIO(b"abc"))
    >>> {name: t.tolist() for name, t in nn.state.tar_extract(Tensor(memory.getvalue())).items()}
    {'a.txt': [97, 98, 99]}
    """
    data = file if isinstance(file, Tensor) else Tensor(pathlib.Path(file))
    with tarfile.open(fileobj=io.BufferedReader(TensorIO(data)), mode="r:*") as archive:
        entries = [entry for entry in archive if entry.isfile()]
        return {entry.name: Tensor(_content(archive, entry)) for entry in entries}


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(entry)
    return b"" if content is None else content.read()
