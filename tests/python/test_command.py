"""The command `weft`: what it answers, in text and JSON, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

SCRIPT = """\
import sys
from weft import Tensor

a = Tensor.ones(64, 32).realize()
b = Tensor.ones(32, 16).realize()
c = a @ b
d = c.sum(axis=1); del c
print(d.sum().item(), sys.argv[1:])
old = a[0]
view = (a * 1).realize()
kept = view + 1
view[0] = 5.0
view.realize()
kept.realize()
for n in (0.5, 0.25):
    (a * n).realize()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return path


def weft(*arguments: object, code: int = 0, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WEFT_DEVICE": "CPU", **({"WEFT_CACHE_DIR": str(cache)} if cache else {})}
    done = subprocess.run([sys.executable, "-m", "weft", *map(str, arguments)], capture_output=True, text=True,
                          env=environment)
    assert done.returncode == code, done
    return done


def answer(*arguments: object, **options: Any) -> Any:
    text = weft(*arguments, **options).stdout
    return json.loads(text[min(text.index(sign) for sign in "[{" if sign in text):] if text[0] not in "[{" else text)


def explained(*arguments: object) -> Any:
    text = weft("explain", "--json", *arguments).stdout
    return json.loads(text.split("\n", 1)[1])  # the script prints a line first


def test_run(script: Path) -> None:
    done = weft("run", script, "one", "--two")
    assert done.stdout == "32768.0 ['one', '--two']\n" and "kernels run in" in done.stderr
    data = json.loads(weft("run", "--json", script).stdout.split("\n", 1)[1])
    assert data["kernels"] > 4 and data["seconds"] > 0 and data["failed"] is False


def test_kernels_have_lines(script: Path) -> None:
    data = explained(script)
    lines = [sorted(site["line"] for site in k["sites"]) for k in data["kernels"]]
    assert [6] in [[n for n in own if n == 6] for own in lines], lines  # the product
    assert all(Path(site["file"]) == script for k in data["kernels"] for site in k["sites"])
    product = next(k for k in data["kernels"] if any(s["line"] == 6 for s in k["sites"]))
    assert product["runs"] == 1 and product["nanoseconds"] > 0 and "mul" in product["operations"]
    text = weft("explain", script).stdout
    assert "line 6" in text and "schedule 0" in text


def test_why_it_is_stored(script: Path) -> None:
    data = explained("--why", 6, script)
    decided = [d for d in data["decisions"] if d["what"] == "stored"]
    assert decided and decided[0]["why"] == "a contraction is faster alone"
    text = weft("explain", "--why", "program.py:6", script).stdout
    assert "stored, because a contraction is faster alone" in text


def test_why_two_kernels(script: Path) -> None:
    data = explained("--why", 7, script)
    pairs = [d for d in data["decisions"] if d["what"] == "two kernels"]
    assert pairs and pairs[0]["why"] == "one reads what the other makes"


def test_why_it_is_copied(script: Path) -> None:
    data = explained("--why", 12, script)
    assert data["copies"] and "old content is still in use" in data["copies"][0]["why"]


def test_why_it_is_compiled_again(script: Path) -> None:
    reasons = [m["why"] for m in explained("--why", 16, script)["compiled"]]
    assert any("scalar" in why for why in reasons), reasons
    assert "no graph of this structure" in reasons[0]


def test_one_kernel_at_a_stage(script: Path) -> None:
    assert weft("explain", "--kernel", 0, script).stdout.count("kernel 0: ") == 1
    for stage in ("transform", "inline buffers", "plan memory", "vectorize", "kernel", "source"):
        assert len(weft("explain", "--kernel", 0, "--stage", stage, script).stdout) > 40, stage
    assert "a stage is kernel, source, or one of" in weft("explain", "--stage", "none", script, code=1).stderr
    assert "kernels, from 0; not 99" in weft("explain", "--kernel", 99, script, code=1).stderr


def test_a_script_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text("from weft import Tensor\n(Tensor([1.0, 2.0]) * 2).realize()\nraise KeyError('here')\n")
    done = weft("explain", path, code=1)
    assert "KeyError: 'here'" in done.stderr and "kernel" in done.stdout and "_explain.py" not in done.stderr
    assert weft("run", path, code=1).stderr.count("KeyError") == 2  # the line, and the error
    assert "there is no file" in weft("run", tmp_path / "missing.py", code=1).stderr


def test_devices_and_doctor() -> None:
    entries = answer("devices", "--json", "--verbose")
    assert [e["name"] for e in entries if e["default"]] and any(e.get("machine") for e in entries)
    assert "CPU" in weft("devices").stdout
    checks = {c["name"]: c for c in answer("doctor", "--json")}
    assert checks["a kernel"]["good"] and "cache on disk" in checks
    assert "ok      a kernel" in weft("doctor").stdout


def test_cache(tmp_path: Path, script: Path) -> None:
    cache = tmp_path / "cache"
    assert answer("cache", "info", "--json", cache=cache)["entries"] == 0
    weft("run", script, cache=cache)
    filled = answer("cache", "info", "--json", cache=cache)
    assert filled["entries"] > 0 and filled["folder"] == str(cache)
    assert answer("cache", "clear", "--json", cache=cache)["removed"] == filled["entries"]
    assert "0 entries" in weft("cache", "info", cache=cache).stdout


def test_bench() -> None:
    rows = answer("bench", "--json")
    assert {r["case"] for r in rows} >= {"a + b", "a @ b"} and all(r["weft_us"] > 0 for r in rows)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    text = weft("completion", shell).stdout
    assert all(word in text for word in ("explain", "viz", "reduce", "clear")) and "measure" in text
    assert json.loads(weft("completion", "--json", shell).stdout)["script"] == text


def test_bash_completes() -> None:
    def completed(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        script = f"{weft('completion', 'bash').stdout}\nCOMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n_weft\n" \
                 "printf '%s\\n' \"${COMPREPLY[@]}\""
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert completed("weft", "exp") == ["explain"]
    assert completed("weft", "explain", "--me") == ["--measure"]
    assert completed("weft", "cache", "") == ["info", "clear"] or set(completed("weft", "cache", "")) >= {"info", "clear"}


def test_wrong_calls() -> None:
    for wrong in ((), ("nothing",), ("cache",), ("explain",)):
        assert "usage: weft" in weft(*wrong, code=2).stderr
    assert "explain" in weft("--help").stdout and "--why" in weft("explain", "--help").stdout


def test_debug_2_shows_lines(script: Path) -> None:
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True,
                          env={**os.environ, "WEFT_DEBUG": "2", "WEFT_DEVICE": "CPU"})
    assert any("weft: run " in line and "program.py:6" in line for line in done.stderr.splitlines())
