"""Tensors of bytes as files."""

from __future__ import annotations

import io
import os
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
