"""The fuzzer of programs finds a planted fault, makes it small, and prints a script that shows it."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from drive import Failed  # noqa: E402
from fuzz_programs import FUZZER, Invalid, run  # noqa: E402
from program_model import Program, Statement, script_of  # noqa: E402
from random_program import random_program  # noqa: E402


def same(text: str) -> Statement:
    return Statement(text, text)


PLANTED: Program = [
    Statement("v0 = Tensor([1, 2, 3])", "v0 = np.array([1, 2, 3], np.int32)"),
    Statement("v1 = Tensor([5, 6])", "v1 = np.array([5, 6], np.int32)"),
    same("v2 = v0[1:]"),
    Statement("v1.realize()", "pass", runs=True),
    same("v1[0] = 7"),
    Statement("v2 += 1", "v2 += 2"),  # the fault
    same("v3 = v0 + v0"),
    same("del v2"),
    Statement("n0 = v1.numpy()", "n0 = v1.copy()", runs=True),
    Statement("n1 = v3.numpy()", "n1 = v3.copy()", runs=True),
]


def execute(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ), check=False)


def test_a_fault_is_found_and_made_small() -> None:
    assert "n1 is wrong" in (FUZZER.outcome(PLANTED) or "")
    small = FUZZER.shrunk(PLANTED)
    assert [PLANTED.index(s) for s in small] == [0, 2, 5, 6, 9]
    done = execute(script_of(small, "why"))
    assert done.returncode != 0 and "AssertionError" in done.stderr


def test_a_script_of_a_good_program_runs() -> None:
    for case in range(5):
        done = execute(script_of(random_program(f"script/{case}")))
        assert (done.returncode, done.stderr) == (0, "")


def test_crashes_and_kernels_too_early_are_faults() -> None:
    assert FUZZER.outcome([same("import os; os.kill(os.getpid(), 9) if 'weft' in globals() else None")]) == "ended by SIGKILL"
    with pytest.raises(Failed, match="ran 1 kernels"):
        run([Statement("v0 = (Tensor([1]) + 1).realize()", "pass")])


def test_what_has_no_meaning_is_no_fault() -> None:
    with pytest.raises(Invalid):
        run(PLANTED[1:3])
    with pytest.raises(Invalid):
        run([Statement("pass", "v0 = np.array([1.0])"), Statement("v0", "v0", ("exact(v0 / 3)",))])
    assert FUZZER.outcome(PLANTED[1:3]) is None


def test_programs_depend_on_their_seed_alone() -> None:
    assert random_program("7/3") == random_program("7/3") != random_program("7/4")
