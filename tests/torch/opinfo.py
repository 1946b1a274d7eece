#!/usr/bin/env python3
"""PyTorch's own samples of its operators (OpInfos) on device weft against its CPU.

    opinfo.py [--dtype float32] [--what fwd,inplace,expanded,out,expanded-out,grad,errors] [--only add,mul]
              [--one-in 10 --seed 1] [--shards 2] [--results FILE] [--table docs/torch-coverage.md] [--time-limit 60] [-v]

For each operator: its results, those of its in-place and out= forms, also through expanded tensors, and its gradients, on
each of its samples, and the errors that it raises for samples that are wrong. Shards are processes; one that crashes or
does not come back is started again after the operator that it was at. A line per operator goes to the results, and --table
writes them as a document.
The last line is `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from typing import Any

PASSED, FAILED, CRASHED, SKIPPED = "pass", "fail", "crash", "skip"
WHAT = "fwd,inplace,expanded,out,expanded-out,grad,errors"
MOST_SAMPLES = 10**9  # all


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--what", default=WHAT)
    parser.add_argument("--only", default="", help="names of operators, with commas")
    parser.add_argument("--one-in", type=int, default=1, help="one operator in so many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-samples", type=int, default=MOST_SAMPLES, help="of each operator and form")
    parser.add_argument("--time-limit", type=int, default=60, help="seconds for an operator; samples after it are left out")
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--shard", type=int, help="be this shard, and write to the results")
    parser.add_argument("-v", action="store_true", help="say more of what fails")
    return parser.parse_args()


def run_shards(given: argparse.Namespace, folder: pathlib.Path) -> list[dict[str, Any]]:
    """The results of all operators, by name."""
    files = [folder / f"{k}.jsonl" for k in range(given.shards)]
    running = {k: start_shard(k, files[k]) for k in range(given.shards)}
    begun = dict.fromkeys(running, 0)
    while running:
        time.sleep(0.2)
        for k, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[k]
            if process.returncode != 0:
                results = len(read_results(files[k]))
                if results == begun[k]:  # it would not get further the next time
                    sys.exit(f"shard {k} cannot begin:\n{files[k].with_suffix('.log').read_text()[-2000:]}")
                begun[k] = results
                running[k] = start_shard(k, files[k])
    return sorted((r for file in files for r in read_results(file).values()), key=lambda r: r["op"])


def start_shard(k: int, file: pathlib.Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTORCH_JIT_LOG_LEVEL": ""}
    with file.with_suffix(".log").open("ab") as log:
        return subprocess.Popen([sys.executable, __file__, *sys.argv[1:], f"--shard={k}", f"--results={file}"],
                                stdout=log, stderr=log, env=environment)


def read_results(file: pathlib.Path) -> dict[str, dict[str, Any]]:
    """By operator; one that was begun and has no result crashed."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {result["op"]: result for result in map(json.loads, lines)}


def say_results(given: argparse.Namespace, results: list[dict[str, Any]], seconds: float) -> bool:
    verdicts = collections.Counter(r["verdict"] for r in results)
    for r in results:
        if r["verdict"] not in (PASSED, SKIPPED):
            why = "crashed, or did not come back" if r["verdict"] == CRASHED else r["errors"][0]
            print(f"  FAILED {r['op']}: {why if given.v else str(why)[:160]}")
    native = sum(r["verdict"] == PASSED and not r["fallback"] for r in results)
    samples = sum(r.get("samples", 0) for r in results)
    print(f"  {given.dtype}: {len(results)} operators, {samples} samples, {native} operators without a fallback, "
          f"{sum(bool(r.get('cut')) for r in results)} cut short, {seconds:.1f} s")
    failed = verdicts[FAILED] + verdicts[CRASHED]
    print(f"{verdicts[PASSED]} passed, {failed} failed, {verdicts[SKIPPED]} skipped", flush=True)
    return failed == 0


def table_of(given: argparse.Namespace, results: list[dict[str, Any]]) -> str:
    tested = [r for r in results if r["verdict"] != SKIPPED]
    native = [r for r in tested if r["verdict"] == PASSED and not r["fallback"]]
    with_fallback = [r for r in tested if r["verdict"] == PASSED and r["fallback"]]
    failing = [r for r in tested if r["verdict"] not in (PASSED, SKIPPED)]
    skipped = [r for r in results if r["verdict"] == SKIPPED]
    fallbacks = collections.Counter(name for r in tested for name in r.get("fallback", {}))
    lines = [
        "# Coverage of PyTorch's operators", "",
        "Written by `make test-torch-opinfo`: PyTorch's own samples of its operators (OpInfos, which a table of its tests "
        "lists) on device weft against its CPU, results, in-place forms, out= forms, gradients and errors.", "",
        f"Of {len(results)} OpInfos of {given.dtype}:", "",
        "| | OpInfos |", "| --- | ---: |",
        f"| give the CPU's answer, all by weft | {len(native)} |",
        f"| give the CPU's answer, with operators of PyTorch's CPU | {len(with_fallback)} |",
        f"| fail | {len(failing)} |",
        f"| not asked, see tests/torch/opinfo_exceptions.py | {len(skipped)} |", "",
        f"{sum(r.get('samples', 0) for r in tested)} samples{limits_of(given, tested)}. The operators that PyTorch's CPU does most often, with the "
        "OpInfos that meet them: " + ", ".join(f"{name} {n}" for name, n in fallbacks.most_common(20)) + ".", "",
        "| OpInfo | verdict |", "| --- | --- |",
    ]
    return "\n".join(lines + [f"| {r['op']} | {verdict_of(r)} |" for r in results]) + "\n"


def limits_of(given: argparse.Namespace, tested: list[dict[str, Any]]) -> str:
    """What was left out of them."""
    cut = sum(bool(r.get("cut")) for r in tested)
    most = f", at most {given.most_samples} of each form" if given.most_samples < MOST_SAMPLES else ""
    return most + (f"; {cut} OpInfos were cut short after {given.time_limit} s" if cut else "")


def verdict_of(result: dict[str, Any]) -> str:
    if result["verdict"] == SKIPPED:
        return f"not asked: {result['why']}"
    if result["verdict"] == CRASHED:
        return "fails: crashes, or does not come back"
    if result["verdict"] == FAILED:
        form, sample, why = result["errors"][0]
        why = " ".join(str(why).split())[:120].replace("|", "\\|")
        return f"fails: {len(result['errors'])} of {result['samples']} samples; {form} {sample}: {why}"
    return "with fallback: " + ", ".join(sorted(result["fallback"])) if result["fallback"] else "native"


def main() -> int:
    given = options()
    if given.shard is not None:
        from opinfo_shard import run_shard
        run_shard(given)
        return 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = run_shards(given, pathlib.Path(folder))
    if given.results:
        given.results.write_text("".join(json.dumps(r) + "\n" for r in results))
    if given.table:
        given.table.write_text(table_of(given, results))
    return 0 if say_results(given, results, time.monotonic() - start) else 1


def chosen(names: list[str], one_in: int, seed: int) -> set[str]:
    """One in so many, the same whenever the seed is."""
    return set(random.Random(seed).sample(sorted(names), (len(names) + one_in - 1) // one_in))


if __name__ == "__main__":
    sys.exit(main())
