"""The page of `weft viz`: what is in it, and what it does in a browser."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium)")

SCRIPT = """\
from weft import Tensor

a = Tensor.ones(64, 32).realize()
b = Tensor.ones(32, 16).realize()
c = a @ b  # <img src=x onerror="document.title='broken'"></script><script>document.title='broken'</script>
d = c.sum(axis=1); del c
print(d.sum().item())
view = (a * 1).realize()
kept = view + 1
view[0] = 5.0
row = view[1:3].T
print(row.sum().item())
kept.realize()
"""


def weft(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "weft", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "WEFT_DEVICE": "CPU"})
    assert done.returncode == code, done
    return done


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viz")
    script = folder / "<b onclick=x>program.py"
    script.write_text(SCRIPT)
    weft("viz", "--save", folder / "page.html", script)
    return folder / "page.html"


def data_of(page: Path) -> Any:
    text = page.read_text()
    found = re.search(r'<script type="application/json" id="weft-data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def blob_of(page: Path, name: str) -> Any:
    found = re.search(rf'data-blob="{name}">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def line_of(data: Any, text: str) -> str:
    for number, file in enumerate(data["files"]):
        for i, line in enumerate(file["lines"]):
            if text in line:
                return f"{number}:{i + 1}"
    raise AssertionError(text)


# ---- what is in it


def test_it_is_one_file_that_asks_nobody(page: Path) -> None:
    text = page.read_text()
    assert "default-src 'none'" in text and not re.search(r"(src|href)=[\"']?https?:", text)
    assert "@" not in re.findall(r"<title>(.*?)</title>", text)[0]
    assert text.count("<script") == text.count("</script>")


def test_names_that_are_html_stay_names(page: Path) -> None:
    text = page.read_text()
    assert "<img src=x" not in text and "<b onclick" not in text
    assert html.escape("<b onclick=x>program.py") in text


def test_kernels_have_lines_passes_and_code(page: Path) -> None:
    data = data_of(page)
    product = next(k for k in data["kernels"] if any(
        data["sites"][s] == [int(n) for n in line_of(data, "c = a @ b").split(":")] for s in k["sites"]))
    assert product["nanoseconds"] > 0 and product["least_nanoseconds"] > 0 and product["runs"] == 1
    code = blob_of(page, product["blob"])
    names = [t["name"] for t in code["texts"]]
    assert names[0].startswith("C") and "LLVM IR" in names and "assembly" in names
    assembly = next(t["text"] for t in code["texts"] if t["name"] == "assembly")
    assert "ret" in assembly and product["name"] in assembly
    assert [p["name"] for p in code["trace"]["passes"]][0] == "canonical"
    schedule = blob_of(page, f"s{product['schedule']}")["trace"]
    assert schedule["passes"][-1]["name"] == "plan memory" and len(schedule["nodes"]) > 10
    assert any(node[4:] and node[4] for node in schedule["nodes"])  # nodes know their lines
    statuses = {r["status"] for r in code["trace"]["rules"]}
    assert "proved by Z3" in statuses and any(r["text"].count("->") for r in code["trace"]["rules"])


def test_steps_lead_from_each_graph_to_the_next(page: Path) -> None:
    """What the page's Replay relies on: every step names nodes of the table."""
    for name in re.findall(r'data-blob="([sk]\d+)"', page.read_text()):
        trace = blob_of(page, name)["trace"]
        for n, node in enumerate(trace["nodes"]):
            assert all(s < n for s in node[2])
        for p in trace["passes"]:
            assert len(p["steps"]) == p["step_count"]
            assert all(max(step[1:]) < len(trace["nodes"]) and step[0] < len(trace["rules"]) for step in p["steps"])


def test_time_memory_and_storages(page: Path) -> None:
    data = data_of(page)
    assert len(data["runs"]) >= len(data["kernels"]) and data["compilations"]
    live: dict[int, int] = {}
    for _, number, size, _, _ in data["memory"]:
        live[number] = live.get(number, 0) + size
        assert live[number] >= 0
    assert any(what == "a result" and sites for _, _, size, sites, what in data["memory"] if size > 0)
    written = [e for e in data["storages"] if e[0] in ("written", "replaced")]
    line = [int(n) for n in line_of(data, "view[0] = 5.0").split(":")]
    assert any(data["sites"][e[3]] == line for e in written)
    number = next(e[1] for e in written if data["sites"][e[3]] == line)
    own = [e for e in data["storages"] if e[1] == number]
    # `kept` reads version 0, the views after the write read version 1.
    kept = [int(n) for n in line_of(data, "kept = view + 1").split(":")]
    assert [e[2] for e in own if e[0] == "read" and data["sites"][e[3]] == kept] == [0]
    assert any(e[0] == "viewed" and e[6] == [2, 32] for e in own) and any(e[2] == 1 for e in own if e[0] == "read")


