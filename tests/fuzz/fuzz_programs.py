#!/usr/bin/env python3
"""Random tensor programs on weft and on NumPy in lockstep; what is read must be equal, bit for bit.

    fuzz_programs.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--case N] [--show]

A program that fails is made as small as it gets and printed as a script that runs on its own. Each
program depends on the seed and its number alone: --case N runs one. --count 0 runs for ever.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
from in_child import failure_in_child
from program_model import Program, Statement, names_in, numpy_names, refused, same, script_of
from random_program import random_program

import weft

TIME_LIMIT = 20  # seconds, for one program
MOST_SHRINKING = 120  # seconds
CRASHED = 70  # exit status of nothing else


class Failed(Exception):
    """weft is wrong."""


class Invalid(Exception):
    """The program has no meaning: NumPy or a guard refuses it."""


# --------------------------------------------------------------------------------------- one program


def run(program: Program) -> None:
    """Raises Failed or Invalid."""
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


def outcome(program: Program) -> str | None:
    """What fails, in a process of its own."""
    return failure_in_child(lambda: run(program), Failed, TIME_LIMIT)


# ------------------------------------------------------------------------------------------ shrinking


def kind_of(failure: str | None) -> str | None:
    """What two failures of one cause have in common: an exception's type, or that a result is wrong."""
    match = re.match(r"statement \d+, `.*?`: (\w+)|statement \d+, `.*`, (ran)|\w+ (is wrong)|(.*)", failure or "", re.DOTALL)
    return next((group for group in match.groups() if group), None) if failure and match else failure


def smaller(program: Program, size: int) -> Iterator[Program]:
    """The program without `size` statements, from the end on; at last with one that is shorter."""
    for start in range(len(program) - size, -1, -size):
        yield program[:start] + program[start + size:]
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


def shrunk(program: Program) -> Program:
    """The program without what the failure does not need."""
    kind = kind_of(outcome(program))
    end = time.monotonic() + MOST_SHRINKING
    size = max(1, len(program) // 2)
    while time.monotonic() < end:
        found = next((p for p in smaller(program, size) if kind_of(outcome(p)) == kind or time.monotonic() > end), None)
        if found is not None and time.monotonic() < end:
            program = found
        elif size == 1:
            break
        else:
            size //= 2
    return program


def report(seed: int, case: int, program: Program) -> None:
    """Prints the smallest program that fails."""
    print(f"case {case} of seed {seed} fails; making it smaller ...", flush=True)
    small = shrunk(program)
    why = outcome(small) or outcome(program) or "it does not fail in a process of its own"
    command = f"fuzz_programs.py --seed {seed} --case {case}"
    print(f"---- 8< ----\n{script_of(small, f'{command}{chr(10)}{why}')}---- >8 ----", flush=True)


# ------------------------------------------------------------------------------------------ many programs


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    signal.alarm(TIME_LIMIT)
    yield
    signal.alarm(0)


def work(seed: int, cases: Iterator[int], current: Any, statements: Any, failed: Any, most: int, known: str) -> None:
    """Runs cases until `most` have failed in a way that is not known; the parent sees the case at hand."""
    for case in cases:
        current.value = case
        with time_limit():
            program = random_program(f"{seed}/{case}")
            statements.value += len(program)
            try:
                run(program)
            except Failed as error:
                if known and re.search(known, str(error)):
                    continue
                with failed.get_lock():
                    slot = next((i for i, c in enumerate(failed) if c < 0), None)
                    if slot is None:
                        return
                    failed[slot] = case
                    if slot + 1 >= most:
                        return
            except Invalid:
                traceback.print_exc()
                os._exit(CRASHED)
        if failed[most - 1] >= 0:
            return


def fuzz(seed: int, first: int, count: int, processes: int, most: int, known: str) -> list[int]:
    """The cases that failed."""
    fork = multiprocessing.get_context("fork")
    failed = fork.Array("l", [-1] * (most + processes))
    workers = []
    start = time.monotonic()
    for k in range(processes):
        cases = itertools.count(first + k, processes) if count == 0 else range(first + k, first + count, processes)
        current, statements = fork.Value("l", -1), fork.Value("l", 0)
        worker = fork.Process(target=work, args=(seed, iter(cases), current, statements, failed, most, known))
        worker.start()
        workers.append((worker, current, statements))
    crashed = []
    for worker, current, _ in workers:
        worker.join()
        if worker.exitcode != 0:
            crashed.append(current.value)
    bad = sorted({case for case in failed if case >= 0} | set(crashed))
    total = sum(s.value for _, _, s in workers)
    done = f"{count} programs" if not bad else f"stopped at {max(c.value for _, c, _ in workers) - first + 1} programs"
    print(f"  fuzz_programs: seed {seed}, {done}, {total} statements, {len(bad)} failures, "
          f"{time.monotonic() - start:.1f} s", flush=True)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--failures", type=int, default=1, help="stop after this many")
    parser.add_argument("--known", default="", help="pass over failures whose message this regular expression finds")
    parser.add_argument("--case", type=int, help="one program alone")
    parser.add_argument("--show", action="store_true", help="print the program of --case as it is")
    arguments = parser.parse_args()

    if arguments.case is None:
        bad = fuzz(arguments.seed, arguments.first, arguments.count, arguments.processes, arguments.failures,
                   arguments.known)
    else:
        program = random_program(f"{arguments.seed}/{arguments.case}")
        if arguments.show:
            print(script_of(program))
        bad = [arguments.case] if outcome(program) is not None else []
    for case in bad:
        report(arguments.seed, case, random_program(f"{arguments.seed}/{case}"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
