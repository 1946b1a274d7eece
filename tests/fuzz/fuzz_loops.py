#!/usr/bin/env python3
"""Random loops of reads and writes on weft and on NumPy; what they leave must be equal, bit for bit.

    fuzz_loops.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1] [--known REGEX] [--case N] [--show]
                  [--most-bodies N] [--most-kernels N] [--most-seconds N] [--report [N]]

A program that takes more distinct kernels than --most-bodies, runs more of them than --most-kernels, or takes more than
--most-seconds of processor time, fails too (0: no bound). --report prints how many programs take how many, and the cases with at least N bodies. A
program that fails is made as small as it gets and printed. Each depends on the seed and its number alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator

from drive import Failed, Fuzzer, without_parts
from loop_models import Invalid, check
from random_loop import Program, random_loop, text_of

import weft
from weft import Tensor

# Of one program, by its kind: distinct kernels that are compiled, and kernels that run; seconds. A program with gradients
# is realised for each of them.
MOST_BODIES = {"numpy": 24, "gradients": 64, "device": 24}
MOST_KERNELS = {"numpy": 32, "gradients": 128, "device": 128}
MOST_SECONDS = 10
STEPS = (1, 2, 4, 8, 16, 64, 1 << 30)  # of the report

COUNTS = {"statements": 0, "bodies": 0, "kernels": 0, "refused": 0}


class Options:
    most_bodies, most_kernels, most_seconds, report = MOST_BODIES["numpy"], MOST_KERNELS["numpy"], float(MOST_SECONDS), -1
    kind = "numpy"


def make(text: str) -> Program:
    program = random_loop(text, gradients=Options.kind == "gradients", plain=Options.kind == "device")
    Made.text = text
    return program


class Made:
    text = ""  # of the last program


def run(program: Program) -> None:
    """Raises Failed; Invalid for a program without meaning."""
    COUNTS["statements"] += sum(step.loop > 0 for step in program)
    weft._core.clear_schedule_cache()  # a program depends on itself alone
    bodies: set[str] = set()
    before, start = weft.counters.kernels, time.process_time()

    def measure(tensors: list[Tensor]) -> None:
        bodies.update(kernel.graph for kernel in tensors[0].schedule(*tensors[1:]))

    try:
        check(text_of(program), Options.kind, measure)
    except Invalid:
        if Options.kind == "numpy":
            raise
        COUNTS["refused"] += 1  # PyTorch checks for memory that overlaps
        return
    kernels, seconds = weft.counters.kernels - before, time.process_time() - start
    COUNTS["bodies"] += len(bodies)
    COUNTS["kernels"] += kernels
    if Options.report >= 0:
        note("bodies", len(bodies))
        note("kernels", kernels)
        if 0 < Options.report <= len(bodies):
            print(f"  case {Made.text}: {len(bodies)} bodies, {kernels} kernels, {seconds:.2f} s", flush=True)
    if 0 < Options.most_bodies < len(bodies):
        raise Failed(f"too much: {len(bodies)} distinct kernels, at most {Options.most_bodies} allowed")
    if 0 < Options.most_kernels < kernels:
        raise Failed(f"too much: {kernels} kernels, at most {Options.most_kernels} allowed")
    if 0 < Options.most_seconds < seconds:
        raise Failed(f"too much: {seconds:.1f} seconds, at most {Options.most_seconds} allowed")


def note(what: str, count: int) -> None:
    COUNTS[column(what, next(most for most in STEPS if count <= most))] += 1


def column(what: str, most: int) -> str:
    return f"with {what} <= {most}" if most < STEPS[-1] else f"with more {what}"


def kind_of(failure: str | None) -> str | None:
    """What two failures of one cause have in common: an exception's type, or that a result is wrong."""
    if failure is None:
        return None
    match = re.match(r"\w+Error|gradient|too much|ended by \w+|ran over", failure)
    return match[0] if match else "wrong"


def smaller(program: Program, size: int) -> Iterator[Program]:
    """The program without some steps; at last with shorter loops."""
    yield from without_parts(program, size)
    if size > 1:
        return
    for i, step in enumerate(program):
        for text in shorter(step.text):
            yield [*program[:i], step._replace(text=text), *program[i + 1:]]


def shorter(text: str) -> Iterator[str]:
    head = re.match(r"for i in range\((\d+), (\d+)\):", text)
    if head:
        begin, end = int(head[1]), int(head[2])
        for fewer in (begin + (end - begin) // 2, end - 1):
            if begin + 1 < fewer < end:
                yield f"for i in range({begin}, {fewer}):"
    guard = re.match(r"if [^:]*: (.*)", text)
    if guard:
        yield guard[1]


def script_of(program: Program) -> str:
    kind = "" if Options.kind == "numpy" else f', "{Options.kind}"'
    return f'from loop_models import check\ncheck("""\n{text_of(program)}"""{kind})\n'


def main(name: str, doc: str, kind: str) -> None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--most-bodies", type=int, default=MOST_BODIES[kind])
    parser.add_argument("--most-kernels", type=int, default=MOST_KERNELS[kind])
    parser.add_argument("--most-seconds", type=float, default=MOST_SECONDS)
    parser.add_argument("--report", type=int, nargs="?", const=0, default=-1)
    own, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    Options.most_bodies, Options.most_kernels = own.most_bodies, own.most_kernels
    Options.most_seconds, Options.report = own.most_seconds, own.report
    Options.kind = kind
    if own.report >= 0:
        COUNTS.update({column(what, most): 0 for what in ("bodies", "kernels") for most in STEPS})
    Fuzzer(name, make, run, script_of, kind_of=kind_of, smaller=smaller, counts=COUNTS).main(doc)


if __name__ == "__main__":
    main("fuzz_loops", __doc__ or "", "numpy")
