"""`weft reduce`: programs that fail, are wrong or slow, cut down to what it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft._reduce import _shape_of

pytestmark = pytest.mark.host

FAILS = """
import numpy as np
from weft import Tensor

class Model:
    def __init__(self):
        self.w = Tensor.rand(16, 8)

    def __call__(self, x):
        return (x @ self.w).relu()

model = Model()
total = 0.0
for i in range(3):
    y = model(Tensor(np.ones((4, 16), "float32") * i))
    total += y.sum().item()
    if i == 1:
        out = y.reshape(4, 4, 2).permute(1, 0, 2).reshape(7, 5)
print(total)
"""


def reduced(tmp_path: Path, source: str, *options: str, code: int = 0) -> Any:
    script = tmp_path / "program.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, "-m", "weft", "reduce", "--json", "--limit", "8", *options, script],
                          capture_output=True, text=True, env={**os.environ, "WEFT_DEVICE": "CPU"})
    assert done.returncode == code, done
    return json.loads(done.stdout) if code == 0 else done.stderr


def fails_with(source: str) -> str:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env={**os.environ, "WEFT_DEVICE": "CPU"})
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def test_a_failure(tmp_path: Path) -> None:
    found = reduced(tmp_path, FAILS)
    assert found["lines"] <= 12 < found["lines_before"] and "[reshape]" in found["error"], found["script"]
    assert "reshape" in fails_with(found["script"]) and "total" not in found["script"]


def test_a_slow_program(tmp_path: Path) -> None:
    source = "from weft import Tensor\na = Tensor.rand(8, 8).realize()\nunused = a + 1\nfor i in range(5):\n    (a * i).realize()\n"
    found = reduced(tmp_path, source, "--kernels", "4")
    assert "unused" not in found["script"] and len(found["script"]) < len(source), found["script"]


def test_a_program_that_is_right_is_refused(tmp_path: Path) -> None:
    assert "does not fail" in reduced(tmp_path, "from weft import Tensor\nTensor([1.0]).item()\n", code=1)
    assert "finds nothing wrong" in reduced(tmp_path, "from weft import Tensor\nx = Tensor([1.0]) + 1\n", "--wrong", code=1)


def test_a_wrong_program(tmp_path: Path) -> None:
    # A pass of the program itself that is wrong: weft.check sees it, because the reference has no schedule.
    source = """
from weft import Tensor
from weft.ir import Ops, Pat, Pipeline, RuleSet, rule
x, c = Pat.var("x"), Pat.const("c")
Pipeline.reset()
Pipeline().after("early", RuleSet([rule(Pat.op(Ops.FDIV, x, c), lambda x, c: x * c.arg, name="wrong")], name="mine")).install()
first = Tensor([1.0, 2.0])
other = first.exp() + 3
result = (first + 1) / 3.0
third = result.sum()
"""
    found = reduced(tmp_path, source, "--wrong")
    assert "exp" not in found["script"] and "/" in found["script"], found["script"]


def test_a_crash_is_a_failure_too(tmp_path: Path) -> None:
    found = reduced(tmp_path, "import os\nx = 1\ny = 2\nos.kill(os.getpid(), 11)\n")
    assert "kill" in found["script"] and "y = 2" not in found["script"]


def test_messages_are_the_same_whatever_their_numbers() -> None:
    a, b = "[reshape] cannot view (2, 3) as (4, 2): 6 elements", "[reshape] cannot view (1) as (9, 9, 2): 1 elements"
    assert _shape_of(a) == _shape_of(b) != _shape_of("[permute] axes (1, 2)")
