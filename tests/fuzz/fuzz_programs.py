#!/usr/bin/env python3
"""Random tensor programs on weft and on NumPy in lockstep; what is read must be equal, bit for bit.

    fuzz_programs.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                     [--known REGEX] [--case N] [--show]

A program that fails is made as small as it gets and printed as a script that runs on its own. Each
program depends on the seed and its number alone: --case N runs one. --count 0 runs for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from drive import Failed, Fuzzer, without_parts
from program_model import Program, Statement, names_in, numpy_names, refused, same, script_of
from random_program import random_program

import weft

COUNTS = {"statements": 0}


class Invalid(Exception):
    """The program has no meaning: NumPy or a guard refuses it."""


def run(program: Program) -> None:
    """Raises Failed or Invalid."""
    COUNTS["statements"] += len(program)
    weft._core.clear_schedule_cache()  # a program depends on itself alone
    ours = numpy_names()
    theirs: dict[str, Any] = {"np": np, "weft": weft, "Tensor": weft.Tensor, "dtypes": weft.dtypes, "refused": refused}
    kernels = weft.counters.kernels
    for number, step in enumerate(program):
        try:
            with np.errstate(all="ignore"):
                if not all(eval(g, ours) for g in step.guards):
                    raise Invalid(step.numpy)
                exec(step.numpy, ours)
        except Exception as error:
            raise Invalid(step.numpy) from error
        try:
            exec(step.weft, theirs)
        except NameError as error:
            raise Invalid(step.weft) from error
        except Exception as error:
            raise Failed(f"statement {number}, `{step.weft}`: {type(error).__name__}: {error}") from error
        if weft.counters.kernels != kernels and not step.runs:
            raise Failed(f"statement {number}, `{step.weft}`, ran {weft.counters.kernels - kernels} kernels")
        kernels = weft.counters.kernels
    for name in names_in("\n".join(step.weft for step in program)):
        result, expected = theirs[name], ours[name]
        try:
            if name[0] == "n":
                same(result, expected)
            else:
                assert result == expected or (result != result and expected != expected), f"{result}, not {expected}"
        except AssertionError as error:
            raise Failed(f"{name} is wrong: {error}") from error


# ------------------------------------------------------------------------------------------ shrinking


def kind_of(failure: str | None) -> str | None:
    """What two failures of one cause have in common: an exception's type, or that a result is wrong."""
    match = re.match(r"statement \d+, `.*?`: (\w+)|statement \d+, `.*`, (ran)|\w+ (is wrong)|(.*)", failure or "", re.DOTALL)
    return next((group for group in match.groups() if group), None) if failure and match else failure


def smaller(program: Program, size: int) -> Iterator[Program]:
    """The program without `size` statements, from the end on; at last with one that is shorter."""
    yield from without_parts(program, size)
    if size > 1:
        return
    for i, step in enumerate(program):
        for short in shorter(step):
            yield [*program[:i], short, *program[i + 1:]]


def shorter(step: Statement) -> Iterator[Statement]:
    """Without the deletion at its end, and with less to realise."""
    if "; del" in step.weft:
        yield step._replace(weft=step.weft.split("; del")[0], numpy=step.numpy.split("; del")[0])
    call = re.search(r"\.realize\((.+?)\)", step.weft)
    names = call[1].split(", ") if call else []
    for name in names:
        rest = ", ".join(n for n in names if n != name)
        yield step._replace(weft=step.weft.replace(f".realize({', '.join(names)})", f".realize({rest})"))


FUZZER = Fuzzer("fuzz_programs", random_program, run, script_of, kind_of=kind_of, smaller=smaller, counts=COUNTS)

if __name__ == "__main__":
    FUZZER.main(__doc__ or "")
