"""Tensors of bytes as files, and archives as tensors."""

import bz2
import gzip
import io
import lzma
import os
import pathlib
import tarfile

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes
from weft.nn.state import TensorIO, tar_extract


def test_a_tensor_as_a_file() -> None:
    data = bytes(range(100))
    ours, theirs = TensorIO(Tensor(data)), io.BytesIO(data)
    for count in (1, 0, 5, -1, 3):
        assert ours.read(count) == theirs.read(count) and ours.tell() == theirs.tell()
    assert [ours.seek(-2, os.SEEK_END), ours.seek(-1, os.SEEK_CUR), ours.seek(500), ours.seek(-500, os.SEEK_CUR)] == [98, 97, 100, 0]
    assert io.BufferedReader(ours).readline() == data[:11]
    with pytest.raises(weft.ShapeError):
        TensorIO(Tensor([[1]], dtype=dtypes.uint8))
    with pytest.raises(weft.DTypeError):
        TensorIO(Tensor([1]))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_archives(tmp_path: pathlib.Path, mode: str) -> None:
    files = {"a.txt": b"abc", "in/b.bin": os.urandom(3000), "empty": b""}
    path = tmp_path / "x.tar"
    with tarfile.open(str(path), mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    for given in (path, str(path), Tensor(path)):
        assert {name: t.numpy().tobytes() for name, t in tar_extract(given).items()} == files
    path.write_bytes(np.arange(2000).tobytes())
    with pytest.raises(weft.FileFormatError):
        tar_extract(path)
    with pytest.raises(FileNotFoundError):
        tar_extract(tmp_path / "none")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_and_kinds_are_those_of_tarfile(form: int) -> None:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=form) as archive:
        for name in ("plain", "in/" + "d" * 90 + "/" + "f" * 90, "\u00e9t\u00e9", "twice", "twice", "\udcff"):
            entry = tarfile.TarInfo(name)
            entry.size = 700 + len(archive.getmembers())
            archive.addfile(entry, io.BytesIO(os.urandom(entry.size)))
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            entry = tarfile.TarInfo(f"no file {kind!r}")
            entry.type, entry.linkname = kind, "plain"
            archive.addfile(entry)
    data = memory.getvalue()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        theirs = {e.name: archive.extractfile(e).read() for e in archive if e.isfile()}  # type: ignore[union-attr]
    packed = {"gz": gzip.compress(data), "bz2": bz2.compress(data), "xz": lzma.compress(data),
              "two gz": gzip.compress(data[:900]) + gzip.compress(data[900:]), "plain": data, "no end": data[:-1024]}
    for how, content in packed.items():
        assert {name: t.numpy().tobytes() for name, t in tar_extract(Tensor(content)).items()} == theirs, how


def test_archives_that_are_cut_or_damaged(tmp_path: pathlib.Path) -> None:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        entry = tarfile.TarInfo("a")
        entry.size = 5000
        archive.addfile(entry, io.BytesIO(os.urandom(5000)))
    data = memory.getvalue()
    packed = (gzip.compress(data), bz2.compress(data), lzma.compress(data))
    changed = bytes([data[100] ^ 1])
    for wrong in (b"", bytes(1024), data[:3000], data[:600], data[:100] + changed + data[101:], *(p[:-9] for p in packed),
                  *(p[:2000] + b"xyz" + p[2003:] for p in packed)):
        (tmp_path / "a.tar").write_bytes(wrong)
        for given in (tmp_path / "a.tar", Tensor(wrong)):
            with pytest.raises(weft.FileFormatError, match=r"\[tar_extract\]"):
                tar_extract(given)
