#!/usr/bin/env python3
"""TorchCTS, a suite for devices of PyTorch that was not written here, on device weft: counts by suite, and what fails.

    conformance.py [--suites strides errors ...] [--level 8] [--one-in 10 --seed 1] [--samples 3] [--time-limit 3600]
                   [--results FILE] [--table docs/torch-conformance.md] [-v]

It needs the packages torchcts and psutil, which are no part of .venv: torchcts asks for another PyTorch, and is installed by
`pip install --no-deps torchcts psutil`. What is not claimed, and which tests fail and why, is in conformance_exceptions.py.
The last line is `N passed, N failed, N skipped`; failures with a reason count as skipped.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from typing import Any

from conformance_exceptions import FAILING, NOT_CLAIMED

SUITES = ["device_api", "errors", "memory", "serialization", "rng", "strides", "stress", "training", "workloads", "autograd",
          "dtypes", "operators", "compiler", "generated", "opinfo"]
MANIFEST = """
import pathlib, torchcts
exec((pathlib.Path(torchcts.__file__).parent / "templates" / "manifest.complete.py").read_text())
manifest.update(device_name="weft", backend_import="weft.torch", max_samples={samples}, max_samples_ieee754=1)
manifest["capabilities"].update({{name: False for name in {not_claimed}}})
"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="+", default=SUITES, choices=SUITES)
    parser.add_argument("--level", type=int, default=8)
    parser.add_argument("--one-in", type=int, default=1, help="one file in so many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=3, help="of each generated test")
    parser.add_argument("--time-limit", type=int, default=3600, help="seconds")
    parser.add_argument("--results", type=pathlib.Path, help="where the suite's own results go")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("-v", action="store_true", help="say more of what fails")
    return parser.parse_args()


def files_of(given: argparse.Namespace) -> list[str]:
    found = importlib.util.find_spec("torchcts")
    assert found is not None and found.origin is not None
    folder = pathlib.Path(found.origin).parent
    files = sorted(str(file) for suite in given.suites for file in (folder / suite).glob("test_*.py"))
    return sorted(random.Random(given.seed).sample(files, -(-len(files) // given.one_in)))


def run(given: argparse.Namespace, folder: pathlib.Path) -> dict[str, Any]:
    """The suite's own results, by test."""
    (folder / "manifest.py").write_text(MANIFEST.format(samples=given.samples, not_claimed=sorted(NOT_CLAIMED)))
    command = [sys.executable, "-m", "torchcts", "run", "--device", "weft", "--non-interactive", "--level", str(given.level),
               "--results-dir", str(folder / "results"), "-p", "no:cacheprovider", *files_of(given)]
    log = folder / "log"
    with log.open("wb") as out:
        try:
            done = subprocess.run(command, cwd=folder, stdout=out, stderr=out, timeout=given.time_limit, check=False,
                                  env={**os.environ, "TORCHCTS_NON_INTERACTIVE": "1"})
            if done.returncode not in (0, 1):
                print(f"  FAILED: exit status {done.returncode}; the end of what it said:\n{log.read_text()[-3000:]}")
        except subprocess.TimeoutExpired:
            print(f"  stopped after {given.time_limit} s; counts are of what ran")
    files = sorted((folder / "results").glob("*_latest.json"))
    if not files:
        sys.exit(f"torchcts gave no results:\n{log.read_text()[-3000:]}")
    text = files[-1].read_text()
    if given.results:
        given.results.write_text(text)
    results: dict[str, Any] = json.loads(text)["results"]
    return results


def reason_for(test: str) -> str:
    """Why it fails; empty where it should not."""
    return next((why for name, why in FAILING.items() if name in test), "")


def table_of(given: argparse.Namespace, counts: dict[str, collections.Counter[str]], failing: dict[str, str]) -> str:
    total = sum(counts.values(), collections.Counter[str]())
    ran = total["PASS"] + sum(total[k] for k in ("FAIL", "ERROR"))
    lines = ["# A conformance suite for devices of PyTorch", "",
             f"Written by `tests/torch/conformance.py --table docs/torch-conformance.md --level {given.level} "
             f"--samples {given.samples}`: TorchCTS, which was not written here, on device weft. "
             f"{total['PASS']} of {ran} tests that ran pass.", "",
             "| suite | passed | failed | skipped by the suite |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {suite} | {c['PASS']} | {c['FAIL'] + c['ERROR']} | {c['SKIP']} |" for suite, c in sorted(counts.items())]
    lines += ["", "What is not claimed, so that its tests do not run:", "", "| capability | why |", "| --- | --- |"]
    lines += [f"| {name} | {why} |" for name, why in sorted(NOT_CLAIMED.items())]
    lines += ["", "What fails:", "", "| test | why |", "| --- | --- |"]
    return "\n".join(lines + [f"| {test} | {why or 'to be mended'} |" for test, why in sorted(failing.items())]) + "\n"


def main() -> int:
    if any(importlib.util.find_spec(name) is None for name in ("torchcts", "psutil")):
        print("torchcts is not installed: pip install --no-deps torchcts psutil\n0 passed, 0 failed, 1 skipped")
        return 0
    given = options()
    with tempfile.TemporaryDirectory() as folder:
        results = run(given, pathlib.Path(folder))
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failing: dict[str, str] = {}
    for test, result in results.items():
        name = test.split("torchcts/")[-1]
        counts[name.split("/")[0]][result["status"]] += 1
        if result["status"] in ("FAIL", "ERROR"):
            failing[name] = reason_for(name)
            if not failing[name]:
                message = str(result["error_message"]).strip() or str(result["error_type"])
                print(f"  FAILED {name}: {message if given.v else message.splitlines()[0][:160]}")
    if given.table:
        given.table.write_text(table_of(given, counts, failing))
    passed = sum(c["PASS"] for c in counts.values())
    failed = sum(not why for why in failing.values())
    print(f"{passed} passed, {failed} failed, {sum(c['SKIP'] for c in counts.values()) + len(failing) - failed} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
