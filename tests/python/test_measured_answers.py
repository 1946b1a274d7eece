"""`weft explain --measure`: what else could have been decided is built and timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

SCRIPT = """\
from weft import Tensor
a, b = Tensor.rand(64, 48).realize(), Tensor.rand(48, 32).realize()
c = a @ b
d = c.sum(axis=1); del c
d.realize()
e = (a.exp() / a.exp().sum(1, keepdim=True)).realize()
old = a * 3
a[3:40] = a[4:41] * 2
a.realize()
old.realize()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measure") / "program.py"
    path.write_text(SCRIPT)
    return path


def why(script: Path, line: int) -> Any:
    done = subprocess.run([sys.executable, "-m", "weft", "explain", "--json", "--measure", "--why", str(line), script],
                          capture_output=True, text=True, check=True, env={**os.environ, "WEFT_DEVICE": "CPU"})
    return json.loads(done.stdout)


def test_a_stored_value_computed_again(script: Path) -> None:
    decisions = why(script, 3)["decisions"]
    [stored] = [d for d in decisions if d["what"] == "stored"]
    measured = stored["measured"]
    assert measured["kernels"] == measured["alternative_kernels"] + 1, measured
    assert measured["nanoseconds"] > 0 and measured["alternative_nanoseconds"] > 0
    assert "with it recomputed" in measured["text"] and "times)" in measured["text"]
    [two] = [d for d in decisions if d["what"] == "two kernels"]
    assert two["measured"]["alternative_kernels"] == measured["alternative_kernels"]


def test_a_value_computed_again_stored(script: Path) -> None:
    found = [d["measured"] for d in why(script, 6)["decisions"] if d["what"] == "recomputed"]
    assert found and any(m.get("alternative_kernels", 0) > m.get("kernels", 9) for m in found), found


def test_a_copy_avoided(script: Path) -> None:
    [copy] = why(script, 8)["copies"]
    assert "written in place" in copy["measured"]["text"] and copy["measured"]["alternative_nanoseconds"] > 0


def test_the_page_has_them(script: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "weft", "viz", "--measure", "--save", tmp_path / "page.html", script], check=True,
                   capture_output=True, env={**os.environ, "WEFT_DEVICE": "CPU"})
    assert "with it recomputed" in (tmp_path / "page.html").read_text()
