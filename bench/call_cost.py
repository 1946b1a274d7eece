"""What a call costs beside its kernels: one small kernel from Python and C++, and a replay of jit.

    python call_cost.py LIBRARY     one measurement, in this process: prints a JSON object

a + b of 16 float32, realised at once; every library in a process of its own, in turn. Microseconds: the least mean of a
batch of calls, so that what disturbs a batch does not count.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import cpu

ROUNDS, BATCHES = 3, 30
PRODUCTS = 1, 201  # of the replays that are compared
# marks in microseconds
MARKS = {"weft, Python": 20.0, "weft, C++": 12.0, "weft jit, per kernel": 1.0,
         "weft jit, per kernel with a variable that does not run": 1.0}


def least_us(call, batch=200):
    least = 1e9
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        least = min(least, (time.perf_counter() - start) / batch)
    return least * 1e6


def arrays():
    return np.arange(16, dtype=np.float32), np.full(16, 2, np.float32)


def measure_numpy():
    a, b = arrays()
    return {"NumPy": least_us(lambda: a + b)}


def measure_torch():
    import torch
    a, b = map(torch.from_numpy, arrays())
    return {"PyTorch eager": least_us(lambda: a + b)}


def measure_jax():
    import jax
    a, b = map(jax.numpy.asarray, arrays())
    add = jax.jit(lambda a, b: a + b)
    add(a, b).block_until_ready()
    return {"JAX jit": least_us(lambda: add(a, b).block_until_ready())}


def measure_tinygrad():
    from tinygrad import Tensor, TinyJit
    a, b = (Tensor(x).realize() for x in arrays())
    add = TinyJit(lambda a, b: (a + b).realize())
    for _ in range(3):
        add(a, b)
    return {"tinygrad realize": least_us(lambda: (a + b).realize(), 20),
            "tinygrad TinyJit": least_us(lambda: add(a, b), 20)}


def replay_us(weft, device, products):
    """Of a captured chain of so many 4x4 products, and its kernels."""
    x, w = (weft.Tensor(np.eye(4, dtype=np.float32), device=device).realize() for _ in range(2))

    @weft.jit
    def chain(x):
        for _ in range(products):
            x = x.matmul(w)
        return x
    for _ in range(3):
        chain(x)
    before = weft.counters.kernels
    chain(x)
    kernels = weft.counters.kernels - before
    return least_us(lambda: chain(x), 50), kernels


def replay_with_variable_us(weft, device, products):
    """The same with as many rows as a variable says, which has another value in each call."""
    x, w = (weft.Tensor(np.ones((rows, 4), np.float32), device=device).realize() for rows in (16, 4))
    size, values = weft.Variable("size", 1, 16), itertools.cycle(range(2, 17))

    @weft.jit
    def chain(x, n):
        x = x[:n]
        for _ in range(products):
            x = x.matmul(w)
        return x
    for _ in range(12):
        chain(x, size.bind(next(values)))
    assert chain.captures == 1
    before = weft.counters.kernels
    chain(x, size.bind(next(values)))
    kernels = weft.counters.kernels - before
    return least_us(lambda: chain(x, size.bind(next(values))), 50), kernels


def measure_weft():
    import weft
    a, b = (weft.Tensor(x).realize() for x in arrays())
    (a + b).realize()
    result = {"weft, Python": least_us(lambda: (a + b).realize())}
    for title, device in (("weft jit, per kernel", "CPU"), ("weft jit, per kernel that does not run", "NULL")):
        (short, few), (long, many) = (replay_us(weft, device, n) for n in PRODUCTS)
        if device == "CPU":
            result["weft jit, one kernel"] = short
        result[title] = (long - short) / (many - few)
    for title, device in (("weft jit, per kernel with a variable", "CPU"),
                          ("weft jit, per kernel with a variable that does not run", "NULL")):
        (short, few), (long, many) = (replay_with_variable_us(weft, device, n) for n in PRODUCTS)
        if device == "CPU":
            result["weft jit, one kernel with a variable"] = short
        result[title] = (long - short) / (many - few)
    return result


MEASURES = {"numpy": measure_numpy, "torch": measure_torch, "jax": measure_jax, "tinygrad": measure_tinygrad,
            "weft": measure_weft}


def measure(build, bench_runtime, library, folder):
    """Microseconds by title, or why there are none."""
    environment = cpu.environment(build, library, folder)
    if library == "weft, C++":
        command = [bench_runtime, str(BATCHES)]
    else:
        command = [sys.executable, __file__, library]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:100]
    result = json.loads(done.stdout)
    return {library: result["realize_CPU"]} if library == "weft, C++" else result


def report(build, bench_runtime):
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores; microseconds of "
          f"a + b of 16 float32, the least mean of {BATCHES} batches in each of {ROUNDS} processes")
    libraries = [x for x in (*MEASURES, "weft, C++") if not (x in cpu.PEERS and cpu.missing(x))]
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(ROUNDS):
            for library in libraries:
                cpu.progress(f"calls: round {i + 1} of {ROUNDS}, {library}")
                result = measure(build, bench_runtime, library, folder)
                cpu.progress()
                if isinstance(result, str):
                    print(f"  {library}: {result}")
                    continue
                for title, us in result.items():
                    times[title] = min(us, times.get(title, us))
    for title, us in times.items():
        mark = f"   mark {MARKS[title]:.0f}{'' if us <= MARKS[title] else ', above'}" if title in MARKS else ""
        print(f"  {title:<42}{us:>10.2f}{mark}")


if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]]()))
