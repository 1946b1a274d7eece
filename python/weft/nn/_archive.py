"""Zip archives of PyTorch and NumPy: which bytes of the file an entry is. Work and memory are linear in the size
of the file: no two entries share a byte, and what is compressed is so by deflate, which makes 1,032 bytes of
one at most."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any, NamedTuple

from weft.errors import FileFormatError
from weft.nn._memory import File

MOST_OF_DEFLATE = 1032
_LOCAL = 30  # bytes of an entry before its name
_WRONG = (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, LookupError, OverflowError, struct.error)


class Stream(io.RawIOBase):
    """The bytes of the file, as they are now."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + {0: 0, 1: self.at, 2: self.file.size}[whence]
        if at < 0:
            raise ValueError(f"a place {-at} bytes before the file")
        self.at = at
        return at

    def tell(self) -> int:
        return self.at

    def readinto(self, into: Any) -> int:
        data = self.file.read_up_to(self.at, len(into))
        into[: len(data)] = data
        self.at += len(data)
        return len(data)


class Entry(NamedTuple):
    info: zipfile.ZipInfo
    begin: int  # of its content, as it is in the file
    size: int  # of that

    @property
    def is_plain(self) -> bool:
        """Neither compressed nor encrypted."""
        info = self.info
        return info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1 and info.file_size == self.size


class Archive:
    """The entries of an archive by name."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.entries: dict[str, Entry] = {}
        try:
            listed = zipfile.ZipFile(io.BufferedReader(Stream(file))).infolist()
        except _WRONG as error:
            if isinstance(error, FileFormatError):
                raise
            file.fail(f"no archive: {error}")
        end, last = 0, "nothing"
        for info in sorted(listed, key=lambda info: info.header_offset):
            name = info.filename
            if name in self.entries:
                file.fail(f"the archive has {name[:80]!r} twice")
            if info.header_offset < end:
                file.fail(f"{name[:80]} overlaps with {last[:80]}")
            entry = self.entry(info)
            self.entries[name] = entry
            end, last = entry.begin + entry.size, name

    def entry(self, info: zipfile.ZipInfo) -> Entry:
        head = self.file.read_up_to(info.header_offset, _LOCAL)
        if len(head) != _LOCAL or head[:4] != b"PK\x03\x04":
            self.file.fail(f"{info.filename[:80]} does not begin where the archive says")
        begin = info.header_offset + _LOCAL + sum(struct.unpack("<HH", head[26:30]))
        if begin + info.compress_size > self.file.size:
            self.file.fail(f"{info.filename[:80]} is cut off")
        return Entry(info, begin, info.compress_size)

    def read(self, entry: Entry) -> bytes:
        """What is in an entry, plain or compressed by deflate."""
        info = entry.info
        if not entry.is_plain and (info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & 1):
            self.file.fail(f"{info.filename[:80]} is encrypted, or not compressed by deflate")
        data = self.file.read(entry.begin, entry.size)
        if not entry.is_plain:
            data = self.inflate(info, data)
        if zlib.crc32(data) != info.CRC:
            self.file.fail(f"{info.filename[:80]} is damaged: its checksum is another one")
        return data

    def inflate(self, info: zipfile.ZipInfo, data: bytes) -> bytes:
        if info.file_size > MOST_OF_DEFLATE * len(data):
            self.file.fail(f"{info.filename[:80]} has {len(data)} bytes, which cannot become {info.file_size}")
        machine = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = machine.decompress(data, info.file_size + 1)
        except zlib.error as error:
            self.file.fail(f"{info.filename[:80]} is damaged: {error}")
        if len(content) != info.file_size or not machine.eof:
            self.file.fail(f"{info.filename[:80]} is not the {info.file_size} bytes that the archive says")
        return content
