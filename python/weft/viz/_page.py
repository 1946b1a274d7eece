"""What was recorded of a program to one HTML file: a summary as JSON, traces as packed blobs, scripts and styles inside."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
from pathlib import Path
from typing import Any

from weft import _core, ir
from weft._explain import Explained, Record

FOLDER = Path(__file__).parent
SCRIPTS = ("dom", "data", "layout", "graph", "views", "passes", "charts", "main")
MOST_TRACED = 48  # kernels whose passes are in the page, those that took longest
MOST_TEXTS = 200  # kernels whose code is
MOST_BYTES = 24 << 20  # of packed blobs
MOST_FILE_LINES = 5000
MOST_FILES = 20
# Of a device: the target, the language, and what the text is called.
LANGUAGES = {"CPU:C": ("C", "c", "C"), "CUDA": ("CUDA", "cuda", "CUDA C"), "CUDA:PTX": ("PTX", "ptx", "PTX"),
             "OPENCL": ("OPENCL", "opencl", "OpenCL C"), "WEBGPU": ("WGSL", "wgsl", "WGSL")}


def page_of(explained: Explained) -> str:
    """The page of a program that was run."""
    blobs: dict[str, str] = {}
    data = _Summary(explained, blobs).data()
    parts = {
        "TITLE": html.escape(str(data["title"])),
        "STYLE": (FOLDER / "style.css").read_text(encoding="utf-8"),
        "SCRIPT": "\n".join((FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS),
        "BLOBS": "\n".join([
            f'<script type="application/json" id="weft-data">{_in_script(json.dumps(data))}</script>',
            *(f'<script type="text/plain" data-blob="{name}">{text}</script>' for name, text in blobs.items())]),
    }
    out = (FOLDER / "page.html").read_text(encoding="utf-8")
    for name, text in parts.items():  # each once: what is put in is not looked at again
        before, _, after = out.partition(f"@{name}@")
        out = before + text + after
    return out


def _in_script(text: str) -> str:
    """JSON that ends no script element, whatever its strings say."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _packed(data: object) -> str:
    return base64.b64encode(gzip.compress(json.dumps(data).encode(), 6, mtime=0)).decode()


