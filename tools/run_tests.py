#!/usr/bin/env python3
"""Runs the test suites of a built tree. It ends in a line for each failure and `N passed, N failed, N skipped`.

    tools/run_tests.py [--preset release] [--suites gtest pytest fuzz devices torch lint asan-ubsan tsan]

gtest        build/<preset>/bin/weft_tests
pytest       the Python files under tests/, with the package of build/<preset>
fuzz         each fuzz program with the seed and count of FUZZ or PYTHON_FUZZ
devices      a slice of the Python tests and fuzz programs on each device of DEVICES that the machine has
torch        models on device weft, and one in so many of PyTorch's operators, see TORCH_OPERATORS
lint         clang-format, mypy, and clang-tidy of the files that changed lately have nothing to say
asan-ubsan   weft_tests and the fuzz programs of the sanitizer's own build, at reduced counts
tsan         likewise
"""

import argparse
import concurrent.futures
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.environ.setdefault("WEFT_DEVICE", "REF")  # what does not name a device is about values and schedules
os.environ.setdefault("CC", "gcc")  # drivers of other devices bring a clang, which would come first
if wgpu := importlib.util.find_spec("wgpu"):  # what is not Python finds its library by this
    folder = pathlib.Path(str(wgpu.origin)).parent
    os.environ.setdefault("WEFT_WGPU_LIBRARY", str(folder / "resources/libwgpu_native-release.so"))
TIME_LIMIT = 900  # seconds, for one program

# program: (seed, cases); other programs take DEFAULT_FUZZ.
# A case of fuzz_kernels is 50 kernels.
FUZZ = {"fuzz_simplify": (1, 100_000), "fuzz_schedule": (1, 20_000), "fuzz_lower": (1, 20_000), "fuzz_kernels": (1, 200),
        "fuzz_stages": (2_000, 8_000), "fuzz_work": (1, 10_000)}
DEFAULT_FUZZ = (1, 2_000)
# Of Python: (program, seed, cases, environment), on the package of the build.
PYTHON_FUZZ: list[tuple[str, int, int, dict[str, str]]] = [
    ("fuzz_programs", 1, 10_000, {}),
    ("fuzz_programs", 2, 2_000, {"WEFT_SCHEDULE": "0"}),  # by the evaluator, without schedules
    ("fuzz_programs", 3, 2_000, {"WEFT_DEVICE": "CPU"}),  # compiled
    ("fuzz_jit", 1, 2_000, {}),
    ("fuzz_gradients", 1, 10_000, {"WEFT_DEVICE": "REF"}),
    ("fuzz_gradients", 2, 1_000, {"WEFT_DEVICE": "CPU"}),
    ("fuzz_files", 1, 5_000, {}),
    ("fuzz_loops", 1, 4_000, {}),
    ("fuzz_loops", 2, 500, {"WEFT_DEVICE": "CPU"}),
    ("fuzz_loops", 3, 250, {"WEFT_SCHEDULE": "4"}),  # formulas cut into statements in other ways
    ("fuzz_loops", 4, 250, {"WEFT_SCHEDULE": "5"}),
    ("fuzz_loop_gradients", 1, 200, {"WEFT_DEVICE": "REF"}),
    ("fuzz_torch_loops", 1, 300, {"WEFT_DEVICE": "REF"}),
    ("fuzz_torch_loops", 2, 50, {"WEFT_DEVICE": "CPU"}),
    ("fuzz_sums", 1, 400, {"WEFT_DEVICE": "CPU"}),
    ("fuzz_torch", 1, 600, {"WEFT_DEVICE": "REF"}),
    ("fuzz_torch", 2, 120, {"WEFT_DEVICE": "CPU"}),
]

NEEDS_TORCH = {"fuzz_gradients", "fuzz_loop_gradients", "fuzz_sums"}
NEEDS_TORCH_DEVICE = {"fuzz_torch", "fuzz_torch_loops"}

# (dtype, one operator in so many, samples of each of its forms at most): OpInfos, which together take at most 4 minutes
# on 2 cores. `make test-torch-opinfo` runs all of float32.
TORCH_OPERATORS = [("float32", 10, 1000), ("int64", 40, 20), ("bool", 40, 20), ("bfloat16", 40, 20), ("float16", 40, 20),
                   ("complex64", 40, 20)]
TORCH_SEED = 1


class DeviceTests(NamedTuple):
    """What of the suites runs with WEFT_DEVICE set to a device: one in so many tests of some files, and fuzz programs
    with their cases."""

    files: dict[str, int]
    kernels: int  # cases of fuzz_kernels, each the kernels of a graph
    programs: int  # of fuzz_programs
    jits: int  # of fuzz_jit


