"""Triton's interpreter and its compiler, each in a process of its own: a switch read when it is imported chooses."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("file, interprets", [("triton_interpreted.py", "1"), ("triton_compiled.py", "0")])
def test_kernels(file: str, interprets: str, tmp_path: pathlib.Path) -> None:
    for package in ("triton", "torch"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    environment = {**os.environ, "TRITON_INTERPRET": interprets, "TRITON_CACHE_DIR": str(tmp_path), "WEFT_DEVICE": "REF"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", str(HERE / file)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=800)
    assert result.returncode == 0 and " passed" in result.stdout, result.stdout[-4000:] + result.stderr[-2000:]
