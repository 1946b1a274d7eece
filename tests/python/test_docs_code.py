"""Every block of Python in the documentation runs; every block of C++ compiles."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python(page: Path, tmp_path: Path) -> None:
    """The blocks of a page one after the other, in one process."""
    code = "\n".join(blocks(page, "python"))
    if re.search(r"^ *(import|from) torch\b", code, re.MULTILINE) and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    program = tmp_path / f"page_{page.stem}.py"  # lines of jit functions are read from it
    program.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, timeout=600,
                          env={**os.environ, "WEFT_DEVICE": "CPU"})
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text(encoding="utf-8")], ids=lambda page: page.stem)
def test_sessions(page: Path, tmp_path: Path) -> None:
    """What stands behind prompts gives what stands beneath it."""
    if "triton" in page.read_text(encoding="utf-8") and importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    done = subprocess.run([sys.executable, "-m", "doctest", "-o", "ELLIPSIS", page], capture_output=True, text=True,
                          env={**os.environ, "WEFT_DEVICE": "CPU", "WEFT_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "cpp")], ids=lambda page: page.stem)
def test_cpp(page: Path, tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    parts = "\n".join(f"void block{i}() {{\nusing namespace weft;\n{code}\n}}" for i, code in enumerate(blocks(page, "cpp")))
    source = tmp_path / "blocks.cpp"
    source.write_text(f"#include <weft/weft.h>\n{parts}\n", encoding="utf-8")
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wno-unused", f"-I{ROOT / 'include'}", source],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_language_is_known() -> None:
    """A block that nobody runs says so: by indentation, or by no language."""
    known = {"", "python", "cpp"}
    for page in PAGES:
        opened = re.findall(r"^```(\w*)\n(?:.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        assert set(opened) <= known, (page.name, set(opened) - known)
