"""Tar archives, compressed or not: the files in them as tensors. Work and memory are linear in the size of the file:
1,032 bytes may come of one, as in archives that deflate makes."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from weft._core import Tensor
from weft.errors import FileFormatError
from weft.nn._archive import MOST_OF_DEFLATE, Stream
from weft.nn._memory import File
from weft.nn._tensor_io import TensorIO

_BLOCK = 512
_CHUNK = 1 << 16
_ENTRY = 4096  # bytes that an entry counts for, beside its content
_MOST_OF_LZMA = 1 << 27  # bytes that its dictionary may have
_WITHOUT_CONTENT = b"123456"  # links, devices, folders
_GZIP = 16 + zlib.MAX_WBITS

# By how the file begins; each ends where its stream does, and another may follow.
_MACHINES: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(_GZIP),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_OF_LZMA),
}
_WRONG = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


class _Unpacked:
    """The bytes of an archive, one after the other, as far as they may come of a file of its size."""

    def __init__(self, source: io.RawIOBase, size: int, where: str) -> None:
        self.source = source
        self.where = where
        self.left = MOST_OF_DEFLATE * size
        start = source.read(6) or b""
        source.seek(0)
        make = next((m for begin, m in _MACHINES.items() if start.startswith(begin)), None)
        self.is_packed = make is not None
        self.parts = iter(lambda: source.read(_CHUNK) or b"", b"") if make is None else self.unpacked(make)
        self.waiting = b""
        self.at = 0  # the place in it

    def fail(self, text: str) -> NoReturn:
        raise FileFormatError(f"{self.where}: {text}")

    def unpacked(self, make: Callable[[], Any]) -> Iterator[bytes]:
        """Of one stream, or of several with zeros between them."""
        machine: Any = None
        while data := self.source.read(_CHUNK):
            while data:
                if machine is None:
                    data = data.lstrip(b"\0")
                    machine = make() if data else None
                    continue
                try:
                    yield from _parts(machine, data)
                except _WRONG as error:
                    self.fail(f"it is damaged: {str(error)[:200]}")
                data = machine.unused_data
                machine = None if machine.eof else machine
        if machine is not None:
            self.fail("it is cut off")

    def check_rest(self) -> None:
        """What is compressed has a checksum at its end."""
        for part in self.parts if self.is_packed else ():
            self.spend(len(part))

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            self.fail(f"more than {MOST_OF_DEFLATE} bytes come of one of the file")

    def take(self, count: int) -> bytes:
        """The next bytes, fewer where there are no more."""
        taken = []
        while count > 0:
            if self.at == len(self.waiting):
                part = next(self.parts, None)
                if part is None:
                    break
                self.waiting, self.at = part, 0
                self.spend(len(part))
            part = self.waiting[self.at : self.at + count]
            self.at += len(part)
            count -= len(part)
            taken.append(part)
        return b"".join(taken)


def _parts(machine: Any, data: bytes) -> Iterator[bytes]:
    """What comes of some bytes, not much at a time. zlib's machines say what they have not read, others that they have."""
    while True:
        yield machine.decompress(data, _CHUNK)
        data = getattr(machine, "unconsumed_tail", b"")
        if machine.eof or (not data and getattr(machine, "needs_input", True)):
            return


