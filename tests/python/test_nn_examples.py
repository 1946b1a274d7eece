"""The example programs learn what they should, on the CPU."""

import os
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "python"


def output(name: str) -> list[str]:
    done = subprocess.run([sys.executable, FOLDER / name], env={**os.environ, "WEFT_DEVICE": "CPU"}, timeout=600,
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def losses(lines: list[str]) -> list[float]:
    return [float(number) for line in lines for number in re.findall(r"loss ([\d.]+)", line)]


def test_digits() -> None:
    lines = output("digits.py")
    first, *_, last = losses(lines)
    assert first > 1.5 and last < 0.5
    assert int(lines[-1].split("%")[0]) >= 90


def test_characters() -> None:
    lines = output("characters.py")
    first, *_, last = losses(lines)
    assert first > 2.5 and last < 0.2
    assert lines[-1].strip() == "the quick brown fox jumps over the lazy dog."


def test_every_example_has_a_test() -> None:
    text = pathlib.Path(__file__).read_text()
    assert all(f'"{path.name}"' in text for path in FOLDER.glob("*.py"))
