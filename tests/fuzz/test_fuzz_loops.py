"""The fuzzer of loops finds planted faults and kernels beyond its bounds, and makes them small."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fuzz_loops  # noqa: E402
import loop_models  # noqa: E402
from drive import Failed, Fuzzer  # noqa: E402
from fuzz_loops import Options, kind_of, make, run, script_of, smaller  # noqa: E402
from random_loop import Program, Step, random_loop, text_of  # noqa: E402

PROGRAM: Program = [
    Step(0, "a = data('float32', 30, 1)"), Step(0, "b = data('float32', 30, 2)"), Step(0, "s0 = copy(a[0])"),
    Step(1, "for i in range(3, 12):"), Step(1, "b[i] = b[i - 1] * 0.5"), Step(1, "if i > 5: a[i] = mn(a[i - 1], b[i])"),
    Step(1, "if i == 7: keep(total(b))"), Step(1, "a[i], a[i + 1] = mx(a[i], a[i + 1]), mn(a[i], a[i + 1])"),
]


def fuzzer() -> Fuzzer:
    return Fuzzer("fuzz_loops", make, run, script_of, kind_of=kind_of, smaller=smaller)


def test_a_program_that_is_right() -> None:
    run(PROGRAM)
    assert "from loop_models import check" in script_of(PROGRAM) and "    b[i] = b[i - 1] * 0.5" in text_of(PROGRAM)


def test_a_wrong_result_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_models.Weft, "mn", lambda self, x, y: x.minimum(y) + 1)
    with pytest.raises(Failed, match=r"a at \[5\] is"):
        run(PROGRAM)
    small = fuzzer().shrunk(PROGRAM)
    assert [step.text for step in small] in (
        ["a = data('float32', 30, 1)", "for i in range(3, 5):", "a[i], a[i + 1] = mx(a[i], a[i + 1]), mn(a[i], a[i + 1])"],
        ["a = data('float32', 30, 1)", "b = data('float32', 30, 2)", "for i in range(3, 5):", "a[i] = mn(a[i - 1], b[i])"])


def test_too_many_kernels_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Options, "most_bodies", 1)
    with pytest.raises(Failed, match="distinct kernels, at most 1 allowed"):
        run([Step(0, "d = data('float32', 70_000, 3)"), *PROGRAM, Step(0, "keep(total(d))")])
    monkeypatch.setattr(Options, "most_bodies", 0)
    monkeypatch.setattr(Options, "most_kernels", 1)
    with pytest.raises(Failed, match="kernels, at most 1 allowed"):
        run([*PROGRAM, Step(1, "if i == 8: now(b)")])


def test_too_much_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Options, "most_seconds", 1e-6)
    with pytest.raises(Failed, match="seconds, at most 1e-06 allowed"):
        run(PROGRAM)


def test_a_script_runs() -> None:
    done = subprocess.run([sys.executable, "-c", script_of(random_loop("script"))], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_depend_on_their_seed_alone() -> None:
    assert random_loop("7/3") == random_loop("7/3") != random_loop("7/4")
    assert fuzz_loops.COUNTS["statements"] >= 0 and fuzzer().fuzz(5, 0, 20, 1) == []


@pytest.mark.parametrize("kind", ["gradients", "device"])
def test_the_other_kinds(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    pytest.importorskip("torch")
    if kind == "device":
        pytest.importorskip("weft.torch")
    monkeypatch.setattr(Options, "kind", kind)
    assert fuzzer().fuzz(5, 0, 5, 1) == []
