"""docs/walk.md and rangeify.md are what programs print; the programs of docs/versions.md, passes.md and others run."""

from __future__ import annotations

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.host  # they count kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build/release"))
PROGRAMS = [program for name in ("versions", "jit", "nn", "tensor", "passes")
            for program in re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{name}.md").read_text(), re.DOTALL)]


def test_walk_is_up_to_date() -> None:
    """WEFT_UPDATE_DOCS=1 writes it anew."""
    printed = subprocess.run([BUILD / "bin/weft_walk"], check=True, capture_output=True, text=True).stdout
    path = ROOT / "docs/walk.md"
    if os.environ.get("WEFT_UPDATE_DOCS"):
        path.write_text(printed)
    assert path.read_text() == printed


def test_the_page_of_rangeify_is_up_to_date() -> None:
    """WEFT_UPDATE_DOCS=1 writes it anew."""
    printed = subprocess.run([sys.executable, ROOT / "tools/rangeify_page.py"], check=True, capture_output=True,
                             text=True).stdout
    path = ROOT / "docs/rangeify.md"
    if os.environ.get("WEFT_UPDATE_DOCS"):
        path.write_text(printed)
    assert path.read_text() == printed


def test_the_example_of_codegen() -> None:
    text = (ROOT / "docs/codegen.md").read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, "codegen.md", None, 0)
    assert test.examples and doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_versions_has_programs() -> None:
    assert len(PROGRAMS) >= 5


# Without schedules too, but for those that count kernels.
CASES = [(p, "1") for p in PROGRAMS] + [(p, "0") for p in PROGRAMS if "counters" not in p and "Pipeline" not in p]


@pytest.mark.parametrize("program, schedule", CASES)
def test_programs_of_versions_hold(program: str, schedule: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WEFT_SCHEDULE": schedule},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
