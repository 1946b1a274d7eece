"""`make bench`: weft beside tinygrad and other libraries.

    run.py cliffs [--seed S] [--cases N]     random programs, see cliffs.py
    run.py [rewrite] [schedule] [cpu] [compile] [calls] [setitem] [loops] [models] [lazy] [torch] [steps] [gpu]     all, unless told; `make bench BENCH_ARGS=schedule`

rewrite: both engines make the same graph from the same random numbers, apply the same rules in the same
order and must come to the same result; times are CPU seconds, the best of several runs taken in turn, so
only their ratio means something on a shared machine. Then: how weft's cost grows with the graph, and what
the statistics cost, in instructions counted by callgrind. schedule: see scheduler.py; cpu (kernels): cpu.py; compile: compile_speed.py; calls:
call_cost.py; setitem (loops of writes): setitem.py; loops (of reads and writes): loops.py; models (whole ones): models.py; lazy (ops and memory): lazy_cost.py;
torch (steps on the PyTorch device): torch_device.py; steps (graphs that
never repeat, first steps, memory): steps.py; gpu (kernels, where there is one): gpu.py.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import call_cost
import cliffs
import compile_speed
import cpu
import lazy_cost
import loops
import models
import scheduler
import setitem
import steps
import torch_device

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

import plots  # noqa: E402 - it lies beside the site that draws what is measured here

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", HERE.parent / "build" / "release")).resolve()
SIZES = {"cache-sized": (20, 40, 4), "a million nodes": (2100, 2, 2)}  # groups, repeats in a process, processes
GROWTH = (20, 200, 2_000, 20_000)  # groups: 10^4 to 10^7 nodes


def program(name):
    found = sorted(BUILD.rglob(name))
    if not found:
        sys.exit(f"{name} is not built: run `make bench`")
    return str(found[0])


def weft(groups, repeats, name="bench_rewrite"):
    return json.loads(subprocess.run([program(name), str(groups), str(repeats)], check=True,
                                     capture_output=True, text=True).stdout)


def tinygrad(rules, groups, repeats):
    done = subprocess.run([sys.executable, str(HERE / "tinygrad_engine.py"), str(rules), str(groups), str(repeats)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def best(runs):
    result = dict(runs[0])
    for key in ("make_s", "rewrite_s", "again_s"):
        if key in result:
            result[key] = min(r[key] for r in runs)
    return result


def side_by_side(rules):
    print(f"{'':<17}{'nodes':>10}{'':>10}{'made/s':>12}{'rewritten/s':>13}{'bytes/node':>12}{'side tables':>13}")
    for title, (groups, repeats, rounds) in SIZES.items():
        ours, theirs = [], []
        for _ in range(rounds):  # in turn, so that both see the same weather
            print(f"\r{title}: measuring ...", end="", file=sys.stderr, flush=True)
            ours.append(weft(groups, repeats))
            theirs.append(tinygrad(rules, groups, repeats))
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
        w, t = best(ours), best(theirs)
        if (w["nodes_out"], w["fingerprint"]) != (t["nodes_out"], t["fingerprint"]):
            sys.exit(f"the engines disagree: {w} {t}")
        for name, r in (("weft", w), ("tinygrad", t)):
            memory = f"{r['bytes_per_node']:>12.1f}{r['side_bytes_per_node']:>13.1f}" if "bytes_per_node" in r else ""
            print(f"{title:<17}{r['nodes_in']:>10}{name:>10}{r['calls'] / r['make_s']:>12,.0f}"
                  f"{r['nodes_in'] / r['rewrite_s']:>13,.0f}{memory}")
        print(f"{title:<17}{'':>10}{'ratio':>10}{t['make_s'] / w['make_s'] * w['calls'] / t['calls']:>12.1f}"
              f"{t['rewrite_s'] / w['rewrite_s']:>13.1f}")


def growth():
    print(f"\n{'nodes':>12}{'make s':>10}{'rewrite s':>11}{'ns/call made':>14}{'ns/node rewritten':>19}"
          f"{'instructions/node':>19}{'bytes/node':>12}{'drop s':>9}")
    for groups in GROWTH:
        r = weft(groups, 3 if groups < 10_000 else 1)
        # counted at 10^7 nodes it would take many minutes
        counted = shutil.which("valgrind") is not None and groups <= 2_000
        per_node = f"{instructions('bench_rewrite', 0, groups) / (r['nodes_in'] + r['nodes_out']):.0f}" if counted else "-"
        print(f"{r['nodes_in']:>12,}{r['make_s']:>10.4f}{r['rewrite_s']:>11.4f}{r['make_s'] / r['calls'] * 1e9:>14.1f}"
              f"{r['rewrite_s'] / r['nodes_in'] * 1e9:>19.1f}{per_node:>19}{r['bytes_per_node']:>12.1f}{r['drop_s']:>9.4f}")


def instructions(name, stats, groups=20):
    """Of two rewrites: of the graph, and of the result."""
    out = BUILD / "callgrind.out"
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
                           "--toggle-collect=weft::graph_rewrite(*", program(name), str(groups), "1"],
                          capture_output=True, text=True, env={**os.environ, "WEFT_STATS": str(stats)})
    out.unlink(missing_ok=True)
    line = next((x for x in done.stderr.splitlines() if "Collected" in x), None)
    if line is None:
        sys.exit(done.stderr)
    return int(line.split(":")[1])


def statistics_cost():
    if shutil.which("valgrind") is None:
        print("\nvalgrind is not installed: the cost of statistics is not counted")
        return
    without = instructions("bench_rewrite_without_statistics", 0)
    print("\ninstructions of the rewrites (callgrind)")
    for title, count in (("statistics compiled out", without), ("WEFT_STATS=0", instructions("bench_rewrite", 0)),
                         ("WEFT_STATS=1", instructions("bench_rewrite", 1))):
        print(f"  {title:<26}{count:>14,}{(count - without) / without:>+10.3%}")


def rewrite_engine():
    rules = BUILD / "bench_rules.json"
    rules.write_text(subprocess.run([program("bench_rewrite"), "--rules"], check=True, capture_output=True, text=True).stdout)
    side_by_side(rules)
    growth()
    statistics_cost()


SECTIONS = {"rewrite": rewrite_engine, "schedule": lambda: scheduler.report(BUILD, program("bench_lazy")),
            "cpu": lambda: cpu.report(BUILD), "compile": lambda: compile_speed.report(BUILD),
            "calls": lambda: call_cost.report(BUILD, program("bench_runtime")), "setitem": lambda: setitem.report(BUILD),
            "loops": lambda: loops.report(BUILD), "models": lambda: models.report(BUILD), "lazy": lambda: lazy_cost.report(BUILD),
            "torch": lambda: torch_device.report(BUILD), "steps": steps.report,
            "gpu": lambda: subprocess.run([sys.executable, str(HERE / "gpu.py")], check=True)}


def main():
    if sys.argv[1:2] == ["cliffs"]:
        cliffs.main(sys.argv[2:])
        return
    chosen = sys.argv[1:] or list(SECTIONS)
    if unknown := [name for name in chosen if name not in SECTIONS]:
        sys.exit(f"{unknown[0]}: there are {', '.join(SECTIONS)}")
    for name in chosen:
        print(f"\n---- {name}")
        measured = SECTIONS[name]()
        for heading, section in (measured if isinstance(measured, dict) else {}).items():
            plots.record(HERE.parent / "docs" / "benchmarks.json", heading, section)


if __name__ == "__main__":
    main()
