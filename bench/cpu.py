"""weft's CPU device beside NumPy, PyTorch, JAX and tinygrad: what kernels take.

Each library is a process of its own, and all but the one that is measured are stopped. A case is first checked in
every library against NumPy in float64. Then rounds: in each, every library in turn runs the case for a while; what
counts is the least time of a run over all rounds.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"numpy": "numpy", "torch": "torch", "torch.compile": "torch", "jax": "jax", "tinygrad": "tinygrad"}
OURS = {"weft": "CPU", "weft C": "CPU:C"}  # devices
ROUNDS, SECONDS = 6, 0.4
LIMIT = 120  # seconds of an answer; past them the process is ended


def progress(text=""):
    print(f"\r{text:<70}\r", end="", file=sys.stderr, flush=True)


def clang():
    """tinygrad's CPU device needs one."""
    return next((c for c in ("clang", *(f"clang-{v}" for v in range(22, 13, -1))) if shutil.which(c)), None)


def environment(build, library, folder):
    """Of a process that uses this library; whatever it keeps on disk goes to the folder."""
    result = {**os.environ, "PYTHONPATH": str(build / "python"), "WEFT_DEVICE": OURS.get(library, "CPU"),
              "WEFT_CACHE_DIR": f"{folder}/weft", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "DEV": "CPU",
              "CACHEDB": f"{folder}/tinygrad.db", "JAX_PLATFORMS": "cpu"}
    if library == "tinygrad" and (compiler := clang()):
        result["CC"] = compiler
    return result


def missing(library):
    """Why it is left out, or None."""
    package = PEERS.get(library, "weft")
    done = subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True, text=True)
    if package != "weft" and done.returncode != 0:
        return f"`import {package}` fails: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    if library == "tinygrad" and clang() is None:
        return "its CPU device needs clang"
    if library == "torch.compile" and shutil.which("g++") is None:
        return "it needs g++"
    return None


def begin(what, engines=("weft", "tinygrad")):
    """Prints what is measured, and gives the engines that are there to be."""
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores{what}")
    if why := missing("tinygrad"):
        print(f"without tinygrad: {why}")
        return ["weft"]
    return list(engines)


class Process:
    """One library; stopped but while it answers."""

    def __init__(self, build, library, folder):
        self.library, self.result, self.log = library, folder / f"{library}.npy", folder / f"{library}.log"
        self.command = [sys.executable, str(HERE / "cpu_cases.py"), library, str(folder)]
        self.environment, self.process = environment(build, library, folder), None

    def ask(self, **command):
        if self.process is None:
            with open(self.log, "w") as log:
                self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                stderr=log, text=True, env=self.environment)
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answered, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        line = self.process.stdout.readline() if answered else ""
        if line:
            self.process.send_signal(signal.SIGSTOP)
            return json.loads(line)
        self.end()
        return {"error": f"ended: {self.log.read_text()[-200:].strip()}" if answered else f"no answer in {LIMIT} s"}

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def error_of(result, expected, bound):
    """None where the result is right."""
    if result.shape != expected.shape:
        return f"shape {result.shape} instead of {expected.shape}"
    error = float(abs(result - expected).max() / abs(expected).max())
    return None if error <= bound else f"wrong by {error:.1e} of the largest value, {bound:.0e} are allowed"


def measure(name, case, processes):
    """Seconds by library, and by library what was in the way."""
    import numpy as np
    ready, problems, times = [], {}, {}
    expected = np.asarray(case.reference(*(x.astype(np.float64) for x in case.inputs())))
    for process in processes:
        progress(f"{case.title}: {process.library} compiles")
        answer = process.ask(prepare=name)
        problem = answer.get("error") or error_of(np.load(process.result), expected, case.bound)
        if problem:
            problems[process.library] = problem
        else:
            ready.append(process)
    for i in range(ROUNDS):
        for process in ready:
            progress(f"{case.title}: round {i + 1} of {ROUNDS}, {process.library}")
            answer = process.ask(time=SECONDS) if process.library not in problems else {}
            if "least" in answer:
                times[process.library] = min(answer["least"], times.get(process.library, answer["least"]))
            elif answer:
                problems[process.library] = answer["error"]
    progress()
    return times, problems


def row(case, libraries, times):
    cells = "".join(f"{times[x] * 1e3:>15.2f}" if x in times else f"{'-':>15}" for x in libraries)
    peers = {x: t for x, t in times.items() if x in PEERS}
    if "weft" not in times or not peers:
        return f"{case.title:<22}{cells}"
    best = min(peers, key=peers.get)
    ratio = peers[best] / times["weft"]
    rate = f"{case.flops / times['weft'] / 1e9:>9.0f}" if case.flops else f"{'':>9}"
    short = "" if ratio >= case.mark else "  below"
    return f"{case.title:<22}{cells}{rate}{best:>15}{ratio:>8.2f}{case.mark:>7.2f}{short}"


def report(build, only=()):
    from cpu_cases import CASES
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores; milliseconds, the "
          f"least of {ROUNDS} rounds of {SECONDS} s")
    libraries, wrong, rows = [], False, []
    for library in (*PEERS, *OURS):
        if why := missing(library):
            print(f"without {library}: {why}")
        else:
            libraries.append(library)
    print(f"{'case':<22}{''.join(f'{x:>15}' for x in libraries)}{'GFLOP/s':>9}{'best peer':>15}{'ratio':>8}{'mark':>7}")
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        try:
            processes += [Process(build, x, pathlib.Path(folder)) for x in libraries]
            for name in only or CASES:
                times, problems = measure(name, CASES[name], processes)
                print(row(CASES[name], libraries, times), flush=True)
                rows.append([CASES[name].title, *(round(times[x] * 1e3, 3) if times.get(x) else None for x in libraries)])
                for library, problem in problems.items():
                    print(f"  {library}: {problem}")
                    wrong |= library in OURS
        finally:
            for process in processes:
                process.end()
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())}")
    if wrong:
        sys.exit("weft gives wrong results or none")
    return {"The CPU": {"unit": "milliseconds", "columns": libraries, "rows": rows}}


if __name__ == "__main__":
    report(pathlib.Path(os.environ.get("WEFT_BUILD", HERE.parent / "build" / "release")).resolve(), sys.argv[1:])
