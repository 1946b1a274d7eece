"""Random programs by weft and by PyTorch, to find those that are slow: `make bench BENCH_ARGS="cliffs --seed 1 --cases 100"`.

    cliffs.py [--seed 1] [--cases 100] [--first 0] [--case N] [--family NAME] [--compiled] [--seconds 0.15] [--threads 2]
              [--rows FILE]

Each case (cliff_families.py, cliff_layers.py) runs in one process: by PyTorch eager on the CPU, on device
weft, and as a jit of weft's own Tensor where it can be said in it; by flag also by torch.compile. All take turns, and
what counts is the least time of each. Values are held against PyTorch's in float64. The ratio is PyTorch's time by the
better one of weft's two.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

import cliff_layers  # noqa: F401  families
from cliff_families import FAMILIES, LETTERS, make_case

LIMIT = 150  # seconds of a case
LEAST_TURNS, MOST_TURNS, TURN = 6, 60, 0.004  # turns; seconds of one
ROUNDINGS = {"float32": 6e-8, "bfloat16": 4e-3, "float16": 5e-4, "float64": 1e-16}
SPINS = "20000"  # of PyTorch's waiting threads: they would hold the cores of a loaded machine for milliseconds
SLOW, VERY_SLOW = 0.8, 0.5


# ---- one case, in the worker

def tensors_of(case, number):
    import torch
    made = torch.Generator().manual_seed(number)
    out = []
    for x in case.inputs:
        if x.kind == "index":
            t = torch.randint(0, x.high, x.shape, generator=made)
        elif x.kind == "bool":
            t = torch.rand(x.shape, generator=made) < 0.5
        else:
            t = torch.randn(x.shape, generator=made)
            t = t.abs() if x.kind == "positive" else t
        out.append(t.to(getattr(torch, x.dtype)))
    return out


def function_of(case, body, is_own):
    import torch
    names = {"torch": torch}
    if is_own:
        from weft import Tensor
        names = {"Tensor": Tensor}
    text = f"def program({', '.join(LETTERS[:len(case.inputs)])}):\n" + "\n".join(f"    {line}" for line in body)
    exec(text, names)  # noqa: S102  made by cliff_families.py
    return names["program"]


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def error_of(results, expected, has_ties):
    """The largest error of a result, by its largest value; a text where it is no such result."""
    import torch
    worst = 0.0
    for a, b in zip(results, expected, strict=True):
        if tuple(a.shape) != tuple(b.shape):
            return f"shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        if not b.dtype.is_floating_point and has_ties or b.numel() == 0:
            continue
        a, b = a.detach().to(torch.float64), b.detach().to(torch.float64)
        a, b = a.where(~(b.isinf() & (a == b)), 0), b.where(~(b.isinf() & (a == b)), 0)
        error = ((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item()
        if math.isnan(error) and a.isnan().equal(b.isnan()):
            continue
        worst = max(worst, error if not math.isnan(error) else math.inf)
    return worst


class Engines:
    """name -> a call that runs the case and waits for it; and what it gave the first time."""

    def __init__(self, case, number, names):
        import torch
        self.runs, self.errors, self.failures, self.first = {}, {}, {}, {}
        inputs = tensors_of(case, number)
        if not case.is_training:
            torch.set_grad_enabled(False)
        else:
            torch.set_grad_enabled(True)
        wide = [x.double() if x.is_floating_point() else x.clone() for x in inputs]
        expected = [x.clone() for x in flat(function_of(case, case.body, False)(*wide))]
        for name in names:
            with contextlib.suppress(NotImplementedError):
                self.add(name, case, inputs, expected)

    def add(self, name, case, inputs, expected):
        try:
            run, values = getattr(self, f"make_{name}")(case, inputs)
            begin = time.perf_counter()
            result = run()
            self.first[name] = time.perf_counter() - begin
            error = error_of(values(result), expected, case.has_ties)
            if isinstance(error, str):
                raise ValueError(error)
            self.errors[name] = error
            for _ in range(4):
                result = run()
            self.runs[name] = run
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001  a failure of one engine is a line of the report
            self.failures[name] = f"{type(error).__name__}: {str(error)[:200]}"

    def make_eager(self, case, inputs):
        program, inputs = function_of(case, case.body, False), [x.clone() for x in inputs]
        return lambda: program(*inputs), lambda r: [x.clone() for x in flat(r)]

    def make_compiled(self, case, inputs):
        import torch
        torch._dynamo.reset()
        program, inputs = torch.compile(function_of(case, case.body, False), dynamic=False), [x.clone() for x in inputs]
        return lambda: program(*inputs), lambda r: [x.clone() for x in flat(r)]

    def make_device(self, case, inputs):
        import torch
        import weft.torch  # noqa: F401
        program, inputs = function_of(case, case.body, False), [x.to("weft") for x in inputs]
        torch.weft.synchronize()

        def run():
            result = program(*inputs)
            torch.weft.synchronize()
            return result
        return run, lambda r: [x.cpu().clone() for x in flat(r)]

    def make_jit(self, case, inputs):
        if case.own is None:
            raise NotImplementedError
        import torch
        import weft
        program = weft.jit(function_of(case, case.own, True))
        inputs = [weft.Tensor.from_dlpack(x.clone()).clone().realize() for x in inputs]

        def run():
            result = program(*inputs)
            first, *rest = flat(result)
            first.realize(*rest)
            return result
        return run, lambda r: [torch.from_dlpack(x.clone()).clone() for x in flat(r)]


def measure(seed, number, seconds, names, clock):
    case = make_case(seed, number)
    engines = Engines(case, number, names)
    least = dict.fromkeys(engines.runs, math.inf)
    end = time.perf_counter() + seconds * len(least)
    turns = 0
    while least and turns < MOST_TURNS and (turns < LEAST_TURNS or time.perf_counter() < end):
        for name, run in engines.runs.items():
            stop = clock() + TURN
            for _ in range(40):
                begin = clock()
                run()
                now = clock()
                least[name] = min(least[name], now - begin)
                if now > stop:
                    break
        turns += 1
    dtypes = {x.dtype for x in case.inputs}
    rounding = max((ROUNDINGS.get(d, 0) for d in dtypes), default=0)
    return {"number": number, "family": case.family, "times": least, "errors": engines.errors, "rounding": rounding,
            "failures": engines.failures, "first": engines.first}


def work(arguments):
    import torch
    torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    names = ["eager", "device", "jit"] + ["compiled"] * arguments.compiled
    for line in sys.stdin:
        try:
            row = measure(arguments.seed, int(line), arguments.seconds, names, clock)
        except Exception as error:  # noqa: BLE001
            row = {"number": int(line), "family": make_case(arguments.seed, int(line)).family, "times": {}, "errors": {},
                   "failures": {"case": f"{type(error).__name__}: {str(error)[:300]}"}, "first": {}, "rounding": 0}
        print(json.dumps(row), flush=True)


# ---- all of them

class Worker:
    """A process that measures cases until one of them ends it or takes too long."""

    def __init__(self, command, environment):
        self.command, self.environment, self.process = command, environment, None

    def ask(self, number):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            env=self.environment, stderr=subprocess.DEVNULL)
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        answered, _, _ = select.select([self.process.stdout], [], [], LIMIT)
        line = self.process.stdout.readline() if answered else ""
        if line:
            return json.loads(line)
        self.end()
        return None

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def ratio_of(row):
    ours = [row["times"][x] for x in ("device", "jit") if x in row["times"]]
    return row["times"]["eager"] / min(ours) if ours and "eager" in row["times"] else None


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else math.nan


def part(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else math.nan


def line_of(title, ratios):
    under = [sum(r < limit for r in ratios) / max(1, len(ratios)) for limit in (VERY_SLOW, SLOW)]
    return (f"{title:<24}{len(ratios):>6}{geometric_mean(ratios):>8.2f}{part(ratios, 0.1):>8.2f}{min(ratios, default=math.nan):>8.2f}"
            f"{under[0]:>11.0%}{under[1]:>11.0%}")


def milliseconds(row, name):
    return f"{row['times'][name] * 1e3:>9.3f}" if name in row["times"] else f"{'-':>9}"


def summary(rows, seed):
    measured = [r for r in rows if ratio_of(r) is not None]
    ratios = {r["number"]: ratio_of(r) for r in measured}
    print(f"{'PyTorch / weft':<24}{'cases':>6}{'mean':>8}{'10%':>8}{'least':>8}{'under ' + str(VERY_SLOW):>11}{'under ' + str(SLOW):>11}")
    print(line_of("all", list(ratios.values())))
    for engine in ("device", "jit"):
        print(line_of(f"  {engine}", [r["times"]["eager"] / r["times"][engine] for r in measured if engine in r["times"]]))
    if any("compiled" in r["times"] for r in measured):
        print(line_of("  beside the best", [min(t for n, t in r["times"].items() if n in ("eager", "compiled")) * ratios[r["number"]]
                                            / r["times"]["eager"] for r in measured]))
    families = sorted({r["family"] for r in measured}, key=lambda f: geometric_mean([ratios[r["number"]] for r in measured if r["family"] == f]))
    for name in families:
        print(line_of(name, [ratios[r["number"]] for r in measured if r["family"] == name]))
    for engine in ("device", "jit"):
        first = [r["first"][engine] * 1e3 for r in rows if engine in r["first"]]
        print(f"first call, {engine}: median {part(first, 0.5):.0f} ms, 90% {part(first, 0.9):.0f}, most {max(first, default=math.nan):.0f}")
    for r in rows:
        for engine, text in r["failures"].items():
            print(f"case {r['number']} ({r['family']}), {engine}: {text}")
        for engine, error in r["errors"].items():
            if error > max(4 * r["errors"].get("eager", 0), 8 * r["rounding"]):
                print(f"case {r['number']} ({r['family']}), {engine}: error {error:.1e}, PyTorch's {r['errors'].get('eager', 0):.1e}")
    print("the worst ten:")
    for r in sorted(measured, key=ratio_of)[:10]:
        print(f"\n--seed {seed} --case {r['number']}: {r['family']}, {ratio_of(r):.2f}; ms: PyTorch {milliseconds(r, 'eager').strip()}, "
              f"device {milliseconds(r, 'device').strip()}, jit {milliseconds(r, 'jit').strip()}")
        print(make_case(seed, r["number"]).text())


def report(arguments):
    build = pathlib.Path(os.environ.get("WEFT_BUILD", pathlib.Path(__file__).resolve().parent.parent / "build" / "release")).resolve()
    if arguments.case is not None:
        numbers = [arguments.case]
    else:
        numbers = list(range(arguments.first, arguments.first + arguments.cases))
        if arguments.family:
            chosen = arguments.family.split(",")
            numbers = [n for n in range(arguments.first, arguments.first + 100 * arguments.cases)
                       if make_case(arguments.seed, n).family in chosen][:arguments.cases]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(build / "python"), "WEFT_DEVICE": "CPU", "WEFT_CACHE_DIR": folder,
                       "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "OMP_NUM_THREADS": str(arguments.threads),
                       "GOMP_SPINCOUNT": SPINS}
        worker = Worker([sys.executable, __file__, "--worker", *arguments.words], environment)
        for number in numbers:
            row = worker.ask(number)
            family = make_case(arguments.seed, number).family
            if row is None:
                row = {"number": number, "family": family, "times": {}, "errors": {}, "first": {}, "rounding": 0,
                       "failures": {"case": f"the process ended, or took {LIMIT} s"}}
            rows.append(row)
            ratio = ratio_of(row)
            print(f"{number:>6} {family:<24}{milliseconds(row, 'eager')}{milliseconds(row, 'device')}{milliseconds(row, 'jit')}"
                  f"{ratio if ratio is not None else math.nan:>8.2f}  {max(row['first'].values(), default=0) * 1e3:.0f}",
                  file=sys.stderr, flush=True)
        worker.end()
    if arguments.rows:
        pathlib.Path(arguments.rows).write_text(json.dumps(rows))
    if arguments.case is not None:
        print(make_case(arguments.seed, arguments.case).text())
    summary(rows, arguments.seed)


def parse(words):
    parser = argparse.ArgumentParser(prog="cliffs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--family", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.15, help="of one engine in a case")
    parser.add_argument("--threads", type=int, default=2, help="1: processor time is taken, which a loaded machine changes less")
    parser.add_argument("--rows", help="a file for what was measured, as JSON")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    words = sys.argv[1:] if words is None else words
    arguments = parser.parse_args(words)
    arguments.words = words
    return arguments


def main(words=None):
    arguments = parse(words)
    if arguments.worker:
        work(arguments)
    else:
        report(arguments)


if __name__ == "__main__":
    main()