class _Tar:
    """The entries of an archive in order."""

    def __init__(self, unpacked: _Unpacked) -> None:
        self.unpacked = unpacked
        self.files: dict[str, bytes] = {}
        self.of_all: dict[str, bytes] = {}  # what headers say of all entries that follow, and of the next one
        self.of_next: dict[str, bytes] = {}
        count = 0
        while self.entry():
            count += 1
        if count == 0:
            self.fail("nothing is in it")
        unpacked.check_rest()

    def fail(self, text: str) -> NoReturn:
        self.unpacked.fail(f"no tar archive: {text}")

    def entry(self) -> bool:
        """False at the end."""
        head = self.unpacked.take(_BLOCK)
        if not head.strip(b"\0") and len(head) in (0, _BLOCK):
            return False
        self.check(head)
        self.unpacked.spend(_ENTRY)
        kind, size = head[156:157], self.number(head[124:136])
        if kind in b"xg":
            said = self.records(self.content(size))
            (self.of_next if kind == b"x" else self.of_all).update(said)
            return True
        if kind in b"LK":
            self.of_next["path" if kind == b"L" else "linkpath"] = self.content(size).partition(b"\0")[0]
            return True
        said, self.of_next = {**self.of_all, **self.of_next}, {}
        if kind == b"S" or any(key.startswith("GNU.sparse") for key in said):
            self.fail("a file that leaves out zeros")
        name = said.get("path", self.name(head))
        if kind in _WITHOUT_CONTENT:
            return True
        content = self.content(self.decimal(said["size"]) if "size" in said else size)
        if kind in b"7" or (kind in b"0\0" and not name.endswith(b"/")):
            self.files[name.decode("utf-8", "surrogateescape")] = content
        return True

    def check(self, head: bytes) -> None:
        """Its sum, of bytes with or without signs."""
        if len(head) != _BLOCK:
            self.fail("a header is cut off")
        others = head[:148] + b" " * 8 + head[156:]
        total = sum(others)
        if self.number(head[148:156]) not in (total, total - 256 * sum(byte > 127 for byte in others)):
            self.fail("the checksum of a header is another one")

    def number(self, field: bytes) -> int:
        if field[0] in (0x80, 0xFF):
            return int.from_bytes(field[1:], "big") - (256 ** (len(field) - 1) if field[0] == 0xFF else 0)
        digits = field.partition(b"\0")[0].strip()
        if not re.fullmatch(b"[0-7]*", digits):
            self.fail("a number of other digits than 0 to 7")
        return int(digits or b"0", 8)

    def decimal(self, digits: bytes) -> int:
        if not re.fullmatch(b"[0-9]{1,20}", digits):
            self.fail("a size that is no number")
        return int(digits)

    def name(self, head: bytes) -> bytes:
        name, prefix = head[:100].partition(b"\0")[0], head[345:500].partition(b"\0")[0]
        return prefix + b"/" + name if prefix and head[257:263] == b"ustar\0" else name

    def content(self, size: int) -> bytes:
        content = self.unpacked.take(size)
        if size < 0 or len(content) != size:
            self.fail(f"an entry of {size} bytes, of which {len(content)} are there")
        self.unpacked.take(-size % _BLOCK)
        return content

    def records(self, text: bytes) -> dict[str, bytes]:
        """Lines of a length, a key and a value."""
        said, at = {}, 0
        while at < len(text) and text[at] != 0:
            length, space, _ = text[at : at + 20].partition(b" ")
            end = at + self.decimal(length)
            key, equals, value = text[at + len(length) + 1 : end - 1].partition(b"=")
            if not space or not equals or end > len(text) or text[end - 1 : end] != b"\n":
                self.fail("a line of a header that is none")
            said[key.decode("utf-8", "replace")] = value
            at = end
        return said


def tar_extract(file: Tensor | str | os.PathLike[str]) -> dict[str, Tensor]:
    """The files of a tar archive by name, a tensor of bytes each. It may be compressed, as .gz, .bz2 or .xz.

    >>> import io, tarfile
    >>> memory = io.BytesIO()
    >>> with tarfile.open(fileobj=memory, mode="w") as archive:
    ...     entry = tarfile.TarInfo("a.txt")
    ...     entry.size = 3
    ...     archive.addfile(entry, io.BytesIO(b"abc"))
    >>> {name: t.tolist() for name, t in nn.state.tar_extract(Tensor(memory.getvalue())).items()}
    {'a.txt': [97, 98, 99]}
    """
    if isinstance(file, Tensor):
        unpacked = _Unpacked(TensorIO(file), file.nbytes(), "[tar_extract]")
    else:
        opened = File(file, "tar_extract")
        unpacked = _Unpacked(Stream(opened), opened.size, opened.where)
    return {name: Tensor(content) for name, content in _Tar(unpacked).files.items()}
