"""Tensors of bytes as files, and archives as tensors."""

import io
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
    with pytest.raises(tarfile.ReadError):
        tar_extract(path)
    with pytest.raises(FileNotFoundError):
        tar_extract(tmp_path / "none")
