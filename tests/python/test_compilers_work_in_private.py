"""Compilers write where nobody else can exchange what they wrote before it is run."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import weft
try:
    print((weft.Tensor([1.0, 2.0]) + 1).tolist())
except weft.CompileError as error:
    print(str(error))
"""


def said(temp: pathlib.Path, cache: pathlib.Path) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, env={
        **os.environ, "WEFT_DEVICE": "CPU:C", "TMPDIR": str(temp), "WEFT_CACHE_DIR": str(cache)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_folder_for_temporary_files_that_others_may_write(tmp_path: pathlib.Path) -> None:
    above = tmp_path / "above"
    temp = above / "temp"
    temp.mkdir(parents=True)
    right = "[2.0, 3.0]\n"
    assert said(temp, tmp_path / "1") == right
    for folder in (above, temp):
        folder.chmod(0o777)
        text = said(temp, tmp_path / "2")
        assert f"not using {folder}: everyone may write there" in text and not list(temp.iterdir())
        folder.chmod(0o770)
        assert "its group may write there" in said(temp, tmp_path / "2")
        folder.chmod(0o1777)
        assert said(temp, tmp_path / f"with {folder.name}") == right
        folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(temp, 65534, -1)
        assert "it belongs to user 65534" in said(temp, tmp_path / "2")
