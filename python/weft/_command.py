"""The `weft` command: what it is told, and what it answers."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any, Callable

import numpy

from weft import Device, Tensor, _core, counters
from weft._complete import SHELLS, script_for
from weft._explain import Explained
from weft._measure import measure
from weft._progress import Progress
from weft._reduce import Options, Reducer

OK, FAILED, USAGE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 where what was asked for failed, or 2 for a wrong call."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (OSError, ValueError, RuntimeError) as error:
        print(f"weft: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="weft", description="A tensor compiler: run programs, ask what became of them.")
    commands = top.add_subparsers(required=True, metavar="command")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--json", action="store_true", help="answer as JSON")
        command.set_defaults(run=run)
        return command

    script = add("run", _run, "Run a script, and say what was computed and how long it took.")
    _add_script(script)
    explain = add("explain", _explain, "Run a script, and say what became of its lines and why.")
    explain.add_argument("--kernel", type=int, metavar="N", help="one kernel: its lines, decisions and graph")
    explain.add_argument("--stage", metavar="S",
                         help="the graph after pass S, of --kernel or of kernel 0; `source` is its text")
    explain.add_argument("--why", metavar="LINE", help="what was decided about a line: 12, or file.py:12")
    explain.add_argument("--measure", action="store_true",
                         help="with --why: build and time what else could have been decided")
    _add_script(explain)
    viz = add("viz", _viz, "Run a script, and show what became of it as a page.")
    viz.add_argument("--save", metavar="FILE", help="write the page to a file, and end")
    viz.add_argument("--port", type=int, default=0, help="of the page on 127.0.0.1; else any that is free")
    viz.add_argument("--open", action="store_true", help="in the browser of this machine")
    viz.add_argument("--measure", action="store_true", help="time what else could have been decided, too")
    _add_script(viz)
    reduce = add("reduce", _reduce, "Shrink a script that fails, is wrong or is slow to the smallest that still is.")
    kind = reduce.add_mutually_exclusive_group()
    kind.add_argument("--wrong", action="store_true", help="what weft.check reports is looked for, not an error")
    kind.add_argument("--kernels", type=int, metavar="N", help="at least N kernels")
    kind.add_argument("--seconds", type=float, metavar="S", help="at least S seconds")
    reduce.add_argument("--output", metavar="FILE", help="where the script goes; else to stdout")
    reduce.add_argument("--run-limit", type=float, default=20, metavar="S", help="seconds that one run may take (20)")
    reduce.add_argument("--limit", type=float, default=300, metavar="S", help="seconds for all of it (300)")
    _add_script(reduce)
    devices = add("devices", _devices, "List the devices: what runs each, or why it is missing.")
    devices.add_argument("--verbose", action="store_true", help="also what each is taken for when kernels are chosen")
    cache = add("cache", _cache, "Say what is kept on disk, or remove it.")
    cache.add_argument("what", choices=("info", "clear"))
    add("doctor", _doctor, "Say what is installed, what is missing, and what to do about it.")
    add("bench", _bench, "Time a few kernels beside NumPy, in a few seconds.")
    completion = add("completion", _completion, 'Print completion for a shell: eval "$(weft completion bash)"')
    completion.add_argument("shell", choices=SHELLS)
    return top


def _add_script(command: argparse.ArgumentParser) -> None:
    command.add_argument("script", help="a Python file")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")


def _answer(options: argparse.Namespace, data: Any, text: str) -> None:
    print(json.dumps(data, indent=1) if options.json else text)


# ---- scripts


def _explained(options: argparse.Namespace) -> Explained:
    if not Path(options.script).is_file():
        raise ValueError(f"there is no file {options.script}")
    explained = Explained.run(options.script, options.arguments)
    sys.stdout.flush()
    if explained.failure:
        print(explained.failure.rstrip(), file=sys.stderr)
    return explained


def _run(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    counters.reset()
    explained = _explained(options)
    seconds = time.perf_counter() - start
    data = {"seconds": seconds, "kernels": counters.kernels, "bytes": counters.bytes, "flops": counters.flops,
            "schedules": counters.schedules, "lowered": counters.lowered, "compiled": counters.compiled,
            "kernel_seconds": sum(k["nanoseconds"] for k in explained.kernels) / 1e9, "failed": bool(explained.failure)}
    text = (f"weft: {seconds:.2f} s, {data['kernels']} kernels run in {data['kernel_seconds'] * 1e3:.2f} ms on "
            f"{data['bytes'] / 1e6:.1f} MB; {data['schedules']} schedules made, {data['compiled']} kernels compiled")
    if options.json:
        print(json.dumps(data, indent=1))
    else:
        print(text, file=sys.stderr)
    return FAILED if explained.failure else OK


def _explain(options: argparse.Namespace) -> int:
    explained = _explained(options)
    for number in (options.kernel,) if options.kernel is not None else ():
        if not 0 <= number < len(explained.kernels):
            raise ValueError(f"there are {len(explained.kernels)} kernels, from 0; not {number}")
    if options.why is not None:
        answer = explained.why(options.why)
        if options.measure:
            measure(explained, answer)
        _answer(options, answer, explained.why_text(answer))
    elif options.stage is not None:
        if not explained.kernels:
            raise ValueError("the script ran no kernel")
        text = explained.stage(options.kernel or 0, options.stage)
        _answer(options, {"kernel": options.kernel or 0, "stage": options.stage, "text": text}, text.rstrip())
    elif options.kernel is not None:
        kernel = explained.kernels[options.kernel]
        decisions = [d for d in explained.schedules[kernel["schedule"]]["decisions"]
                     if any(site in kernel["sites"] for site in d["sites"])]
        lines = [f"kernel {options.kernel}: {kernel['name']} of {explained.places(kernel['sites'], 9) or 'no line'}",
                 f"operations: {kernel['operations']}"]
        lines += [f"  {d['node']}: {d['what']}, because {d['why']}" for d in decisions]
        _answer(options, {**kernel, "decisions": decisions}, "\n".join([*lines, kernel["graph"].rstrip()]))
    else:
        made = [f"schedule {i}: {len(s['kernels'])} kernels, {s['microseconds']:.0f} us"
                + (f", made because {s['why_made']}" if s["why_made"] else ", known")
                for i, s in enumerate(explained.schedules)]
        data = {"kernels": explained.kernels, "schedules": [
            {k: v for k, v in s.items() if k not in ("kernels", "trace", "graph")} for s in explained.schedules]}
        hint = "\n`--why LINE` says why something was stored, copied, or not one kernel; `--kernel N --stage S` shows it."
        _answer(options, data, "\n".join([explained.table(), "", *made]) + hint)
    return FAILED if explained.failure else OK


def _viz(options: argparse.Namespace) -> int:
    from weft.viz import Server, page_of

    explained = _explained(options)
    if options.measure:
        for schedule in explained.schedules:
            for decision in schedule["decisions"]:
                decision["schedule"] = explained.schedules.index(schedule)
            for copy in schedule["copies"]:
                copy["schedule"] = explained.schedules.index(schedule)
            measure(explained, {"decisions": schedule["decisions"], "copies": schedule["copies"]})
    page = page_of(explained)
    result = FAILED if explained.failure else OK
    if options.save:
        Path(options.save).write_text(page, encoding="utf-8")
        data = {"file": options.save, "bytes": len(page.encode()), "kernels": len(explained.kernels)}
        print(json.dumps(data) if options.json else f"weft: {options.save}, {data['bytes'] / 1e6:.1f} MB", file=sys.stderr
              if not options.json else sys.stdout)
        return result
    server = Server(page, options.port)
    print(json.dumps({"url": server.url}) if options.json else f"weft: {server.url} (Ctrl-C ends it)", flush=True)
    if options.open:
        webbrowser.open(server.url)
    server.wait()
    return result


def _reduce(options: argparse.Namespace) -> int:
    path = Path(options.script)
    if not path.is_file():
        raise ValueError(f"there is no file {options.script}")
    what, bound = ("wrong", 0.0) if options.wrong else ("kernels", options.kernels) if options.kernels else \
        ("seconds", options.seconds) if options.seconds else ("failure", 0.0)
    sys.path.insert(0, str(path.resolve().parent))
    source = path.read_text(encoding="utf-8")
    with Progress("reducing") as progress:
        reducer = Reducer(source, options.arguments, Options(what, bound, options.run_limit, options.limit),
                          lambda text: progress.tell(0, text))
        found = reducer.run()
    if options.output:
        Path(options.output).write_text(found, encoding="utf-8")
    error = str(reducer.first.get("error") or "").strip()
    data = {"lines": len(found.splitlines()), "lines_before": len(source.splitlines()), "runs": reducer.runs,
            "what": what, "error": error, "script": found}
    print(f"weft: {data['lines_before']} lines to {data['lines']} in {data['runs']} runs", file=sys.stderr)
    if options.json:
        print(json.dumps(data, indent=1))
    elif not options.output:
        print(found, end="")
    return OK


def _completion(options: argparse.Namespace) -> int:
    text = script_for(options.shell, _parser())
    print(json.dumps({"shell": options.shell, "script": text}) if options.json else text, end="")
    return OK


# ---- the machine


def _devices(options: argparse.Namespace) -> int:
    entries = Device.all()
    data = [{"name": e.name, "description": e.description, "missing": e.missing, "default": e.name == Device.DEFAULT,
             **({"machine": Device.machine(e.name)} if options.verbose and not e.missing else {})} for e in entries]
    width = max(len(entry.name) for entry in entries)
    lines = []
    for entry in data:
        text = f"missing: {entry['missing']}" if entry["missing"] else str(entry["description"])
        lines.append(f"{'*' if entry['default'] else ' '} {entry['name']:<{width}}  {text}".rstrip())
        lines += [f"    {line}" for line in str(entry.get("machine", "")).splitlines()]
    _answer(options, data, "\n".join(lines))
    return OK


def _cache(options: argparse.Namespace) -> int:
    folder = _core.cache_folder()
    entries = Path(folder) / "entries"
    files = [f for f in entries.rglob("*") if f.is_file()] if folder and entries.is_dir() else []
    size = sum(f.stat().st_size for f in files)
    if options.what == "info":
        most = _core.most_cache_bytes()
        _answer(options, {"folder": folder, "entries": len(files), "bytes": size, "most_bytes": most},
                f"{folder or 'nothing is kept'}: {len(files)} entries, {size / 1e6:.1f} MB of at most {most / 1e6:.0f} MB")
        return OK
    if files:
        shutil.rmtree(entries)
    _answer(options, {"folder": folder, "removed": len(files), "bytes": size},
            f"{folder or 'nothing is kept'}: {len(files)} entries removed, {size / 1e6:.1f} MB")
    return OK


def _doctor(options: argparse.Namespace) -> int:
    checks: list[dict[str, Any]] = []

    def check(name: str, is_good: bool, text: str, advice: str = "", is_needed: bool = False) -> None:
        checks.append({"name": name, "good": is_good, "needed": is_needed, "text": text,
                       "advice": "" if is_good else advice})

    check("python", sys.version_info >= (3, 10), sys.version.split()[0], "Python 3.10 or later is needed", True)
    try:
        value = (Tensor([1.0, 2.0], device="CPU") * 2).tolist()
        check("a kernel", value == [2.0, 4.0], "compiled, run and right", "its values are wrong: report it", True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong
        check("a kernel", False, str(error), "install libllvm19, clang or gcc", True)
    folder = _core.cache_folder()
    probe = Path(folder) if folder else None
    while probe is not None and not probe.exists():
        probe = probe.parent
    check("cache on disk", probe is not None and os.access(probe, os.W_OK), folder or "off",
          "set WEFT_CACHE_DIR to a folder that can be written")
    for entry in Device.all():
        check(f"device {entry.name}", not entry.missing, entry.description or "there", entry.missing)
    for module, what in (("torch", "the PyTorch device"), ("ml_dtypes", "bfloat16 and fp8 in NumPy")):
        check(module, importlib.util.find_spec(module) is not None, what, f"pip install {module}, for {what}")
    lines = []
    for c in checks:
        mark = "ok     " if c["good"] else "MISSING" if c["needed"] else "-      "
        lines.append(f"{mark} {c['name']}: {c['text'] if c['good'] else c['advice'] or c['text']}")
    _answer(options, checks, "\n".join(lines))
    return OK if all(c["good"] for c in checks if c["needed"]) else FAILED


def _bench(options: argparse.Namespace) -> int:
    n = 512
    left = numpy.linspace(-1, 1, n * n, dtype=numpy.float32).reshape(n, n)
    right = numpy.ascontiguousarray(left.T)
    a, b = Tensor(left).realize(), Tensor(right).realize()

    def softmax(x: Any) -> Any:
        e = numpy.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    cases: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("a + b", lambda: (a + b).realize(), lambda: left + right),
        ("exp(a) * b + 1", lambda: (a.exp() * b + 1).realize(), lambda: numpy.exp(left) * right + 1),
        ("a.sum(1)", lambda: a.sum(axis=1).realize(), lambda: left.sum(axis=1)),
        ("softmax(a)", lambda: a.softmax(axis=1).realize(), lambda: softmax(left)),
        ("a @ b", lambda: (a @ b).realize(), lambda: left @ right),
    ]
    rows = []
    for number, (name, ours, theirs) in enumerate(cases):
        best = [float("inf"), float("inf")]
        with Progress("bench", len(cases)) as progress:
            for _ in range(15):  # side by side: what else the machine does meets both
                progress.tell(number, name)
                for i, call in enumerate((ours, theirs)):
                    start = time.perf_counter()
                    call()
                    best[i] = min(best[i], time.perf_counter() - start)
        rows.append({"case": name, "weft_us": best[0] * 1e6, "numpy_us": best[1] * 1e6, "ratio": best[1] / best[0]})
    text = "\n".join([f"{n} x {n} float32 on {Device.DEFAULT}, the least of 15, in us: weft, NumPy, ratio"] + [
        f"  {r['case']:<16}{r['weft_us']:10.1f}{r['numpy_us']:10.1f}{r['ratio']:8.2f}" for r in rows])
    _answer(options, rows, text)
    return OK
