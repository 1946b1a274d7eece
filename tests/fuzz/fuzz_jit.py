#!/usr/bin/env python3
"""Random programs that call a random function, under jit and without: what is read must be equal.

    fuzz_jit.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--case N] [--show]

A program that fails is made as small as it gets and printed. Each depends on the seed and its number
alone: --case N runs one. --count 0 runs for ever.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import re
import signal
import sys
import time
import traceback
from typing import Any

from in_child import failure_in_child
from random_jit_program import Program, function_of, random_jit_program, script_of

import weft

TIME_LIMIT = 20  # seconds, for one program
MOST_SHRINKING = 90  # seconds
REPLAYS = {"calls": 0, "captured": 0}


class Failed(Exception):
    """jit is wrong."""


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
    REPLAYS["calls"] += sum(" = f(" in s.text for s in program)
    REPLAYS["captured"] += ours["f"].captures


def outcome(program: Program) -> str | None:
    """What fails, in a process of its own."""
    return failure_in_child(lambda: run(program), Failed, TIME_LIMIT)


def kind_of(failure: str | None) -> str | None:
    if failure is None:
        return None
    match = re.search(r"`: (\w+Error)?", failure)
    return str(match[1]) if match else failure.splitlines()[0]


def shrunk(program: Program) -> Program:
    """The program without what the failure does not need."""
    kind = kind_of(outcome(program))
    end = time.monotonic() + MOST_SHRINKING
    size = max(1, len(program) // 2)
    while time.monotonic() < end:
        parts = [program[:i] + program[i + size:] for i in range(len(program) - size, -1, -size)]
        found = next((p for p in parts if kind_of(outcome(p)) == kind), None)
        if found is not None:
            program = found
        elif size == 1:
            break
        else:
            size //= 2
    return program


def report(seed: int, case: int) -> None:
    print(f"case {case} of seed {seed} fails; making it smaller ...", flush=True)
    small = shrunk(random_jit_program(f"{seed}/{case}"))
    print(f"---- 8< ----\n# fuzz_jit.py --seed {seed} --case {case}\n{script_of(small)}"
          f"---- >8 ----\n{outcome(small)}", flush=True)


def work(seed: int, cases: Any, current: Any, failed: Any, counts: Any) -> None:
    for case in cases:
        current.value = case
        if failed.value >= 0:
            break
        signal.alarm(TIME_LIMIT)
        try:
            run(random_jit_program(f"{seed}/{case}"))
        except Failed:
            failed.value = case
        signal.alarm(0)
    counts[0] += REPLAYS["calls"]
    counts[1] += REPLAYS["captured"]


def fuzz(seed: int, first: int, count: int, processes: int) -> list[int]:
    """The cases that failed."""
    fork = multiprocessing.get_context("fork")
    failed, counts = fork.Value("l", -1), fork.Array("l", [0, 0])
    start = time.monotonic()
    workers = []
    for k in range(processes):
        cases = itertools.count(first + k, processes) if count == 0 else range(first + k, first + count, processes)
        current = fork.Value("l", -1)
        worker = fork.Process(target=work, args=(seed, cases, current, failed, counts))
        worker.start()
        workers.append((worker, current))
    bad = set()
    for worker, current in workers:
        worker.join()
        if worker.exitcode != 0:
            bad.add(current.value)
    bad |= {failed.value} - {-1}
    print(f"  fuzz_jit: seed {seed}, {count} programs, {counts[0]} calls, {counts[1]} captures, {len(bad)} failures, "
          f"{time.monotonic() - start:.1f} s", flush=True)
    return sorted(bad)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--case", type=int, help="one program alone")
    parser.add_argument("--show", action="store_true", help="print the program of --case as it is")
    arguments = parser.parse_args()
    if arguments.case is None:
        bad = fuzz(arguments.seed, arguments.first, arguments.count, arguments.processes)
    else:
        program = random_jit_program(f"{arguments.seed}/{arguments.case}")
        if arguments.show:
            print(script_of(program))
        bad = [arguments.case] if outcome(program) is not None else []
    for case in bad:
        report(arguments.seed, case)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
