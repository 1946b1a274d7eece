"""Loops of writes to one tensor, weft beside tinygrad: kernels, and the times to build, schedule, compile and run.

    python setitem.py weft|tinygrad LOOP START DTYPE N PHASES|TOTAL     one measurement: prints a JSON object

Each measurement is a process of its own, with an empty cache on disk, that has run another program before: the engine
is warm, the kernel is not. PHASES stops after each phase, TOTAL goes straight from the first line to the values. Wall
milliseconds, the least of ROUNDS processes. tinygrad's sizes end when a process takes more than LIMIT seconds, or
would by the growth from the sizes before.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import cpu

ROUNDS = 3
LIMIT = 120  # seconds of a process
SIZES = (10, 100, 1_000, 10_000)
STARTS, DTYPES = ("empty", "realised"), ("float32", "int32")
MARK_MS, MARK_GROWTH = 50, 12  # of the constant loop: at 1,000 writes, and at 10,000 over that
WIDTH = 16  # of a row


def constant(t, a, n):
    for i in range(n):
        a[i] = i
    return a


def previous(t, a, n):
    a[0] = 0
    for i in range(1, n):
        a[i] = a[i-1] + 1
    return a


def first(t, a, n):
    a[0] = 0
    for _ in range(n):
        a[0] += 1
    return a


def assign(t, a, n):
    for _ in range(n):
        a.assign(a + 1)
    return a


def fancy_list(t, a, n):
    for i in range(n):
        a[[i, (i * 7 + 3) % n]] = i
    return a


def fancy_tensor(t, a, n):
    places = [t([i, (i * 7 + 3) % n]) for i in range(n)]
    for i in range(n):
        a[places[i]] = i
    return a


def rows(t, a, n):
    row = a[0] * 0 + 3
    for i in range(n):
        a[i] = row
    return a


# its text, the program, and the shape of the tensor
LOOPS = {"constant": ("a[i] = i", constant, lambda n: (n,)),
         "previous": ("a[i] = a[i-1] + 1", previous, lambda n: (n,)),
         "first": ("a[0] += 1", first, lambda n: (16,)),
         "assign": ("a.assign(a + 1)", assign, lambda n: (16,)),
         "fancy_list": ("a[[i, j]] = i", fancy_list, lambda n: (n,)),
         "fancy_tensor": ("a[Tensor([i, j])] = i", fancy_tensor, lambda n: (n,)),
         "rows": ("m[i] = row", rows, lambda n: (n, WIDTH))}


class Weft:
    def __init__(self):
        import weft
        self.Tensor = weft.Tensor

    def start(self, kind, shape, dtype):
        return self.Tensor.empty(*shape, dtype=dtype) if kind == "empty" else \
            self.Tensor.zeros(*shape, dtype=dtype).realize()

    def phases(self, tensor):
        yield "schedule", tensor.kernel_count
        yield "compile", tensor.schedule
        yield "run", tensor.realize

    def kernels(self, tensor):
        return tensor.kernel_count()


class Tinygrad:
    def __init__(self):
        import tinygrad
        self.Tensor, self.dtypes, self.linear = tinygrad.Tensor, tinygrad.dtypes, None

    def start(self, kind, shape, dtype):
        kind_of = getattr(self.dtypes, dtype)
        return self.Tensor.empty(*shape, dtype=kind_of) if kind == "empty" else \
            self.Tensor.zeros(*shape, dtype=kind_of).contiguous().realize()

    def phases(self, tensor):
        from tinygrad.engine.realize import compile_linear, run_linear

        def schedule():
            self.linear = tensor.schedule_linear()

        def compile_all():
            self.linear = compile_linear(self.linear)

        yield "schedule", schedule
        yield "compile", compile_all
        yield "run", lambda: run_linear(self.linear)

    def kernels(self, tensor):
        return len(self.linear.src)


def measure(engine, loop, start, dtype, n, what):
    _, program, shape = LOOPS[loop]
    warm = engine.start("realised", (7,), "float32")
    warm[2] = 5
    (warm * warm + 2).sum().item()
    result, kernels = {}, 0
    begin = time.perf_counter()
    a = program(engine.Tensor, engine.start(start, shape(n), dtype), n)
    result["build"] = time.perf_counter() - begin
    if what == "TOTAL":
        a.numpy()
        return {"total": time.perf_counter() - begin}
    for phase, call in engine.phases(a):
        begin = time.perf_counter()
        call()
        result[phase] = time.perf_counter() - begin
        if phase == "schedule":
            kernels = engine.kernels(a)
    return {**result, "kernels": kernels}


def run_once(build, engine, *arguments):
    """The JSON of this file as a program, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([sys.executable, __file__, engine, *map(str, arguments)], capture_output=True, text=True,
                                  timeout=LIMIT, env=cpu.environment(build, engine, folder))
        except subprocess.TimeoutExpired:
            return f"more than {LIMIT} s"
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:70]