class _Summary:
    def __init__(self, explained: Explained, blobs: dict[str, str]) -> None:
        self.explained = explained
        self.blobs = blobs
        self.left_out: list[str] = []
        self.bytes = 0
        self.files: list[Record] = []
        self.rules: dict[tuple[str, int], Record] = {}

    def data(self) -> Record:
        e = self.explained
        sites = [self._site(file, line) for file, line in e.sites]
        kernels = [self._kernel(k) for k in e.kernels]
        self._codes(kernels)
        schedules = [self._schedule(number, s) for number, s in enumerate(e.schedules)]
        for k in kernels:
            del k["graph"]
        return {
            "title": f"{os.path.basename(e.script)} — weft", "failure": e.failure, "nanoseconds": e.nanoseconds,
            "sites": sites, "kernels": kernels, "schedules": schedules,
            "files": [{name: value for name, value in file.items() if name != "path"} for file in self.files],
            "runs": e.runs, "compilations": e.compilations, "memory": e.memory, "storages": e.storages,
            "rules": self._rules(), "left_out": self.left_out,
        }

    def _add_blob(self, name: str, data: object) -> bool:
        text = _packed(data)
        if self.bytes + len(text) > MOST_BYTES:
            return False
        self.bytes += len(text)
        self.blobs[name] = text
        return True

    def _site(self, file: str, line: int) -> list[int]:
        for number, known in enumerate(self.files):
            if known["path"] == file:
                return [number, line]
        is_script = os.path.abspath(file) == self.explained.script if file else False
        lines: list[str] = []
        if file and (is_script or len(self.files) < MOST_FILES):
            try:
                lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()[:MOST_FILE_LINES]
            except OSError:
                lines = []  # it is gone, or was none: <stdin>
        self.files.append({"path": file, "name": os.path.basename(file), "is_script": is_script, "lines": lines})
        return [len(self.files) - 1, line]

    def _kernel(self, k: Record) -> Record:
        keep = ("number", "name", "schedule", "operations", "runs", "nanoseconds", "bytes", "flops",
                "least_nanoseconds", "waits_for", "graph")
        device = self.explained.schedules[k["schedule"]]["device"]
        return {**{name: k[name] for name in keep}, "sites": [s["number"] for s in k["sites"]], "blob": None,
                "device": device}

    def _codes(self, kernels: list[Record]) -> None:
        different: dict[tuple[str, str], list[Record]] = {}
        for k in kernels:
            if k["graph"]:
                different.setdefault((k["device"], k["graph"]), []).append(k)
        longest = sorted(different.items(), key=lambda entry: -sum(k["nanoseconds"] for k in entry[1]))
        for rank, ((device, graph), same) in enumerate(longest[:MOST_TEXTS]):
            name = f"k{same[0]['number']}"
            code = _code_of(graph, str(same[0]["name"]), device, rank < MOST_TRACED)
            self._note_rules(code["trace"])
            if not self._add_blob(name, code):
                self.left_out.append("The page is full: code of some kernels is not in it.")
                return
            for k in same:
                k["blob"] = name
        if len(longest) > MOST_TRACED:
            self.left_out.append(f"Passes are there of the {MOST_TRACED} kernels that took longest.")
        if len(longest) > MOST_TEXTS:
            self.left_out.append(f"Code is there of the {MOST_TEXTS} kernels that took longest.")

    def _schedule(self, number: int, s: Record) -> Record:
        trace = s["trace"]
        self._note_rules(trace)
        passes = [{"name": p["name"]} for p in trace["passes"]]
        if passes and not self._add_blob(f"s{number}", {"trace": trace}):
            self.left_out.append(f"The page is full: the graphs of schedule {number} are not in it.")
            passes = []

        def numbered(entries: list[Record]) -> list[Record]:
            return [{**entry, **{name: [s["number"] for s in entry[name]]
                                 for name in ("sites", "other_sites") if name in entry}} for entry in entries]

        return {
            "number": number, "device": s["device"], "why_made": s["why_made"], "why_no_loops": s["why_no_loops"],
            "begin": s["begin"], "microseconds": s["microseconds"], "passes": passes,
            "kernels": [k["number"] for k in self.explained.kernels if k["schedule"] == number],
            "decisions": numbered(s["decisions"]), "copies": numbered(s["copies"]),
        }

    def _note_rules(self, trace: Record) -> None:
        for rule in trace["rules"]:
            self.rules.setdefault((rule["name"], rule["line"]), rule)

    def _rules(self) -> list[Record]:
        out = []
        for r in self.explained.rules:
            known = self.rules.get((r["name"], r["line"]))
            if r["fired"]:
                out.append({**r, "file": known["file"] if known else os.path.basename(r["file"]),
                            "text": known["text"] if known else "", "status": known["status"] if known else ""})
        return out


def _code_of(graph: str, name: str, device: str, with_passes: bool) -> Record:
    """The texts that a kernel became, and its passes."""
    kernel = ir.parse(graph)
    trace = ir.Trace()
    texts: list[dict[str, str]] = []

    def add(title: str, make: Any) -> None:
        try:
            texts.append({"name": title, "text": make()})
        except Exception as error:  # noqa: BLE001 - what cannot be written says why, and the page has the rest
            texts.append({"name": title, "text": f"{type(error).__name__}: {error}"})

    target, language, title = LANGUAGES.get(device, ("LLVM", "llvm", "LLVM IR"))
    program = None
    try:
        program = ir.lower(kernel, target=target, trace=trace if with_passes else None)
    except Exception as error:  # noqa: BLE001
        texts.append({"name": title, "text": f"{type(error).__name__}: {error}"})
    if program is not None:
        if target == "LLVM":
            add("C, the same kernel", lambda: ir.render(ir.lower(kernel, target="C"), "c", name))
        add(title, lambda: ir.render(program, language, name))
        if target == "LLVM":
            add("assembly", lambda: _core.assembly(ir.render(program, "llvm", name), name))
        texts.append({"name": "program (UOps in order)", "text": program.print()})
    texts.append({"name": "kernel (UOps)", "text": graph})
    return {"texts": texts, "trace": json.loads(_core.trace_graph(trace))}
