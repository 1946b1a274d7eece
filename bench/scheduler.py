"""weft's scheduler beside tinygrad's: from the graph of a program to the list of its kernels, and what a lazy op costs.

Each size of a program is a process of its own per engine. Medians of CPU seconds over the repeats; building the lazy
graph and scheduling it are timed apart; no schedule is found in a cache and nothing runs.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPEATS = 5
SECONDS = 15  # of repeats in one process; the first is made in any case
LIMIT = 90  # seconds of a process; past them it is ended
# program: its title, the sizes of both engines, and those of weft alone
PROGRAMS = {"setitem": ("a[i] = i", (100, 300, 1000), (10_000, 100_000)),
            "gpt2": ("GPT-2-small, layers", (12,), ()),
            "convolutions": ("convolutions", (50,), ()),
            "chain": ("chain of x + 1", (1000, 10_000, 100_000), (1_000_000,)),
            "irregular_chain": ("irregular chain", (1000, 10_000, 100_000), (1_000_000,)),
            "tree": ("balanced tree", (1000, 10_000, 100_000), (1_000_000,))}
LAZY_OPS = 100_000


def measure(build, engine, program, n):
    """The JSON of schedule_programs.py, or why there is none."""
    command = [sys.executable, str(HERE / "schedule_programs.py"), engine, program, str(n), str(REPEATS), str(SECONDS)]
    print(f"\r{program} {n:,}: {engine} ...{'':<20}", end="", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "PYTHONPATH": str(build / "python")})
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT} s"
    finally:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if engine == "weft":
        sys.exit(done.stderr)
    last = done.stderr.strip().splitlines()
    return last[-1][:60] if last else f"exit status {done.returncode}"


def side_by_side(build):
    # ratio: of the times to schedule, and with building; x10: weft's time over that of a tenth of the size
    print(f"{'':<20}{'':>10}{'kernels':>18}{'build ms':>24}{'schedule ms':>24}{'ratio':>18}")
    print(f"{'program':<20}{'size':>10}{'weft':>8}{'tinygrad':>10}{'weft':>12}{'tinygrad':>12}{'weft':>12}"
          f"{'tinygrad':>12}{'schedule':>10}{'both':>8}{'x10':>7}{'repeats':>9}")
    rows = []
    for program, (title, sizes, more) in PROGRAMS.items():
        ours = {n: measure(build, "weft", program, n) for n in sizes + more}  # in a row: they show the growth
        for n, mine in ours.items():
            theirs = measure(build, "tinygrad", program, n) if n in sizes else None
            print(row(title, n, mine, theirs, ours.get(n // 10)))
            if isinstance(theirs, dict):
                times = (round(statistics.median(t["schedule_s"]) * 1e3, 3) for t in (mine, theirs))
                rows.append([f"{title}, {n:,}", *times])
    return {"The scheduler beside tinygrad's": {"unit": "ms to schedule", "columns": ["weft", "tinygrad"], "rows": rows}}


def row(title, n, ours, theirs, tenth):
    """`tenth`: ours of a tenth of the size, if it was measured."""
    build, schedule = statistics.median(ours["build_s"]), statistics.median(ours["schedule_s"])
    kernels, built, scheduled, ratio, both, repeats = "", "", "", "", "", f"{len(ours['schedule_s'])}"
    why = f"  {theirs}" if isinstance(theirs, str) else ""
    if isinstance(theirs, dict):
        their_build, their_schedule = statistics.median(theirs["build_s"]), statistics.median(theirs["schedule_s"])
        kernels, built, scheduled = str(theirs["kernels"]), f"{their_build*1e3:,.2f}", f"{their_schedule*1e3:,.2f}"
        ratio = f"{their_schedule / schedule:.0f}"
        both = f"{(their_build + their_schedule) / (build + schedule):.0f}"
        repeats += f", {len(theirs['schedule_s'])}"
    growth = f"{schedule / statistics.median(tenth['schedule_s']):.1f}" if tenth else ""
    return (f"{title:<20}{n:>10,}{ours['kernels']:>8}{kernels:>10}{build*1e3:>12,.3f}{built:>12}{schedule*1e3:>12,.3f}"
            f"{scheduled:>12}{ratio:>10}{both:>8}{growth:>7}{repeats:>9}{why}")


def lazy_ops(build, bench_lazy):
    cpp = json.loads(subprocess.run([bench_lazy, str(LAZY_OPS), str(REPEATS)], check=True,
                                    capture_output=True, text=True).stdout)
    print("\nnanoseconds of a lazy a + b (4 elements)")
    print(f"  {'':<18}{'kept':>10}{'dropped':>10}{'in a chain':>12}{'a + 1':>10}{'to free':>10}")
    print(f"  {'weft, C++':<18}{cpp['kept_ns']:>10,.0f}{cpp['dropped_ns']:>10,.0f}{cpp['chain_ns']:>12,.0f}"
          f"{cpp['number_ns']:>10,.0f}{cpp['free_ns']:>10,.0f}")
    for engine in ("weft", "tinygrad"):
        python = measure(build, engine, "lazy", LAZY_OPS)
        if isinstance(python, str):
            print(f"  {engine + ', Python':<18}{python}")
            continue
        kept, dropped = (statistics.median(python[k]) * 1e9 for k in ("kept_s", "dropped_s"))
        print(f"  {engine + ', Python':<18}{kept:>10,.0f}{dropped:>10,.0f}")
    print(f"bytes of a live unrealised Value with its Storage: {cpp['bytes']:.0f} "
          f"(and {cpp['handle_bytes']} of the Tensor)")


def report(build, bench_lazy):
    print(f"load average {', '.join(f'{x:.1f}' for x in os.getloadavg())} on {os.cpu_count()} cores")
    measured = side_by_side(build)
    lazy_ops(build, bench_lazy)
    return measured
