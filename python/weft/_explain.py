"""What a program did, as data: `weft run` and `weft explain` run it and ask."""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from typing import Any, Optional

from weft import _core, ir

Record = dict[str, Any]


class Recording:
    """Everything that weft does from now on is recorded, until finish()."""

    def __init__(self) -> None:
        self._stats = ir.set_stats(1)
        ir.reset_rule_statistics()
        _core.set_explaining(True)

    def finish(self) -> Record:
        """What was recorded."""
        records: Record = json.loads(_core.explanations())
        _core.set_explaining(False)
        records["rules"] = [{"name": r.name, "file": r.file, "line": r.line, "tried": r.tried, "fired": r.fired,
                             "nanoseconds": r.nanoseconds} for r in ir.rule_statistics()]
        ir.set_stats(self._stats)
        if not self._stats:
            ir.reset_rule_statistics()
        return records


class Explained:
    """A script that was run, and what was recorded of its schedules and kernels."""

    def __init__(self, script: str, failure: str, records: Record) -> None:
        self.script = os.path.abspath(script)
        self.failure = failure
        self.schedules: list[Record] = records["schedules"]
        self.sites: list[tuple[str, int]] = records["sites"]
        self.nanoseconds: int = records["nanoseconds"]
        self.runs: list[list[int]] = records["runs"]
        self.compilations: list[list[int]] = records["compilations"]
        self.memory: list[list[Any]] = records["memory"]
        self.storages: list[list[Any]] = records["storages"]
        self.rules: list[Record] = records["rules"]
        self.kernels: list[Record] = []
        for number, schedule in enumerate(self.schedules):
            for kernel in schedule["kernels"]:
                self.kernels.append({**kernel, "number": len(self.kernels), "schedule": number})

    @staticmethod
    def run(script: str, arguments: list[str]) -> Explained:
        """Run a script as __main__, with its own arguments and folder."""
        recording = Recording()
        argv, path = sys.argv, list(sys.path)
        sys.argv, sys.path = [script, *arguments], [os.path.dirname(os.path.abspath(script)), *path]
        failure = ""
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            failure = "" if stop.code in (None, 0) else f"the script ended with {stop.code}"
        except BaseException as error:  # noqa: BLE001 - whatever it raises, what it did so far is shown
            trace = error.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_filename != script:
                trace = trace.tb_next  # frames of the command itself
            failure = "".join(traceback.format_exception(type(error), error, trace))
        finally:
            sys.argv, sys.path = argv, path
            records = recording.finish()
        return Explained(script, failure, records)

    def place(self, site: Record) -> str:
        """A line, as short as it can be: 12 of the script itself, file.py:12 of others."""
        if os.path.abspath(site["file"]) == self.script:
            return f"line {site['line']}"
        return f"{os.path.basename(site['file'])}:{site['line']}"

    def places(self, sites: list[Record], most: int = 3) -> str:
        """Lines, separated by commas."""
        out = ", ".join(self.place(site) for site in sites[:most])
        return out + (", ..." if len(sites) > most else "")

    def is_at(self, sites: list[Record], file: Optional[str], line: int) -> bool:
        """Whether one of the lines is the one asked for."""
        return any(site["line"] == line and (
            os.path.abspath(site["file"]) == self.script if file is None else site["file"].endswith(file))
            for site in sites)

    # ---- answers

    def why(self, where: str) -> Record:
        """What was decided about a line: LINE or FILE:LINE."""
        file, _, number = where.rpartition(":")
        if not number.isdigit():
            raise ValueError(f"a line is a number, or file:number, not {where!r}")
        named, line = file or None, int(number)
        kernels = [k for k in self.kernels if self.is_at(k["sites"], named, line)]
        schedules = {k["schedule"] for k in kernels}
        decisions, copies, made = [], [], []
        for i, schedule in enumerate(self.schedules):
            for d in schedule["decisions"]:
                if self.is_at(d["sites"], named, line) or self.is_at(d.get("other_sites", []), named, line):
                    decisions.append({**d, "schedule": i})
            copies += [{**c, "schedule": i} for c in schedule["copies"] if self.is_at(c["sites"], named, line)]
            if i in schedules:
                made.append({"schedule": i, "why": schedule["why_made"], "why_no_loops": schedule["why_no_loops"]})
        return {"line": line, "file": named or self.script, "kernels": [k["number"] for k in kernels],
                "decisions": decisions, "copies": copies, "compiled": made}

    def why_text(self, answer: Record) -> str:
        """The same for people."""
        out = []
        for number in answer["kernels"]:
            kernel = self.kernels[number]
            out.append(f"kernel {number} ({kernel['name']}) computes it, with {self.places(kernel['sites'])}")
        for d in answer["decisions"]:
            numbers = ", ".join(f"{name} {value:.6g}" for name, value in d["numbers"].items())
            other = f" and {d['other']} ({self.places(d['other_sites'])})" if "other" in d else ""
            out.append(f"{d['node']}{other}: {d['what']}, because {d['why']}" + (f" ({numbers})" if numbers else "")
                       + f" [{d['pass']}]")
            if "measured" in d:
                out.append(f"  {d['measured']['text']}")
        for c in answer["copies"]:
            out.append(f"{c['node']} is copied, because {c['why']}")
            if "measured" in c:
                out.append(f"  {c['measured']['text']}")
        for m in answer["compiled"]:
            out.append(f"schedule {m['schedule']} was made, because {m['why']}")
            if m["why_no_loops"]:
                out.append(f"  it is not a loop program: {m['why_no_loops']}")
        return "\n".join(out) or f"nothing was computed for line {answer['line']}"

    def table(self) -> str:
        """A line per kernel."""
        rows = [("kernel", "name", "runs", "time", "GB/s", "GFLOPS", "lines", "operations")]
        for k in self.kernels:
            ns = max(k["nanoseconds"], 1)
            rows.append((str(k["number"]), k["name"], str(k["runs"]), f"{k['nanoseconds'] / 1e3:.1f} us",
                         f"{k['bytes'] / ns:.2f}", f"{k['flops'] / ns:.2f}", self.places(k["sites"]) or "-",
                         k["operations"]))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def stage(self, number: int, name: str) -> str:
        """The graph of a kernel's schedule, or of the kernel, after a pass; or its source."""
        kernel = self.kernels[number]
        made = self.schedules[kernel["schedule"]]["trace"]
        for entry in made["passes"]:
            if entry["name"] == name:
                return str(entry["notes"]) or text_of_graph(made["nodes"], entry["after"])
        graph, trace = ir.parse(kernel["graph"]), ir.Trace()
        program = ir.lower(graph, trace=trace)
        if name == "source":
            return ir.render(program, "llvm", kernel["name"])
        if name == "kernel":
            return str(kernel["graph"])
        for entry in trace.passes:
            if entry.name == name:
                return f"{entry.notes}{entry.after.print()}"
        known = [e["name"] for e in made["passes"]] + [e.name for e in trace.passes]
        raise ValueError(f"a stage is kernel, source, or one of {', '.join(dict.fromkeys(known))}; not {name!r}")


def text_of_graph(nodes: list[Any], root: Optional[int]) -> str:
    """A graph of a recorded trace, as UOp.print() writes it."""
    if root is None:
        return "the graph was too large to be recorded\n"
    numbers: dict[int, int] = {}
    lines: list[str] = []
    stack = [root]
    while stack:
        n = stack[-1]
        op, dtype, sources, argument = nodes[n][:4]
        waiting = [s for s in reversed(sources) if s not in numbers]
        if n not in numbers and waiting:
            stack += waiting
            continue
        stack.pop()
        if n not in numbers:
            numbers[n] = len(lines)
            inner = ", ".join(f"%{numbers[s]}" for s in sources)
            parts = [op, dtype, f"({inner})" if sources else "", argument]
            lines.append(f"%{numbers[n]} = {' '.join(p for p in parts if p)}")
    return "\n".join(lines) + "\n"
