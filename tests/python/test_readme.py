"""The README's example prints what the README says."""

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.host  # it counts kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_example_prints_what_it_says() -> None:
    blocks = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    code, expected = blocks[0], blocks[1]
    assert len(code.splitlines()) <= 20
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == expected
