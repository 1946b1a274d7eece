"""The command line of a fuzzer whose cases are lists of steps: runs them in processes, and makes one that fails small.

    fuzz_<what>.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1] [--known REGEX] [--case N] [--show]

A case depends on the seed and its number alone: --case N runs one. --count 0 runs for ever.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from in_child import failure_in_child

# Seconds, for one case; devices whose compilers are slow have more.
TIME_LIMIT = 20 if os.environ.get("WEFT_DEVICE", "REF").startswith(("REF", "CPU")) else 120
MOST_SHRINKING = 120  # seconds


class Failed(Exception):
    """A wrong result."""


def without_parts(steps: list[Any], size: int) -> Iterator[list[Any]]:
    """The steps without `size` of them, from the end on."""
    for start in range(len(steps) - size, -1, -size):
        yield steps[:start] + steps[start + size:]


class Fuzzer:
    """`make(text)` gives the steps that a text stands for, `run(steps)` raises Failed where they show a fault and
    anything else where they have no meaning, `script_of(steps)` is a script that shows it.

    Two failures with one `kind_of` count as one while steps are left out; `smaller(steps, size)` is how they are.
    What `run` adds to `counts` is summed up over processes and printed."""

    def __init__(self, name: str, make: Callable[[str], list[Any]], run: Callable[[list[Any]], None],
                 script_of: Callable[[list[Any]], str], *,
                 kind_of: Callable[[str | None], str | None] = lambda failure: failure and "failure",
                 smaller: Callable[[list[Any], int], Iterator[list[Any]]] = without_parts,
                 counts: dict[str, int] | None = None) -> None:
        self.name, self.make, self.run, self.script_of = name, make, run, script_of
        self.kind_of, self.smaller, self.counts = kind_of, smaller, counts if counts is not None else {}

    def outcome(self, steps: list[Any]) -> str | None:
        """What fails, in a process of its own."""
        return failure_in_child(lambda: self.run(steps), Failed, TIME_LIMIT)

    def shrunk(self, steps: list[Any]) -> list[Any]:
        """The steps that the failure needs."""
        kind = self.kind_of(self.outcome(steps))
        end = time.monotonic() + MOST_SHRINKING
        size = max(1, len(steps) // 2)
        while time.monotonic() < end:
            in_time = itertools.takewhile(lambda _: time.monotonic() < end, self.smaller(steps, size))
            found = next((p for p in in_time if self.kind_of(self.outcome(p)) == kind), None)
            if found is not None:
                steps = found
            elif size == 1:
                break
            else:
                size //= 2
        return steps

    def report(self, seed: int, case: int) -> None:
        """Prints the smallest program that fails."""
        print(f"case {case} of seed {seed} fails; making it smaller ...", flush=True)
        steps = self.make(f"{seed}/{case}")
        small = self.shrunk(steps)
        why = self.outcome(small) or self.outcome(steps) or "it does not fail in a process of its own"
        print(f"---- 8< ----\n# {self.name}.py --seed {seed} --case {case}\n{self.script_of(small)}"
              f"---- >8 ----\n{why}", flush=True)

    def work(self, seed: int, cases: Any, current: Any, failed: Any, most: int, known: str, sums: Any) -> None:
        """Runs cases until `most` have failed in a way that is not known; the parent sees the case at hand."""
        for case in cases:
            current.value = case
            signal.alarm(TIME_LIMIT)
            try:
                self.run(self.make(f"{seed}/{case}"))
            except Failed as error:
                if not known or not re.search(known, str(error)):
                    with failed.get_lock():
                        failed[next(i for i, c in enumerate(failed) if c < 0)] = case
            signal.alarm(0)
            if failed[most - 1] >= 0:
                break
        with sums.get_lock():
            for i, count in enumerate(self.counts.values()):
                sums[i] += count

    def fuzz(self, seed: int, first: int, count: int, processes: int, most: int = 1, known: str = "") -> list[int]:
        """The cases that failed."""
        fork = multiprocessing.get_context("fork")
        failed = fork.Array("l", [-1] * (most + processes))
        sums = fork.Array("l", max(len(self.counts), 1))
        start = time.monotonic()
        workers = []
        for k in range(processes):
            cases = itertools.count(first + k, processes) if count == 0 else range(first + k, first + count, processes)
            current = fork.Value("l", -1)
            worker = fork.Process(target=self.work, args=(seed, cases, current, failed, most, known, sums))
            worker.start()
            workers.append((worker, current))
        for worker, _ in workers:
            worker.join()
        crashed = {current.value for worker, current in workers if worker.exitcode != 0}
        bad = sorted(crashed | {case for case in failed if case >= 0})
        done = f"{count} cases" if not bad else f"stopped at {max(c.value for _, c in workers) - first + 1} cases"
        more = "".join(f"{n} {name}, " for name, n in zip(self.counts, sums))
        print(f"  {self.name}: seed {seed}, {done}, {more}{len(bad)} failures, {time.monotonic() - start:.1f} s", flush=True)
        return bad

    def main(self, doc: str) -> None:
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--count", type=int, default=1000)
        parser.add_argument("--first", type=int, default=0, help="the number of the first case")
        parser.add_argument("--processes", type=int, default=1)
        parser.add_argument("--failures", type=int, default=1, help="stop after this many")
        parser.add_argument("--known", default="", help="pass over failures whose message this regular expression finds")
        parser.add_argument("--case", type=int, help="one case alone")
        parser.add_argument("--show", action="store_true", help="print the case instead of running it")
        given = parser.parse_args()
        if given.show:
            print(self.script_of(self.make(f"{given.seed}/{given.case or 0}")), end="")
            return
        if given.case is not None:
            bad = [given.case] if self.outcome(self.make(f"{given.seed}/{given.case}")) else []
        else:
            bad = self.fuzz(given.seed, given.first, given.count, given.processes, given.failures, given.known)
        for case in bad:
            self.report(given.seed, case)
        sys.exit(1 if bad else 0)
