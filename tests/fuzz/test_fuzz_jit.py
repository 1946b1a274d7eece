"""The fuzzer of jit finds planted faults and makes them small."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from drive import Failed  # noqa: E402
from fuzz_jit import FUZZER, run  # noqa: E402
from random_jit_program import Program, Step, random_jit_program, script_of  # noqa: E402

from weft import _guards, _variable  # noqa: E402

GUARDED: Program = [
    Step("setup", "k = 1"), Step("setup", "g0 = Tensor([1, 2])"),
    Step("body", "t1 = p0 * k"), Step("body", "g0 += 1"), Step("body", "return [t1]"),
    Step("run", "x1 = Tensor([3, 4])"),
    Step("run", "o1 = f(x1)"), Step("run", "o2 = f(x1)"), Step("run", "n = g0.tolist()"),
    Step("run", "k = 2"), Step("run", "o3 = f(x1)"), Step("run", "r1 = o3[0]"), Step("run", "n = r1.tolist()"),
]


def test_a_program_that_is_right() -> None:
    run(GUARDED)


def test_a_stale_answer_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_guards.Guards, "changed", lambda self: None)
    with pytest.raises(Failed, match=r"n = r1\.tolist\(\)`: \[3, 4\], not \[6, 8\]"):
        run(GUARDED)
    small = FUZZER.shrunk(GUARDED)
    assert len(small) < len(GUARDED) and FUZZER.outcome(small) is not None
    assert "g0" not in script_of(small)


CHOOSING: Program = [
    Step("setup", "V0 = weft.Variable('v0', 0, 6)"),
    Step("body", "t1 = p0[:v0] * (1 if v0 > 5 else 2)"), Step("body", "return [t1]"),
    *(Step("run", f"o{i} = f(Tensor([3, 4, 5, 6, 7, 8]), v0=V0.bind({i}))") for i in (1, 2, 3, 4, 5, 6)),
    Step("run", "r1 = o6[0]"), Step("run", "n = r1.tolist()"),
]


def test_a_choice_by_a_variable_that_nobody_notes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run(CHOOSING)
    monkeypatch.setattr(_variable, "_assume_at_most", lambda a, b: None)
    monkeypatch.setattr(_variable, "_assume_exact", lambda number: None)
    with pytest.raises(Failed, match=r"n = r1\.tolist\(\)`: \[6, 8, 10, 12, 14, 16\], not \[3, 4, 5, 6, 7, 8\]"):
        run(CHOOSING)


def test_programs_depend_on_their_seed_alone() -> None:
    assert random_jit_program("7/3") == random_jit_program("7/3") != random_jit_program("7/4")
    assert FUZZER.fuzz(5, 0, 20, 1) == []
