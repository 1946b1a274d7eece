"""Under a limit of memory a program succeeds or gets a typed error, never an abort; once the limit is gone the next
call works."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, traceback
import numpy as np
import weft
from weft import Tensor

def limit(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard if more is None else used + more, hard))

def work():
    a = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert ((a + 1) @ a.T).sum().item() == 113
    assert a.exp().log().round().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert Tensor.arange(100_000, dtype="int64").sum().item() == 4999950000
    assert a.sort(1)[0].tolist() == a.tolist()
    w = Tensor([2.0, 3.0]).requires_grad_()
    (w * w).sum().backward()
    assert w.grad.tolist() == [4, 6]
    big = Tensor.ones(1000, 1000).contiguous()
    assert (big + big).sum().item() == 2_000_000

first = None
if len(sys.argv) > 2:
    work()
limit(int(sys.argv[1]))
try:
    work()
    said = "worked"
except (weft.Error, MemoryError) as error:
    first, said = error, "raised"
limit(None)
if first is not None and not isinstance(first, weft.Error):
    where = traceback.extract_tb(first.__traceback__)[-1]
    if "weft" in where.filename:
        print("raw", where, first)
work()
print(said, type(first).__name__, str(first)[:100])
"""


def run(more: int, folder: pathlib.Path, *words: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(more), *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "WEFT_CACHE_DIR": str(folder), **environment})
    assert done.returncode == 0, (more, done.returncode, done.stdout, done.stderr[-2000:])
    assert "raw" not in done.stdout, (more, done.stdout)
    return done.stdout


LIMITS = [0, 100_000, 300_000, 1_000_000, 3_000_000, 6_000_000, 10_000_000, 20_000_000, 40_000_000, 80_000_000, 120_000_000,
          160_000_000, 200_000_000, 240_000_000, 300_000_000]


@pytest.mark.parametrize("device", ["CPU", "REF", "CPU:C"])
def test_every_limit(device: str, tmp_path: pathlib.Path) -> None:
    said = [run(more, tmp_path / str(more), WEFT_DEVICE=device) for more in (LIMITS if device == "CPU" else LIMITS[::3])]
    assert said[0].startswith("raised")


@pytest.mark.parametrize("more", LIMITS[::2])
def test_a_limit_after_it_has_worked(more: int, tmp_path: pathlib.Path) -> None:
    run(more, tmp_path, "warm", WEFT_DEVICE="CPU")
    run(more, tmp_path, WEFT_DEVICE="CPU")  # its kernels are on disk


def test_a_load_of_llvm_that_failed_is_tried_again(tmp_path: pathlib.Path) -> None:
    said = run(60_000_000, tmp_path, WEFT_DEVICE="CPU:LLVM")
    assert said.startswith("raised DeviceError [CPU:LLVM] out of memory"), said


def test_threads_that_cannot_start(tmp_path: pathlib.Path) -> None:
    run(200_000_000, tmp_path, WEFT_DEVICE="CPU", WEFT_THREADS="64", OMP_NUM_THREADS="64")
    run(20_000_000, tmp_path, "warm", WEFT_DEVICE="CPU", WEFT_THREADS="64", OMP_NUM_THREADS="64")
