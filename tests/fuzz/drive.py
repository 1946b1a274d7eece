"""The command line of a fuzzer whose cases are lists of steps: runs them in processes, and makes one that fails small."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from in_child import failure_in_child

TIME_LIMIT = 20  # seconds, for one case
MOST_SHRINKING = 90  # seconds


class Failed(Exception):
    """A wrong result."""


class Fuzzer:
    """`make(text)` gives the steps that a text stands for, `run(steps)` raises Failed where they show a fault and
    anything else where they have no meaning, `script_of(steps)` is a script that shows it."""

    def __init__(self, name: str, make: Callable[[str], list[Any]], run: Callable[[list[Any]], None],
                 script_of: Callable[[list[Any]], str]) -> None:
        self.name, self.make, self.run, self.script_of = name, make, run, script_of

    def outcome(self, steps: list[Any]) -> str | None:
        return failure_in_child(lambda: self.run(steps), Failed, TIME_LIMIT)

    def shrunk(self, steps: list[Any]) -> list[Any]:
        """The steps that the failure needs."""
        end = time.monotonic() + MOST_SHRINKING
        size = max(1, len(steps) // 2)
        while time.monotonic() < end:
            parts = [steps[:i] + steps[i + size:] for i in range(len(steps) - size, -1, -size)]
            found = next((p for p in parts if self.outcome(p) is not None), None)
            if found is not None:
                steps = found
            elif size == 1:
                break
            else:
                size //= 2
        return steps

    def report(self, seed: int, case: int) -> None:
        print(f"case {case} of seed {seed} fails; making it smaller ...", flush=True)
        small = self.shrunk(self.make(f"{seed}/{case}"))
        print(f"---- 8< ----\n# {self.name}.py --seed {seed} --case {case}\n{self.script_of(small)}"
              f"---- >8 ----\n{self.outcome(small)}", flush=True)

    def work(self, seed: int, cases: Any, current: Any, failed: Any) -> None:
        for case in cases:
            current.value = case
            if failed.value >= 0:
                break
            signal.alarm(TIME_LIMIT)
            try:
                self.run(self.make(f"{seed}/{case}"))
            except Failed:
                failed.value = case
            signal.alarm(0)
        current.value = -1

    def fuzz(self, seed: int, first: int, count: int, processes: int) -> list[int]:
        """The cases that failed."""
        fork = multiprocessing.get_context("fork")
        failed = fork.Value("l", -1)
        workers = []
        for k in range(processes):
            cases = itertools.count(first + k, processes) if count == 0 else range(first + k, first + count, processes)
            current = fork.Value("l", -1)
            worker = fork.Process(target=self.work, args=(seed, cases, current, failed))
            worker.start()
            workers.append((worker, current))
        bad = {failed.value} - {-1}
        for worker, current in workers:
            worker.join()
            if worker.exitcode != 0:
                bad.add(current.value)
        return sorted(bad | ({failed.value} - {-1}))

    def main(self, doc: str) -> None:
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--count", type=int, default=1000)
        parser.add_argument("--first", type=int, default=0)
        parser.add_argument("--processes", type=int, default=1)
        parser.add_argument("--case", type=int)
        parser.add_argument("--show", action="store_true", help="print the case instead of running it")
        given = parser.parse_args()
        if given.show:
            print(self.script_of(self.make(f"{given.seed}/{given.case or 0}")), end="")
            return
        if given.case is not None:
            bad = [given.case] if self.outcome(self.make(f"{given.seed}/{given.case}")) else []
        else:
            bad = self.fuzz(given.seed, given.first, given.count, given.processes)
        for case in bad:
            self.report(given.seed, case)
        print(f"{self.name}: {given.count} cases from seed {given.seed}: "
              f"{'no fault' if not bad else f'{len(bad)} failed'}", flush=True)
        sys.exit(1 if bad else 0)
