"""WEFT_DEBUG shows on stderr what its levels say."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

SCRIPT = """
from weft import Tensor
x = Tensor([1.0, 2.0, 3.0], device="CPU")
print((x * {factor}).tolist())
y = x.numpy() if {copies} else None
x[1] = 7.0
print(x.tolist())
"""


def run(level: int, factor: float, copies: bool = False) -> str:
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(factor=factor, copies=copies)], text=True, check=True,
                          capture_output=True, env={**os.environ, "WEFT_DEBUG": str(level)})
    lines = done.stdout.splitlines()
    assert lines == [str([factor, 2 * factor, 3 * factor]), "[1.0, 7.0, 3.0]"]
    return done.stderr


def test_nothing_at_0() -> None:
    assert run(0, 2.0) == ""


@pytest.mark.parametrize(("level", "shown"), [(1, "weft: device CPU: "), (2, "weft: run "), (3, "optimisations: "),
                                              (4, "source:\n"), (5, "list:\n"), (6, "after linearize:\n")])
def test_each_level_shows_more(level: int, shown: str) -> None:
    assert shown in run(level, 2.0 + level)
    assert shown not in run(level - 1, 3.0 + level)


def test_calls_have_their_attributes() -> None:
    program = "from weft import Tensor; x = Tensor([[2.0, 1.0]]); (x.softmax(1) + x.tanh() + x.sigmoid().tanh()).tolist()"
    done = subprocess.run([sys.executable, "-c", program], text=True, check=True, capture_output=True,
                          env={**os.environ, "WEFT_DEBUG": "2"})
    [line] = [s for s in done.stderr.splitlines() if s.startswith("weft: calls")]
    assert line.split(maxsplit=2)[2] == "softmax(1), 2 tanh, sigmoid"


def test_a_run_has_its_numbers() -> None:
    [line] = [s for s in run(2, 31.0).splitlines() if s.startswith("weft: run") and " on CPU" in s][:1]
    assert "GFLOPS" in line and "GB/s" in line and line.endswith(": mul")


def test_a_run_has_its_share_of_the_peak_and_the_process_its_totals() -> None:
    lines = run(2, 37.5).splitlines()
    runs = [s for s in lines if s.startswith("weft: run")]
    assert runs and all(re.search(r"GB/s +\d+%  ", s) and "\x1b" not in s for s in runs)
    [total] = [s for s in lines if s.startswith("weft: total")]
    assert f"{len(runs)} kernels run" in total and lines[-1] == total and "found in a cache" in total


def test_why_something_is_compiled() -> None:
    first, again = run(2, 33.5), run(2, 33.5)
    assert "this source is new" in first or "from the cache on disk" in first
    assert "from the cache on disk" in again
    assert "no schedule of this graph is known" in again