# OPENCL and WEBGPU together take at most 5 minutes on 2 cores. CUDA is where there is a GPU.
ON_CUDA = DeviceTests({"test_ops_of_tables": 20, "test_tensor_programs": 4, "test_tensor_index": 2, "test_jit": 1,
                       "test_matmul_tiles": 1, "test_repeated_indices": 1}, 200, 300, 200)
DEVICES = {
    "CUDA": ON_CUDA,
    "CUDA:PTX": ON_CUDA,
    "OPENCL": DeviceTests({"test_ops_of_tables": 150, "test_tensor_programs": 20, "test_tensor_index": 8, "test_jit": 1},
                          40, 25, 20),
    "WEBGPU": DeviceTests({"test_ops_of_tables": 60, "test_tensor_programs": 20, "test_tensor_index": 8, "test_jit": 1},
                          40, 25, 20),
}

# Under a sanitizer a fuzz program runs one case in SANITIZED_SHARE, and weft_tests leaves out the
# tests that are about size, and those that load drivers, of which sanitizers know nothing.
SANITIZED_SHARE = 20
SANITIZED_FILTER = "-*Huge*:*OnDevice*:OpenCl*:WebGpu*"
SANITIZERS = {
    "asan-ubsan": {"ASAN_OPTIONS": "halt_on_error=1:detect_stack_use_after_return=1",
                   "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                   "LSAN_OPTIONS": f"suppressions={ROOT / 'tests/lsan.supp'}"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}


FUZZED: list[str] = []  # what ran, for the summary


class Count(NamedTuple):
    passed: int = 0
    failed: tuple[str, ...] = ()  # what failed, and in a few words why
    skipped: int = 0

    def plus(self, other: "Count") -> "Count":
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped"


def one(ok: bool, name: str) -> Count:
    return Count(passed=1) if ok else Count(failed=(name,))


def in_short(name: str, why: str) -> str:
    """A failure on one line."""
    return f"{name}: {' '.join(why.split())[:200]}".rstrip(": ")


def say(text: str) -> None:
    print(text, flush=True)


def call(parts: list[str | pathlib.Path], env: dict[str, str] | None = None, limit: int = TIME_LIMIT) -> bool:
    """Runs the command with its output shown; false if it fails or takes too long."""
    command = [str(part) for part in parts]
    try:
        code = subprocess.run(command, env={**os.environ, **(env or {})}, cwd=ROOT, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        say(f"  {' '.join(command[:2])} ran over {limit} seconds")
        return False
    if code != 0:
        say(f"  {' '.join(command)}: exit status {code}")
    return code == 0


def run_gtest(build: pathlib.Path, sanitizer: str | None = None) -> Count:
    """In a process for each core, which share the tests out among them."""
    shards = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(shards) as pool:
        counts = pool.map(lambda shard: run_gtest_shard(build, sanitizer, shard, shards), range(shards))
        return functools.reduce(Count.plus, counts)


def run_gtest_shard(build: pathlib.Path, sanitizer: str | None, shard: int, shards: int) -> Count:
    """Shows what GoogleTest says, but for the tests that start and those that pass in a second."""
    report = build / f"gtest{shard}.json"
    report.unlink(missing_ok=True)
    command = [*fixed_addresses(sanitizer), build / "bin/weft_tests", f"--gtest_output=json:{report}"]
    if sanitizer:
        command.append(f"--gtest_filter={SANITIZED_FILTER}")
    environment = {**os.environ, **SANITIZERS.get(sanitizer or "", {}), "GTEST_TOTAL_SHARDS": str(shards),
                   "GTEST_SHARD_INDEX": str(shard)}
    running = ""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as process:
        timer = threading.Timer(TIME_LIMIT, process.kill)
        timer.start()
        for line in process.stdout or ():
            if line.startswith("[ RUN"):
                running = line.split("]")[1].strip()
            elif not re.match(r"\[-{10}\]|\[ +OK \] .*\(\d{1,3} ms\)|Running main|Note: This is test shard|\s*$", line):
                print(line, end="", flush=True)
    timer.cancel()
    ok = process.returncode == 0
    if not report.exists():
        return one(False, f"{running}: weft_tests ended with exit status {process.returncode}")
    tests = [t for suite in json.loads(report.read_text())["testsuites"] for t in suite["testsuite"]]
    failed = [in_short(f"{t['classname']}.{t['name']}", t["failures"][0]["failure"]) for t in tests if "failures" in t]
    skipped = sum(t["result"] == "SKIPPED" for t in tests)
    suppressed = sum(t["result"] == "SUPPRESSED" for t in tests)
    passed = len(tests) - len(failed) - skipped - suppressed
    if not ok and not failed:  # a fault outside of any test, such as a leak found at exit
        failed = [f"weft_tests: exit status {process.returncode}"]
    return Count(passed, tuple(failed), skipped)


def python_environment(build: pathlib.Path) -> dict[str, str]:
    path = os.pathsep.join([str(build / "python"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {"PYTHONPATH": path, "WEFT_BUILD": str(build)}


def run_pytest(build: pathlib.Path) -> Count:
    folders = sorted({p.parent for p in (ROOT / "tests").rglob("test_*.py")})
    return pytest_of(build, [*all_cores(), "--durations=10", *folders])


def all_cores() -> list[str]:
    """What makes pytest run tests on each of them, where its plugin is there."""
    if importlib.util.find_spec("xdist") is None:
        return []
    return [f"--numprocesses={os.cpu_count() or 1}", "--dist=worksteal"]


def pytest_of(build: pathlib.Path, arguments: list[str | pathlib.Path],
              environment: dict[str, str] | None = None) -> Count:
    if importlib.util.find_spec("pytest") is None:
        say("  pytest is not installed")
        return Count(skipped=1)
    report = build / "pytest.xml"
    report.unlink(missing_ok=True)
    ok = call([sys.executable, "-m", "pytest", "-q", "-rs", "--tb=short", f"--junitxml={report}", *arguments],
              {**python_environment(build), **(environment or {})}, limit=2 * TIME_LIMIT)
    if not report.exists():
        return one(False, "pytest: no report")
    tests = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    skipped = sum(t.find("skipped") is not None for t in tests)
    failed = [in_short(f"{t.get('classname')}.{t.get('name')}", bad[0].get("message", ""))
              for t in tests if (bad := [*t.findall("failure"), *t.findall("error")])]
    passed = len(tests) - len(failed) - skipped
    if not ok and not failed:
        failed = ["pytest: a fault outside of any test"]
    return Count(passed, tuple(failed), skipped)


def run_fuzz(build: pathlib.Path, sanitizer: str | None = None) -> Count:
    def run(source: pathlib.Path) -> Count:
        seed, cases = FUZZ.get(source.stem, DEFAULT_FUZZ)
        if sanitizer:
            cases = max(1, cases // SANITIZED_SHARE)
        say(f"  {source.stem}: {cases} cases")
        ok = call([*fixed_addresses(sanitizer), build / "bin" / source.stem, f"--seed={seed}", f"--count={cases}"],
                  SANITIZERS.get(sanitizer or ""))
        FUZZED.append(f"{source.stem} {cases}")
        return one(ok, f"{source.stem} --seed={seed} --count={cases}")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        count = functools.reduce(Count.plus, pool.map(run, sorted((ROOT / "tests/fuzz").glob("fuzz_*.cpp"))))
    return count if sanitizer else count.plus(run_python_fuzz(build))


def run_python_fuzz(build: pathlib.Path, programs: list[tuple[str, int, int, dict[str, str]]] = PYTHON_FUZZ) -> Count:
    if importlib.util.find_spec("numpy") is None:
        say("  numpy is not installed")
        return Count(skipped=1)
    count = Count()
    for name, seed, cases, environment in programs:
        missing = why_no_torch() if name in NEEDS_TORCH else why_no_torch_device(build) if name in NEEDS_TORCH_DEVICE else ""
        if missing:
            say(f"  {name}: {missing}")
            count = count.plus(Count(skipped=1))
            continue
        title = " ".join([name, str(cases), *(f"{k}={v}" for k, v in environment.items())])
        say(f"  {title} cases")
        ok = call([sys.executable, ROOT / f"tests/fuzz/{name}.py", f"--seed={seed}", f"--count={cases}",
                   f"--processes={os.cpu_count() or 1}"], {**python_environment(build), **environment})
        count = count.plus(one(ok, f"{title} --seed={seed}"))
        FUZZED.append(title)
    return count


def why_missing(build: pathlib.Path, device: str) -> str:
    """Why tests cannot run on a device; empty if they can."""
    family = device.split(":")[0]  # where there is none of it, the reason stands there
    code = ("import weft; missing = {d.name: d.missing for d in weft.Device.all()}; "
            f"print(missing.get({device!r}, missing.get({family!r}, 'unknown')))")
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, **python_environment(build)}, cwd=ROOT,
                         capture_output=True, text=True)
    return out.stdout.strip() if out.returncode == 0 else out.stderr.strip()


def run_devices(build: pathlib.Path) -> Count:
    count = Count()
    for device, tests in DEVICES.items():
        if missing := why_missing(build, device):
            say(f"  {device} is missing: {missing}")
            count = count.plus(Count(skipped=1))
            continue
        say(f"  {device}")
        start = time.monotonic()
        environment = {"WEFT_DEVICE": device}
        for file, share in tests.files.items():
            say(f"  {file}.py, one test in {share}")
            count = count.plus(pytest_of(build, [f"--one-in={share}", ROOT / f"tests/python/{file}.py"], environment))
        ok = call([build / "bin/fuzz_kernels", "--seed=1", f"--count={tests.kernels}"], environment)
        FUZZED.append(f"fuzz_kernels {tests.kernels} WEFT_DEVICE={device}")
        count = count.plus(one(ok, f"{FUZZED[-1]} --seed=1"))
        count = count.plus(run_python_fuzz(build, [("fuzz_programs", 4, tests.programs, environment),
                                                   ("fuzz_jit", 4, tests.jits, environment)]))
        say(f"  {device}: {time.monotonic() - start:.1f} s")
    return count


def why_no_torch() -> str:
    return "torch is not installed" if importlib.util.find_spec("torch") is None else ""


def why_no_torch_device(build: pathlib.Path) -> str:
    """Why device weft of PyTorch cannot be tested; empty if it can."""
    return why_no_torch() or ("" if list((build / "python/weft/torch").glob("_C.*")) else "the build has no weft.torch")


def run_torch(build: pathlib.Path) -> Count:
    missing = why_no_torch_device(build)
    count = Count()
    if not missing:  # models and training on compiled kernels: the suite of pytest has them on the reference device
        files = [ROOT / f"tests/torch/test_{name}.py" for name in ("models", "training", "compile")]
        count = pytest_of(build, [*all_cores(), *files], {"WEFT_DEVICE": "CPU"})
    if not missing and importlib.util.find_spec("expecttest") is None:
        missing = "expecttest, which PyTorch's samples need, is not installed"
    if missing:
        say(f"  {missing}")
        return count.plus(Count(skipped=1))
    for dtype, one_in, samples in TORCH_OPERATORS:
        command = [sys.executable, str(ROOT / "tests/torch/opinfo.py"), f"--dtype={dtype}", f"--one-in={one_in}",
                   f"--seed={TORCH_SEED}", f"--most-samples={samples}"]
        environment = {**os.environ, **python_environment(build), "WEFT_DEVICE": "CPU"}
        done = subprocess.run(command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE)
        say(done.stdout.rstrip())
        numbers = re.search(r"(\d+) passed, \d+ failed, (\d+) skipped\s*$", done.stdout)
        failed = tuple(f"{dtype} {line.strip()}" for line in re.findall(r"^  FAILED (.*)$", done.stdout, re.MULTILINE))
        if numbers and (done.returncode == 0) == (not failed):
            count = count.plus(Count(int(numbers[1]), failed, int(numbers[2])))
        else:
            count = count.plus(one(False, f"opinfo.py --dtype={dtype}: exit status {done.returncode}"))
    return count


def run_lint(build: pathlib.Path) -> Count:
    if any(importlib.util.find_spec(m) is None for m in ("clang_format", "clang_tidy", "mypy")):
        say("  the pinned clang-format, clang-tidy and mypy are not installed")
        return Count(skipped=1)
    ok = call([sys.executable, ROOT / "tools/lint.py", "--changed", "--build", build], limit=4 * TIME_LIMIT)
    return one(ok, "lint")


def run_sanitizer(name: str) -> Count:
    build = ROOT / "build" / name
    return run_gtest(build, name).plus(run_fuzz(build, name))


def fixed_addresses(sanitizer: str | None) -> list[str | pathlib.Path]:
    """TSan of gcc 12 cannot map its shadow where the kernel randomises more than 28 bits."""
    bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
    return ["setarch", "-R"] if sanitizer == "tsan" and bits.exists() and int(bits.read_text()) > 28 else []


SUITES = {"gtest": run_gtest, "pytest": run_pytest, "fuzz": run_fuzz, "devices": run_devices, "torch": run_torch,
          "lint": run_lint}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--suites", "--only", nargs="+", default=list(SUITES), choices=[*SUITES, *SANITIZERS])
    arguments = parser.parse_args()

    total = Count()
    for name in arguments.suites:
        say(f"== {name}")
        start = time.monotonic()
        if name in SANITIZERS:
            count = run_sanitizer(name)
        else:
            count = SUITES[name](ROOT / "build" / arguments.preset)
        say(f"== {name}: {count} in {time.monotonic() - start:.1f} s")
        total = total.plus(count)
    if FUZZED:
        say(f"fuzzed: {', '.join(FUZZED)}")
    for failure in total.failed:
        say(f"FAILED {failure}")
    say(str(total))
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
