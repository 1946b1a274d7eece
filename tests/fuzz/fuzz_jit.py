#!/usr/bin/env python3
"""Random programs that call a random function, under jit and without: what is read must be equal.

    fuzz_jit.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                [--known REGEX] [--case N] [--show]

A program that fails is made as small as it gets and printed. Each depends on the seed and its number
alone: --case N runs one. --count 0 runs for ever.
"""

from __future__ import annotations

import re
import traceback
from typing import Any

from drive import Failed, Fuzzer
from random_jit_program import Program, function_of, random_jit_program, script_of

import weft

COUNTS = {"calls": 0, "captures": 0}


def world(program: Program, decorator: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "fuzzed", "weft": weft, "Tensor": weft.Tensor}
    for step in program:
        if step.where == "setup":
            exec(step.text, names)
    exec(function_of(program, decorator), names)
    return names


def attempt(text: str, names: dict[str, Any]) -> Exception | None:
    names["n"] = None
    try:
        exec(text, names)
    except Exception as error:
        return error
    return None


def run(program: Program) -> None:
    """Raises Failed; other errors for a program without meaning."""
    ours, theirs = world(program, "@weft.jit\n"), world(program, "")
    for number, step in enumerate(program):
        if step.where != "run":
            continue
        error = attempt(step.text, ours)
        if isinstance(error, (NameError, UnboundLocalError)):
            continue
        if isinstance(error, weft.JitError) and re.search("shares memory with a tensor", str(error)):
            continue  # said, and nothing has happened
        expected = attempt(step.text, theirs)
        if type(error) is not type(expected):
            said = "".join(traceback.format_exception(error)) if error else ""
            raise Failed(f"step {number}, `{step.text}`: {error!r}, not {expected!r}\n{said}")
        if ours["n"] != theirs["n"]:
            raise Failed(f"step {number}, `{step.text}`: {ours['n']}, not {theirs['n']}")
    COUNTS["calls"] += sum(" = f(" in s.text for s in program)
    COUNTS["captures"] += ours["f"].captures


def kind_of(failure: str | None) -> str | None:
    if failure is None:
        return None
    match = re.search(r"`: (\w+Error)?", failure)
    return str(match[1]) if match else failure.splitlines()[0]


FUZZER = Fuzzer("fuzz_jit", random_jit_program, run, script_of, kind_of=kind_of, counts=COUNTS)

if __name__ == "__main__":
    FUZZER.main(__doc__ or "")
