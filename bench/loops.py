"""Loops of reads and writes, from Python: what a statement costs to record (processor time), the kernels, and
the first realise.

    python loops.py weft|cpu|device ROW N    one measurement, in this process: prints a JSON object
    python loops.py [ROW ...]                the tables, of rows whose text contains one of these

Each row (loop_rows.py) is a process of its own with an empty cache on disk, at N and at 10 N. Bodies: distinct kernels.
Then each loop of 1,000 on PyTorch's device weft and by PyTorch's CPU: from the first line to the values, the first time
and the third one.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cpu
import loop_rows

LIMIT = 60  # seconds of a process
MOST_FOR_TEN_TIMES = 3  # seconds at N, past which 10 N is not tried
MARK_BODIES, MARK_SECONDS, MARK_GROWTH = 4, 0.3, 12
TORCH_N = 1_000


def warm_up(x):
    a = x.zeros(7)
    a[2] = 5
    x.read([(a * a + 2).sum()])


def read(x, title, outputs):
    if title in loop_rows.ONE_BY_ONE:
        for output in outputs:
            x.read([output])
    else:
        x.read(outputs)


def bodies_of(title, outputs):
    if title not in loop_rows.ONE_BY_ONE:
        return {k.graph for k in outputs[0].schedule(*outputs[1:])}
    graphs = set()
    for output in outputs:
        graphs |= {k.graph for k in output.schedule()}
        output.realize()
    return graphs


def measure_weft(title, n):
    import weft
    x = loop_rows.Weft()
    warm_up(x)
    row = loop_rows.ROWS[title][0]
    begin = time.thread_time()
    outputs, statements = row(x, n)
    build = time.thread_time() - begin
    before, begin = weft.counters.kernels, time.perf_counter()
    read(x, title, outputs)
    result = {"build": build, "realize": time.perf_counter() - begin, "statements": statements,
              "kernels": weft.counters.kernels - before}
    print(json.dumps(result), flush=True)  # what follows may take longer than there is time
    outputs, _ = row(x, n)
    return {**result, "bodies": len(bodies_of(title, outputs))}


def measure_torch(device, title, n):
    x = loop_rows.Torch(device)
    warm_up(x)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        outputs, _ = loop_rows.ROWS[title][0](x, n)
        read(x, title, outputs)
        times.append(time.perf_counter() - begin)
    return {"first": times[0], "third": times[2]}


def run_once(build, library, title, n):
    """The last JSON of this file as a program, or why there is none."""
    cpu.progress(f"{title} {n} {library}")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, library, title, str(n)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=cpu.environment(build, "weft", folder)) as process:
            try:
                out, err = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err = f"more than {LIMIT} s"
    cpu.progress()
    lines = out.splitlines()
    return json.loads(lines[-1]) if lines else (err.strip().splitlines() or ["?"])[-1][:70]


def cells(r):
    if isinstance(r, str):
        return f"  {r}"
    return (f"{r['build'] / r['statements'] * 1e6:>9.2f}{r['kernels']:>9,}{r.get('bodies', '?'):>8}{r['realize']:>9.3f}")


def verdict(small, large):
    if isinstance(small, str):
        return "  MISSED"
    missed = []
    if small.get("bodies", MARK_BODIES + 1) > MARK_BODIES and small["kernels"] > MARK_BODIES:
        missed.append("kernels")
    if small["realize"] > MARK_SECONDS:
        missed.append("time")
    growth = large["realize"] / small["realize"] if not isinstance(large, str) else None
    if growth is None or (growth > MARK_GROWTH and large["realize"] > MARK_SECONDS):
        missed.append("growth")
    told = f"{growth:>7.1f}" if growth else f"{'':>7}"
    return f"{told}  {'MISSED ' + ', '.join(missed) if missed else 'met'}"


def table(build, rows):
    head = f"{'us/stmt':>9}{'kernels':>9}{'bodies':>8}{'first s':>9}"
    print(f"{'':<44}{'N':>7}{head}   10 N:{head}{'ratio':>7}  at most {MARK_BODIES} bodies, {MARK_SECONDS} s, {MARK_GROWTH} times")
    for title, (_, n) in rows.items():
        small = run_once(build, "weft", title, n)
        is_slow = isinstance(small, str) or small["realize"] > MOST_FOR_TEN_TIMES
        large = "not tried" if is_slow else run_once(build, "weft", title, 10 * n)
        print(f"{title:<44}{n:>7,}{cells(small)}        {cells(large)}{verdict(small, large)}", flush=True)


def torch_table(build, rows):
    print(f"\non PyTorch's device, N = {TORCH_N:,}; ms: {'weft, first':>37}{'third':>9}{'CPU, third':>12}{'first/CPU':>11}"
          f"{'third/CPU':>11}")
    for title in rows:
        ours, theirs = (run_once(build, library, title, TORCH_N) for library in ("device", "cpu"))
        if isinstance(ours, str) or isinstance(theirs, str):
            print(f"{title:<44}  {ours}  {theirs}", flush=True)
            continue
        peer = theirs["third"]
        print(f"{title:<44}{ours['first'] * 1e3:>16.1f}{ours['third'] * 1e3:>9.1f}{peer * 1e3:>12.1f}"
              f"{ours['first'] / peer:>11.1f}{ours['third'] / peer:>11.2f}{'' if ours['first'] <= peer else '  MISSED'}",
              flush=True)


def report(build, rows=None):
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores")
    rows = rows or loop_rows.ROWS
    table(build, rows)
    if not cpu.missing("torch"):
        torch_table(build, rows)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("weft", "cpu", "device"):
        build = pathlib.Path(os.environ.get("WEFT_BUILD", cpu.HERE.parent / "build" / "release")).resolve()
        report(build, {t: r for t, r in loop_rows.ROWS.items() if any(part in t for part in sys.argv[1:] or [""])})
        return
    library, title, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    result = measure_weft(title, n) if library == "weft" else measure_torch("weft" if library == "device" else "cpu", title, n)
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # taking the graph apart is not measured


if __name__ == "__main__":
    main()