def test_rules_are_counted(page: Path) -> None:
    rules = data_of(page)["rules"]
    assert sum(r["fired"] for r in rules) > 20 and all(r["tried"] >= r["fired"] > 0 for r in rules)


def test_a_script_that_fails_has_a_page(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("from weft import Tensor\n(Tensor([1.0, 2.0]) * 2).realize()\nraise KeyError('here')\n")
    weft("viz", "--save", tmp_path / "page.html", script, code=1)
    data = data_of(tmp_path / "page.html")
    assert "KeyError: 'here'" in data["failure"] and len(data["kernels"]) == 1
    empty = tmp_path / "empty.py"
    empty.write_text("1 / 0\n")
    weft("viz", "--save", tmp_path / "empty.html", empty, code=1)
    assert data_of(tmp_path / "empty.html")["kernels"] == []


def test_the_environment_asks_for_it(tmp_path: Path) -> None:
    code = "from weft import Tensor; print((Tensor([1.0, 2.0]) * 2).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
                          env={**os.environ, "WEFT_VIZ": "own.html", "WEFT_DEVICE": "CPU"})
    assert done.stdout == "[2.0, 4.0]\n" and "own.html" in done.stderr
    assert len(data_of(tmp_path / "own.html")["kernels"]) == 1


def test_it_is_served_to_this_machine_alone(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("from weft import Tensor\nTensor([1.0]).sum().item()\n")
    with subprocess.Popen([sys.executable, "-m", "weft", "viz", "--json", script], text=True, stdout=subprocess.PIPE,
                          env={**os.environ, "WEFT_DEVICE": "CPU"}) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        try:
            assert url.startswith("http://127.0.0.1:")
            assert b"weft-data" in urllib.request.urlopen(url).read()
            for wrong in (urllib.request.Request(url + "etc/passwd"),
                          urllib.request.Request(url, headers={"Host": "evil.example"})):
                with pytest.raises(urllib.error.HTTPError):
                    urllib.request.urlopen(wrong)
        finally:
            process.terminate()


# ---- in a browser


def in_browser(page: Path, steps: str, address: str = "") -> Any:
    """What `steps`, the body of an async function of the page, returns."""
    script = f"""<script>
      const sleep = ms => new Promise(done => setTimeout(done, ms));
      const until = async what => {{ for (let i = 0; i < 400 && !what(); i++) await sleep(10); return what(); }};
      const errors = [];
      addEventListener("error", e => errors.push(e.message));
      const press = key => document.body.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
      (async () => {{ {steps} }})().catch(e => ({{ error: String(e.stack) }})).then(result => {{
        const out = document.createElement("pre");
        out.id = "result";
        out.textContent = JSON.stringify({{ result, errors, title: document.title }});
        document.body.append(out);
      }});
      </script>"""
    copy = page.with_name("in_browser.html")
    copy.write_text(page.read_text().replace("</body>", script + "</body>"))
    assert CHROMIUM
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--virtual-time-budget=20000",
         f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", f"{copy.as_uri()}{address}"],
        capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, (done.stdout[-2000:], done.stderr[-2000:])
    out = json.loads(html.unescape(found[1]))
    assert out["errors"] == [] and "broken" not in out["title"], out
    assert not (isinstance(out["result"], dict) and "error" in out["result"]), out["result"]
    return out["result"]


@needs_browser
def test_every_view_is_drawn(page: Path) -> None:
    seen = in_browser(page, """
      const out = {};
      for (const [name] of weft.tabs) {
        document.getElementById(`tab-${name}`).click();
        await until(() => !document.getElementById("main").textContent.includes("unpacking"));
        await sleep(100);
        out[name] = [document.getElementById("main").textContent.length,
                     document.querySelectorAll("#main svg *").length];
      }
      out.images = document.querySelectorAll("img").length;
      out.name = document.querySelector("#source .file").textContent;
      return out;""")
    assert seen.pop("images") == 0 and seen.pop("name") == "<b onclick=x>program.py"
    assert all(text > 100 for text, _ in seen.values()), seen
    assert all(seen[name][1] > 10 for name in ("graph", "storages", "time")), seen


@needs_browser
def test_a_line_leads_to_its_kernel_and_back(page: Path) -> None:
    line = line_of(data_of(page), "c = a @ b")
    seen = in_browser(page, f"""
      document.querySelector('.src[data-line="{line}"]').click();
      await until(() => document.querySelector("[data-text=assembly]"));
      const kernel = document.getElementById("kernel-name").textContent;
      const there = document.querySelector(".src.chosen").dataset.line;
      document.getElementById("tab-kernels").click();
      weft.chooseLine(null, false);
      document.querySelector(`tr[data-kernel="${{weft.state.kernel}}"]`).click();
      await sleep(50);
      return [kernel, there, document.querySelector(".src.chosen").dataset.line, location.hash];""")
    assert seen[0].startswith("Kernel ") and seen[1] == line and seen[2] == line and "tab=code" in seen[3]


@needs_browser
def test_steps_go_forwards_and_backwards(page: Path) -> None:
    data = data_of(page)
    name = next(k["blob"] for k in data["kernels"] if k["blob"])
    trace = blob_of(page, name)["trace"]
    number = next(i for i, p in enumerate(trace["passes"]) if p["step_count"] >= 3)
    seen = in_browser(page, """
      await until(() => weft.state.passView?.title.textContent);
      const view = weft.state.passView, text = () => document.getElementById("step-text").textContent;
      const root = () => view.shownRoot, all = view.trace.passes[view.pass].steps.length;
      const out = [view.title.textContent, text()];
      document.getElementById("first").click();
      const before = root();
      press("n"); out.push(text()); const one = root();
      press("n"); const two = root();
      press("p"); out.push(text(), root() === one, one !== before, document.querySelectorAll("svg .node.new").length);
      press("p"); out.push(root() === before);
      for (let i = 0; i < all; i++) view.move(1);
      const last = root();
      document.getElementById("last").click();
      out.push(last === root() || view.trace.passes[view.pass].after, weft.printed(view.replay.nodes, last).join("\\n"),
               weft.printed(view.replay.nodes, root()).join("\\n"));
      return out;""", f"#tab=graph&graph={name}&pass={number}")
    title, after, first, again, is_back, differs, marked, is_start, _, replayed, final = seen
    assert title == trace["passes"][number]["name"] and after.startswith("after the pass")
    rule = trace["rules"][trace["passes"][number]["steps"][0][0]]
    assert f"step 1 of {trace['passes'][number]['step_count']}: {rule['name']}" in first and rule["status"] in first
    assert again == first and is_back and differs and marked == 1 and is_start
    assert replayed == final  # rules alone lead from the graph before to the one after


@needs_browser
def test_search_and_keys(page: Path) -> None:
    seen = in_browser(page, """
      await until(() => weft.state.passView?.title.textContent);
      const view = weft.state.passView;
      press("/");
      const focused = document.activeElement.id;
      view.searchBox.value = "range";
      view.searchBox.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      const hits = view.hits.textContent, op = view.view.nodes[view.view.chosen][0];
      const from = view.view.chosen;
      view.view.svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      const walked = view.view.nodes[view.view.chosen][2].includes(from), said = document.getElementById("said").textContent;
      document.body.focus();
      press("2");
      const tab = weft.state.tab;
      press("t"); const theme = document.documentElement.dataset.theme;
      press("?");
      return { focused, hits, op, walked, said, tab, theme, keys: document.getElementById("keys").open };
      """, "#tab=graph&graph=s2&pass=8")
    assert seen["focused"] == "search" and seen["hits"].startswith("1 of ") and seen["op"] == "RANGE"
    assert seen["walked"] and seen["said"] and seen["tab"] == "code" and seen["theme"] == "dark" and seen["keys"]


@needs_browser
def test_a_graph_of_ten_thousand_nodes_stays_usable(page: Path) -> None:
    seen = in_browser(page, """
      const nodes = [["BUFFER", "float32", [], "0"]];
      for (let i = 1; i < 10000; i++) nodes.push([i % 7 ? "ADD" : "MUL", "float32", [i - 1, Math.max(0, i - (i % 90) - 1)], ""]);
      nodes.push(["SINK", "void", [nodes.length - 1], "the end"]);
      const view = new weft.GraphView();
      document.getElementById("main").replaceChildren(view.svg);
      const begin = performance.now();
      view.show(nodes, nodes.length - 1);
      const shown = performance.now() - begin;
      view.goto(5000);
      const searched = view.search("BUFFER"), there = nodes[view.chosen][0];
      view.expand(view.chosen);
      return { shown, drawn: view.elements.size, searched, there, all: performance.now() - begin, note: view.note.textContent };
      """)
    assert seen["drawn"] < 400 and seen["searched"] == "1 of 1" and seen["there"] == "BUFFER"
    assert "of 10001 nodes" in seen["note"] and seen["all"] < 5000, seen


@needs_browser
def test_the_page_of_a_failure_says_so(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("from weft import Tensor\n(Tensor([1.0, 2.0]) * 2).realize()\nraise KeyError('<i>here</i>')\n")
    weft("viz", "--save", tmp_path / "page.html", script, code=1)
    seen = in_browser(tmp_path / "page.html", """
      const failure = document.getElementById("failure");
      return [failure.hidden, failure.textContent, failure.querySelectorAll("i").length,
              document.querySelectorAll("tr[data-kernel]").length];""")
    assert seen[0] is False and "<i>here</i>" in seen[1] and seen[2] == 0 and seen[3] == 1
