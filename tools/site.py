"""The documentation as a site: pages of docs/ and a reference of the Python package and of the public headers, as HTML.

    tools/site.py [FOLDER]        build/site without one; `make docs` runs it with the package that was built

The pages open from disk and ask nobody for anything. A link that leads nowhere is an error.
"""

from __future__ import annotations

import argparse
import html
import inspect
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import markdown_html as markdown
import plots

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

# The order of the pages; those that no group names come last.
GROUPS = {
    "Start": ["README", "tutorial", "explain", "for-numpy-users", "for-torch-users", "for-tinygrad-users"],
    "Use": ["tensor", "versions", "gradients", "nn", "jit", "torch", "targets"],
    "How to": ["howto", "passes", "codegen-search"],
    "Inside": ["architecture", "walk", "ir", "rewrite", "rules", "symbolic", "schedule", "rangeify", "loops", "codegen",
               "decompositions", "render", "runtime"],
    "Numbers": ["benchmarks", "torch-coverage"],
    "Project": ["CONTRIBUTING", "CHANGELOG"],
}
MODULES = ["weft", "weft.Tensor", "weft.nn", "weft.nn.optim", "weft.nn.lr_scheduler", "weft.nn.state", "weft.ir",
           "weft.array_api", "weft.errors", "weft.viz"]


class Site:
    """All pages, and the files that they link to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources: dict[str, Path] = {"README": ROOT / "README.md", "CONTRIBUTING": ROOT / "CONTRIBUTING.md",
                                         "CHANGELOG": ROOT / "CHANGELOG.md"}
        self.sources.update({p.stem: p for p in sorted(DOCS.glob("*.md"))})
        self.pages: dict[str, markdown.Page] = {}
        self.copied: set[Path] = set()
        self.errors: list[str] = []

    def build(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, path in self.sources.items():
            self.pages[name] = markdown.convert(path.read_text(encoding="utf-8"), lambda t, p=path: self._link(p, t))
        self._draw_plots()
        self.pages["reference-ops"] = markdown.convert(reference_of_ops())
        self.pages["reference-headers"] = markdown.convert(reference_of_headers())
        for name in MODULES:
            self.pages[f"reference-{name}"] = markdown.convert(reference_of(name))
        shutil.copy(ROOT / "tools" / "site.css", self.folder / "site.css")
        for name, page in self.pages.items():
            self._check_anchors(name, page)
            (self.folder / f"{_file(name)}").write_text(self._whole(name, page), encoding="utf-8")

    def _link(self, page: Path, target: str) -> str:
        """Where a link of a page leads in the site."""
        if re.match(r"^[a-z]+:", target) or target.startswith("#"):
            return target
        path, _, anchor = target.partition("#")
        full = Path(posixpath.normpath((page.parent / path).as_posix()))
        suffix = f"#{anchor}" if anchor else ""
        for name, source in self.sources.items():
            if source == full:
                return _file(name) + suffix
        if not full.exists() or ROOT not in [full, *full.parents]:
            self.errors.append(f"{page.relative_to(ROOT)}: {target} is not there")
            return target
        inside = full.relative_to(ROOT)
        if full.is_dir():
            files = sorted(p for p in full.rglob("*") if p.is_file() and p.stat().st_size < 1 << 20)
            for p in files:
                self._copy(p)
            listing = "\n".join(f"- [{p.relative_to(full)}]({p.relative_to(full)})" for p in files)
            index = self.folder / "files" / inside / "index.html"
            index.parent.mkdir(parents=True, exist_ok=True)
            index.write_text(f"<!DOCTYPE html><title>{inside}</title>{markdown.convert(f'# {inside}{chr(10) * 2}{listing}').html}",
                             encoding="utf-8")
            return f"files/{inside}/index.html"
        self._copy(full)
        return f"files/{inside}"

    def _copy(self, path: Path) -> None:
        if path not in self.copied:
            self.copied.add(path)
            to = self.folder / "files" / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)

    def _check_anchors(self, name: str, page: markdown.Page) -> None:
        for file, anchor in re.findall(r'href="([\w.-]*)#([^"]+)"', page.html):
            there = next((p for n, p in self.pages.items() if _file(n) == (file or _file(name))), None)
            if there is not None and anchor not in [h[1] for h in there.headings]:
                self.errors.append(f"{name}: #{anchor} is not a heading of {file or 'the page'}")

    def _draw_plots(self) -> None:
        """Plots of the benchmarks' JSON, before the tables of the same sections."""
        data = plots.read(DOCS / "benchmarks.json")
        page = self.pages["benchmarks"]
        for heading, picture in plots.draw_all(data).items():
            mark = f'id="{markdown.slug(heading)}">'
            at = page.html.find(mark)
            if at < 0:
                self.errors.append(f"benchmarks.json: {heading!r} is not a heading of docs/benchmarks.md")
                continue
            end = page.html.index("</h", at) + 5
            page.html = f"{page.html[:end]}\n<figure>{picture}</figure>{page.html[end:]}"

    def _whole(self, name: str, page: markdown.Page) -> str:
        listed = [n for names in GROUPS.values() for n in names]
        groups = {**GROUPS, "Reference": [n for n in self.pages if n.startswith("reference-")]}
        groups["Project"] = [*groups["Project"], *(n for n in self.sources if n not in listed)]
        nav = []
        for group, names in groups.items():
            links = "".join(f'<li><a href="{_file(n)}"{" aria-current=page" if n == name else ""}>'
                            f"{html.escape(_title(self.pages[n]))}</a></li>" for n in names if n in self.pages)
            nav.append(f"<h2>{group}</h2><ul>{links}</ul>")
        own = "".join(f'<li class="level{level}"><a href="#{anchor}">{html.escape(html.unescape(text))}</a></li>'
                      for level, anchor, text in page.headings if level in (2, 3))
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f'<meta name="viewport" content="width=device-width, initial-scale=1">'
                f"<title>{html.escape(_title(page))} · weft</title><link rel=\"stylesheet\" href=\"site.css\"></head><body>"
                f'<nav class="pages" aria-label="Pages">{"".join(nav)}</nav><main>{page.html}</main>'
                f'<nav class="own" aria-label="On this page"><ul>{own}</ul></nav></body></html>\n')


