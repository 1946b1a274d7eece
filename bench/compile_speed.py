"""weft's compile speed beside tinygrad's: from the graph of a program to all of its kernels compiled for the CPU.

    python compile_speed.py weft|tinygrad PROGRAM N     one measurement, in this process: prints a JSON object

Each measurement is a process of its own. Cold: with an empty cache on disk; warm: the process after it, with the cache
that it left. Wall seconds, the least of ROUNDS pairs of processes; the engines take turns. Nothing runs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cpu
import schedule_programs

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = 2
LIMIT = 300  # seconds of a process
# title, program, size, marks: weft's time over tinygrad's, cold and warm
PROGRAMS = (("GPT-2-small, 12 layers", "gpt2", 12, 1 / 10, 1 / 50), ("ResNet-18", "resnet18", 4, 1 / 20, None),
            ("50 convolutions", "convolutions", 50, 1 / 20, None))
ENGINES = {"weft": "CPU", "tinygrad": "CPU", "tinygrad LLVM": "CPU:LLVM"}  # devices


def run_once(build, engine, program, n, folder):
    """The JSON of this file as a program, or why there is none."""
    name = engine.split()[0]
    environment = {**cpu.environment(build, name, folder), "DEV": ENGINES[engine]}
    try:
        done = subprocess.run([sys.executable, __file__, name, program, str(n)], capture_output=True, text=True,
                              timeout=LIMIT, env=environment)
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT} s"
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:100]


def measure(build, title, program, n, engines):
    """By engine: kernels, cold, warm seconds; or why there are none."""
    results = {}
    for i in range(ROUNDS):
        for engine in engines:
            if isinstance(results.get(engine), str):
                continue
            cpu.progress(f"{title}: round {i + 1} of {ROUNDS}, {engine}")
            with tempfile.TemporaryDirectory() as folder:
                runs = [run_once(build, engine, program, n, folder) for _ in ("cold", "warm")]
            if problem := next((r for r in runs if isinstance(r, str)), None):
                results[engine] = problem
                continue
            times = [r["seconds"] for r in runs]
            before = results.get(engine, {"times": times})["times"]
            results[engine] = {"kernels": runs[0]["kernels"], "times": [min(a, b) for a, b in zip(before, times)]}
    cpu.progress()
    return results


def report(build):
    engines = cpu.begin(f"; from the graph to compiled kernels, wall milliseconds, the least of {ROUNDS}", ENGINES)
    print(f"{'program':<24}{'':>15}{'kernels':>9}{'cold ms':>12}{'warm ms':>12}{'1/cold':>9}{'1/warm':>9}   marks")
    for title, program, n, *marks in PROGRAMS:
        results = measure(build, title, program, n, engines)
        ours = results["weft"]
        for engine, result in results.items():
            if isinstance(result, str):
                print(f"{title:<24}{engine:>15}  {result}")
                continue
            cells = "".join(f"{t * 1e3:>12,.1f}" for t in result["times"])
            if engine != "weft" and isinstance(ours, dict):
                cells += "".join(f"{t / o:>9.1f}" for t, o in zip(result["times"], ours["times"]))
                cells += "   " + ", ".join(f"{1 / m:.0f}" for m in marks if m)
            print(f"{title:<24}{engine:>15}{result['kernels']:>9}{cells}", flush=True)


def main():
    name, program, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    engine = schedule_programs.Weft() if name == "weft" else schedule_programs.Tinygrad()
    tensor = schedule_programs.PROGRAMS[program][0](engine)(n)
    start = time.perf_counter()
    kernels = engine.compile(tensor)
    print(json.dumps({"seconds": time.perf_counter() - start, "kernels": kernels}))
    sys.stdout.flush()
    if name == "weft":
        os._exit(0)  # taking the graph apart is not measured


if __name__ == "__main__":
    main()
