"""The documentation as a site: Markdown to HTML, links that lead somewhere, plots of what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import markdown_html as markdown  # noqa: E402
import plots  # noqa: E402


@pytest.mark.parametrize(("text", "expected"), [
    ("# A `b` title", '<h1 id="a-b-title">A <code>b</code> title</h1>'),
    ("one\ntwo **bold** *soft*", "<p>one two <strong>bold</strong> <em>soft</em></p>"),
    ("a `x * y < z` b", "<p>a <code>x * y &lt; z</code> b</p>"),
    ("[to](there.md) <b>", '<p><a href="there.md">to</a> &lt;b&gt;</p>'),
    ("```python\na < b\n```", '<pre><code class="language-python">a &lt; b</code></pre>'),
    ("    indented\n\n    more", "<pre><code>indented\n\nmore</code></pre>"),
    ("- one\n- two\n  - inner", "<ul>\n<li>one</li>\n<li>two\n<ul>\n<li>inner</li>\n</ul></li>\n</ul>"),
    ("1. one\n2. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>"),
    ("> quoted", "<blockquote><p>quoted</p></blockquote>"),
    ("2 * 3 * 4 and snake_case_name", "<p>2 * 3 * 4 and snake_case_name</p>"),
    ("![a picture](p.png)", '<p><img src="p.png" alt="a picture"></p>'),
])
def test_markdown(text: str, expected: str) -> None:
    assert markdown.convert(text).html == expected


def test_tables_keep_bars_in_code() -> None:
    assert markdown.cells_of(r"| `a | b` | c \| d |") == ["`a | b`", "c | d"]
    html = markdown.convert("| a | b |\n| --- | --- |\n| `x` | 1 |").html
    assert "<th>a</th>" in html and "<td><code>x</code></td><td>1</td>" in html


def test_plots_show_every_number() -> None:
    section = {"unit": "ms", "columns": ["weft", "other"], "rows": [["a < b", 1.0, 5000.0], ["c", 2.5, None]]}
    svg = plots.draw("Speed", section)
    texts = [e.text or "" for e in ET.fromstring(svg).iter()]
    assert {"a < b", "1", "5000", "2.5"} <= set(texts) and any("logarithmic" in t for t in texts)


def test_measured_sections_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.json"
    plots.record(path, "One", {"unit": "ms", "columns": ["weft"], "rows": [["a", 1.0]]})
    plots.record(path, "Two", {"unit": "ms", "columns": ["weft"], "rows": [["a", 2.0]]})
    plots.record(path, "One", {"unit": "ms", "columns": ["weft"], "rows": [["a", 3.0]]})
    assert [json.loads(path.read_text())[k]["rows"][0][1] for k in ("One", "Two")] == [3.0, 2.0]


def test_the_site(tmp_path: Path) -> None:
    """Every link leads somewhere, every plot belongs to a heading, and the reference has what users call."""
    done = subprocess.run([sys.executable, ROOT / "tools/site.py", tmp_path], capture_output=True, text=True,
                          env={**os.environ, "WEFT_DEVICE": "CPU"})
    assert (done.returncode, done.stderr) == (0, "")
    names = {p.name for p in tmp_path.glob("*.html")}
    assert {"index.html", "tutorial.html", "reference-weft.Tensor.html", "reference-ops.html", "reference-headers.html"} <= names
    assert (tmp_path / "benchmarks.html").read_text().count('<svg class="plot"') >= 2
    assert 'id="matmul"' in (tmp_path / "reference-weft.Tensor.html").read_text()
    assert "REDUCE_AXIS" in (tmp_path / "reference-ops.html").read_text()
    assert (tmp_path / "files/docs/viz.png").stat().st_size > 10_000


def test_plots_have_the_numbers_of_the_page() -> None:
    """docs/benchmarks.json and the tables of docs/benchmarks.md are of the same measurement."""
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    for heading, section in plots.read(ROOT / "docs/benchmarks.json").items():
        part = page[page.index(f"## {heading}"):].split("\n## ")[0].replace(",", "")
        for name, *values in section["rows"]:
            missing = [v for v in values if v is not None and f"{v:g}" not in part and f"{v:.2f}" not in part]
            assert missing == [], (heading, name, missing)
    cpu = plots.read(ROOT / "docs/benchmarks.json")["The CPU"]
    row = next(r for r in cpu["rows"] if r[0] == "matmul 2048")
    assert dict(zip(cpu["columns"], row[1:]))["tinygrad"] > 10 * dict(zip(cpu["columns"], row[1:]))["weft"]