def best(build, engine, *arguments):
    """The least of each number over ROUNDS processes, fewer of slow ones; or why there is none."""
    result = {}
    for _ in range(ROUNDS):
        for what in ("PHASES", "TOTAL"):
            got = run_once(build, engine, *arguments, what)
            if isinstance(got, str):
                return got
            result.update({k: min(v, result.get(k, v)) for k, v in got.items()})
        if result["total"] > 2:
            break
    return result


def cells(result, width=10):
    return f"{result['kernels']:>9,}" + "".join(f"{result[k]*1e3:>{width},.2f}" for k in
                                                 ("build", "schedule", "compile", "run", "total"))


def verdict(loop, n, ours, by_size):
    if loop != "constant" or n not in (1_000, 10_000):
        return ""
    if n == 1_000:
        return f"  at most {MARK_MS} ms: {'met' if ours['total'] * 1e3 <= MARK_MS else 'MISSED'}"
    growth = ours["total"] / by_size[1_000]["total"]
    return f"  {growth:.1f} times n = 1,000, at most {MARK_GROWTH}: {'met' if growth <= MARK_GROWTH else 'MISSED'}"


def table(build, engines, loop, start, dtype):
    ours, theirs_end = {}, not engines[1:]
    before = None
    for n in SIZES:
        head = f"{LOOPS[loop][0]:<23}{start:<10}{dtype:<9}{n:>7,}"
        for engine in engines:
            if engine == "tinygrad" and theirs_end:
                continue
            cpu.progress(f"{head} {engine}")
            result = best(build, engine, loop, start, dtype, n)
            cpu.progress()
            if isinstance(result, str):
                print(f"{head}  {engine:<9}{result}", flush=True)
                theirs_end = theirs_end or engine == "tinygrad"
                continue
            note = ""
            if engine == "weft":
                ours[n] = result
                note = verdict(loop, n, result, ours)
            elif n in ours:
                note = f"  ratio {result['total'] / ours[n]['total']:,.0f}"
                growth = result["total"] / before if before else 10
                theirs_end, before = result["total"] * max(10, growth) > LIMIT, result["total"]
            print(f"{head}  {engine:<9}{cells(result)}{note}", flush=True)


def report(build):
    engines = cpu.begin("; milliseconds")
    print(f"{'loop':<23}{'tensor':<10}{'dtype':<9}{'n':>7}  {'engine':<9}{'kernels':>9}{'build':>10}{'schedule':>10}"
          f"{'compile':>10}{'run':>10}{'total':>10}")
    for loop in LOOPS:
        for start in STARTS:
            for dtype in DTYPES:
                table(build, engines, loop, start, dtype)


def main():
    name, loop, start, dtype, n, what = sys.argv[1:]
    result = measure(Weft() if name == "weft" else Tinygrad(), loop, start, dtype, int(n), what)
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # taking the graph apart is not measured


if __name__ == "__main__":
    main()
