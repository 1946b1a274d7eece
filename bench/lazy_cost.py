"""What lazy tensors cost: the time of an op from Python, the memory of a live one, and of a long loop.

    python lazy_cost.py PART OPS     one measurement, in this process: prints a JSON object

PART: ops (nanoseconds), bytes (of a live tensor that is not realised), drop (what is left when tensors were dropped,
with Python's cycle collector off), loop (the memory of the process while OPS ops are made and now and then realised).
"""
import gc
import json
import os
import subprocess
import sys
import tempfile
import time

import cpu

LOOP_OPS = 10_000_000
PERIOD = 100  # ops between two realises
MARK_NS, MARK_BYTES = 2_000, 1_024


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def write(a):
    a[1] = 5


OPS = {"a + b": lambda a, b: a + b, "a * 2": lambda a, b: a * 2, "-a": lambda a, b: -a, "a.exp()": lambda a, b: a.exp(),
       "a < b": lambda a, b: a < b, "a.sum()": lambda a, b: a.sum(), "a.reshape(2, 2)": lambda a, b: a.reshape(2, 2),
       "a[1]": lambda a, b: a[1], "a[1:3]": lambda a, b: a[1:3], "a[1] = 5": lambda a, b: write(a),
       "a += 1": lambda a, b: a.__iadd__(1)}


def ops(Tensor, count):
    """Least nanoseconds of an op, without those of the call around it; results dropped at once."""
    result = {}
    nothing = least(lambda a, b: None, Tensor, count)
    for name, op in OPS.items():
        result[name] = least(op, Tensor, count) - nothing
    return result


def least(op, Tensor, count):
    times = []
    for _ in range(5):
        a, b = Tensor.empty(4).realize(), Tensor.empty(4).realize()
        start = time.perf_counter()
        for _ in range(count):
            op(a, b)
        times.append((time.perf_counter() - start) / count * 1e9)
    return min(times)


def live_bytes(Tensor, count):
    a, b = Tensor.empty(4).realize(), Tensor.empty(4).realize()
    live = [None] * count
    before = resident()
    for i in range(count):
        live[i] = a + b
    return {"bytes": (resident() - before) / count}


def drop(Tensor, count):
    from weft import counters
    values, memory = counters.live_values, counters.live_bytes
    a = Tensor.zeros(1000).realize()
    held = counters.live_bytes - memory
    b = [(a + i).realize() for i in range(10)]
    view = b[3][2:5]
    del a, b, view
    return {"held": held, "values_left": counters.live_values - values, "bytes_left": counters.live_bytes - memory}


def loop(Tensor, count):
    """Memory after a tenth of the ops, and how it has grown at the end."""
    from weft import counters
    a, b, first = Tensor.zeros(16).realize(), Tensor.ones(16).realize(), None
    start = time.perf_counter()
    for i in range(count // PERIOD):
        for k in range(PERIOD // 4):
            c = a * 0.5
            c[k % 16] = k
            a = c + b
        a.realize()
        if first is None and i >= count // PERIOD // 10:
            first = resident(), counters.live_values, counters.live_bytes
    return {"seconds": time.perf_counter() - start, "resident": first[0], "grown": resident() - first[0],
            "values_grown": counters.live_values - first[1], "bytes_grown": counters.live_bytes - first[2]}


PARTS = {"ops": (ops, 100_000), "bytes": (live_bytes, 1_000_000), "drop": (drop, 0), "loop": (loop, LOOP_OPS)}


def run_once(build, part):
    cpu.progress(f"lazy: {part}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, part, str(PARTS[part][1])], capture_output=True, text=True,
                              env=cpu.environment(build, "weft", folder))
    cpu.progress()
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def report(build):
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores")
    times = run_once(build, "ops")
    print(f"nanoseconds of a lazy op from Python, at most {MARK_NS:,}:")
    for name, ns in times.items():
        print(f"  {name:<18}{ns:>8,.0f}{'' if ns <= MARK_NS else '  MISSED'}")
    size = run_once(build, "bytes")["bytes"]
    print(f"bytes of a live tensor that is not realised: {size:,.0f}, at most {MARK_BYTES:,}")
    left = run_once(build, "drop")
    print(f"tensors dropped: {left['values_left']} values and {left['bytes_left']} bytes are left, at most 0")
    r = run_once(build, "loop")
    print(f"{LOOP_OPS:,} ops, realised after every {PERIOD}: {r['seconds']:.1f} s, {r['resident'] / 2**20:,.1f} MiB "
          f"resident after a tenth, {r['grown'] / 2**20:+.2f} MiB at the end ({r['values_grown']:+} values, "
          f"{r['bytes_grown']:+} bytes of tensors)")


def main():
    from weft import Tensor
    gc.disable()
    part, count = sys.argv[1], int(sys.argv[2])
    print(json.dumps(PARTS[part][0](Tensor, count)))


if __name__ == "__main__":
    main()
