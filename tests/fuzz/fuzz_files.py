"""Damaged and hostile files of tensors, read in processes of their own, each file in bounded time and memory.

A file is read, or refused by a FileFormatError: anything else, 5 seconds of a processor, or 1 GiB more than the process
had, is a failure. A case is one file.
"""

import argparse
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from random_file import bombs, file_of, write  # noqa: E402

import weft  # noqa: E402
from weft import Tensor  # noqa: E402
from weft.nn import state  # noqa: E402

SECONDS = 5
OVERDUE = (signal.SIGPROF, signal.SIGALRM)  # of a processor's time, and of all
BYTES = 1 << 30
LOADERS = {"torch": state.torch_load, "npz": state.npz_load, "npy": state.npy_load, "safetensors": state.safe_load,
           "tar": state.tar_extract}


def tensors_of(value: Any) -> list[Tensor]:
    """Those that are easy to find: what was read may be as deep as it likes."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    return [x for x in inner if isinstance(x, Tensor)][:20]


def read(kind: str, path: pathlib.Path) -> None:
    """Raises what is no FileFormatError."""
    try:
        value = LOADERS[kind](path)  # type: ignore[operator]
    except weft.FileFormatError as error:
        text = str(error)
        assert path.name in text and len(text) < 2000, f"its message is {text[:200]!r} of {len(text)}"
        return
    for tensor in tensors_of(value):
        if tensor.numel() < 10_000:
            tensor.numpy()



def limit_time(seconds: float) -> None:
    """From now on; 0: no longer."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds)


def how_it_ended(number: int) -> str:
    return f"ran over {SECONDS} seconds" if number in OVERDUE else f"ended by {signal.Signals(number).name}"


def _in_child(seed: int, numbers: range, report: int) -> None:
    """Writes the number of each case before it, and of one that failed with why after it."""
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    for each in OVERDUE:
        signal.signal(each, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            os.write(report, f"{number}\n".encode())
            kind, data = file_of(f"{seed}/{number}")
            path = write(pathlib.Path(folder), data)
            limit_time(SECONDS)
            try:
                read(kind, path)
            except BaseException as error:
                os.write(report, f"{number} {type(error).__name__}: {str(error)[:200]}\n".encode())
            limit_time(0)


def run(seed: int, numbers: range) -> list[tuple[int, str]]:
    """The failures among these cases."""
    failures = []
    while numbers:
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(source)
                _in_child(seed, numbers, sink)
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(source) as pipe:
            lines = pipe.read().splitlines()
        _, status = os.waitpid(child, 0)
        failures += [(int(n), why) for n, _, why in (line.partition(" ") for line in lines) if why]
        if not os.WIFSIGNALED(status):
            break
        last = int(lines[-1].split()[0]) if lines else numbers[0]
        failures.append((last, how_it_ended(os.WTERMSIG(status))))
        numbers = range(last + 1, numbers.stop)
    return failures


def run_bomb(name: str) -> str | None:
    """Why a bomb is not defused; None if it is."""
    kind, data = bombs()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = write(pathlib.Path(folder), data)
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
                for each in OVERDUE:
                    signal.signal(each, signal.SIG_DFL)
                limit_time(SECONDS)
                read(kind, path)
            except BaseException as error:
                os.write(sink, f"{type(error).__name__}: {str(error)[:200]}".encode())
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(source) as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
    return how_it_ended(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else said or None


def _run(arguments: tuple[int, range]) -> list[tuple[int, str]]:
    return run(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--case", type=int, help="one case alone, in this process")
    given = parser.parse_args()
    if given.case is not None:
        kind, data = file_of(f"{given.seed}/{given.case}")
        with tempfile.TemporaryDirectory() as folder:
            print(kind, data[:400])
            read(kind, write(pathlib.Path(folder), data))
        return
    begin = time.monotonic()
    parts = [(given.seed, range(at, min(at + 500, given.count))) for at in range(0, given.count, 500)]
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        failures = [failure for found in pool.imap(_run, parts) for failure in found]
    failures += [(-1, f"{name}: {why}") for name in bombs() if (why := run_bomb(name))]
    for number, why in failures[:20]:
        print(f"case {number}: {why}    (--seed {given.seed} --case {number})")
    print(f"{given.count} files, {len(failures)} failures, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
