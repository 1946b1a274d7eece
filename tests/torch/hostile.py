#!/usr/bin/env python3
"""The operators of device weft on random and hostile arguments, against PyTorch's CPU.

    hostile.py [--calls 1000] [--seed 1] [--only glu_backward,add.Tensor] [--first 0] [--shards 2] [-v]
    hostile.py --seed 1 --call 1234

Every schema that the device registers is called: out= forms, in-place forms and gradients too. The CPU must accept the
arguments, or one or two of them are then made hostile: ranks, dims, sizes, dtypes, devices, lists and numbers that the
operator does not take. Where the CPU raises the device must raise, and where it computes the device must compute the
same. Calls are made in child processes: one that crashes or hangs has failed, by the name of its call. A call depends on
its number and the seed alone: --call runs one again, here.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import traceback
from typing import Any

import hostile_calls

VERDICTS = ("raised on both", "agreed", "exceptions", "failed")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--only", default="", help="names of operators, with commas")
    parser.add_argument("--call", type=int, help="make one call, in this process")
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for a call")
    parser.add_argument("--folder", type=pathlib.Path, help="an empty one, for lines of JSON: calls that fail or are exceptions")
    parser.add_argument("--crashes-only", action="store_true", help="fail where a process ends; other differences are said")
    parser.add_argument("-v", action="store_true", help="say all failures, not one of each operator and kind")
    return parser.parse_args()


def run_shards(given: argparse.Namespace, folder: pathlib.Path) -> list[dict[str, Any]]:
    """What came of the calls, those that agreed in sums. A shard that crashes goes on after its last call."""
    files = [folder / f"{k}.jsonl" for k in range(given.shards)]
    running = {start_shard(given, files[k], given.first + k): k for k in range(given.shards)}
    while running:
        process, status = os.wait()
        k = running.pop(process)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            continue
        call = json.loads(files[k].with_suffix(".now").read_text().partition("\0")[0])
        log = files[k].with_suffix(".log").read_text(errors="replace")[-1500:]
        how = "does not come back" if "Timeout" in log else f"ends the process ({code})"
        with files[k].open("a") as file:
            print(json.dumps({"counts": call.pop("counts")}), file=file)
            if call["on"] == "weft":
                print(json.dumps({**call, "verdict": "failed", "kind": "crashed", "why": how, "log": log}), file=file)
        again = {"on_weft_alone": call} if call["on"] == "cpu" else {}
        running[start_shard(given, files[k], call["number"] + (0 if again else given.shards), **again)] = k
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def start_shard(given: argparse.Namespace, file: pathlib.Path, first: int,
                on_weft_alone: dict[str, Any] | None = None) -> int:
    """A child of this process: it begins with all that is imported here, and with a call that the CPU did not survive."""
    process = os.fork()
    if process == 0:
        log = os.open(file.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            hostile_calls.run_shard(given, file, first, on_weft_alone)
            os._exit(0)
        except BaseException:  # noqa: BLE001  it must not go on as its parent
            traceback.print_exc()
            os._exit(99)
    return process


def say(given: argparse.Namespace, results: list[dict[str, Any]], seconds: float) -> bool:
    counts: collections.Counter[str] = collections.Counter()
    for r in results:
        counts.update(r["counts"] if "counts" in r else {r["verdict"]: 1})
    failures = [r for r in results if r.get("verdict") == "failed"]
    said: set[tuple[str, str]] = set()
    for r in sorted(failures, key=lambda r: (r["op"], r["number"])):
        if given.v or (r["op"], r["kind"]) not in said:
            same = sum(f["op"] == r["op"] and f["kind"] == r["kind"] for f in failures)
            print(f"  FAILED {r['kind']} x{same}: --seed {given.seed} --call {r['number']}: {r['text']}\n"
                  f"    {r['why'][:300]}")
        said.add((r["op"], r["kind"]))
    made = sum(counts[v] for v in VERDICTS)
    print(f"{made} calls, seed {given.seed}, {seconds:.1f} s: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS), flush=True)
    return not [r for r in failures if r["kind"] == "crashed" or not given.crashes_only]


def main() -> int:
    given = options()
    start = time.monotonic()
    hostile_calls.prepare()
    if given.call is not None:
        return hostile_calls.run_one(given)
    with tempfile.TemporaryDirectory() as folder:
        results = run_shards(given, given.folder or pathlib.Path(folder))
    return 0 if say(given, results, time.monotonic() - start) else 1


if __name__ == "__main__":
    sys.exit(main())