def _file(name: str) -> str:
    return "index.html" if name == "README" else f"{name}.html"


def _title(page: markdown.Page) -> str:
    return html.unescape(page.headings[0][2]) if page.headings else "weft"


# ---- the reference


def reference_of(name: str) -> str:
    """The documented names of a module or class, as Markdown."""
    import importlib

    try:
        owner: Any = importlib.import_module(name)
        names = list(getattr(owner, "__all__", None) or [n for n in vars(owner) if not n.startswith("_")])
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        owner = getattr(importlib.import_module(module), attribute)
        names = [n for n in dir(owner) if not n.startswith("_")]
    parts = [f"# {name}", _doc(owner)]
    for n in sorted(names, key=str.lower):
        value = getattr(owner, n, None)
        if inspect.ismodule(value):
            continue
        parts += [f"## {n}", *_described(n, value)]
        if inspect.isclass(value) and name != "weft.Tensor" and value.__name__ != "Tensor":
            for member, inner in sorted(vars(value).items()):
                inner = getattr(inner, "__func__", inner)
                if not member.startswith("_") and getattr(inner, "__doc__", None) and (
                        callable(inner) or isinstance(inner, property)):
                    parts += [f"### {n}.{member}", *_described(member, inner)]
    return "\n\n".join(parts) + "\n"


def _described(name: str, value: Any) -> list[str]:
    signature = getattr(value, "__nb_signature__", None)
    lines = [s[0] for s in signature] if isinstance(signature, (tuple, list)) else []
    if not lines and callable(value):
        try:
            lines = [f"{name}{inspect.signature(value)}"]
        except (TypeError, ValueError):
            lines = []
    code = ["```python\n" + "\n".join(str(line) for line in lines) + "\n```"] if lines else []
    return [*code, _doc(value)]


def _doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if isinstance(value, (int, float, str, tuple, list, dict)) and not isinstance(value, type):
        return f"`{value!r}`"[:300]
    # A prompt and what it answers is code; code in double backticks is not used.
    out, in_code = [], False
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not in_code:
            out += ["", "```pycon"]
            in_code = True
        if in_code and not line.strip():
            out += ["```"]
            in_code = False
        out.append(line)
    return "\n".join([*out, "```"] if in_code else out)


def reference_of_ops() -> str:
    """src/ir/ops.def as a table."""
    rows = []
    text = (ROOT / "src/ir/ops.def").read_text(encoding="utf-8")
    for name, group, doc in re.findall(r'^WEFT_OP\((\w+),\s*(\w+),.*?"((?:[^"\\]|\\.)*)"\)', text, re.MULTILINE):
        rows.append(f"| {name} | {group} | {doc.replace('|', chr(92) + '|')} |")
    return "# Operations of the IR\n\nEach is a row of `src/ir/ops.def`.\n\n| op | group | meaning |\n| --- | --- | --- |\n" \
        + "\n".join(rows) + "\n"


def reference_of_headers() -> str:
    """The public C++ headers."""
    parts = ["# C++ headers", "`#include <weft/weft.h>` has all of them."]
    for path in sorted((ROOT / "include/weft").glob("*.h")):
        parts += [f"## weft/{path.name}", f"```cpp\n{path.read_text(encoding='utf-8').rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=str(ROOT / "build/site"))
    site = Site(Path(parser.parse_args().folder).resolve())
    site.build()
    for error in site.errors:
        print(f"docs: {error}", file=sys.stderr)
    print(f"docs: {len(site.pages)} pages in {site.folder}")
    return 1 if site.errors else 0


if __name__ == "__main__":
    sys.exit(main())
