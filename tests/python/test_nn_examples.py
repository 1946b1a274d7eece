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


CHECKED = """
import sys
sys.path.insert(0, {folder!r})
import characters, digits
from weft import Tensor, check, nn

def gradients(model, x, y):
    loss = model(x).reshape(-1, {kinds}).sparse_categorical_crossentropy(y.flatten())
    loss.backward()
    return loss, [p.grad for p in nn.state.get_parameters(model) if p.grad is not None]

Tensor.manual_seed(0)
with Tensor.train():
    loss, by = check(gradients, {model}, {x}, {y}, rtol=1e-3, atol=1e-4)
print(len(by))
"""


def checked(**parts: str) -> None:
    done = subprocess.run([sys.executable, "-c", CHECKED.format(folder=str(FOLDER), **parts)], timeout=600,
                          env={**os.environ, "WEFT_DEVICE": "CPU"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and int(done.stdout) > 4


def test_the_pictures_network_gives_what_the_reference_gives() -> None:
    checked(model="digits.Network()", x="digits.pictures(3, 1)[0]", y="digits.pictures(3, 1)[1]", kinds="10")


def test_the_characters_network_gives_what_the_reference_gives() -> None:
    checked(model="characters.GPT(7)", x="Tensor([[1, 2, 3, 4]])", y="Tensor([[2, 3, 4, 5]])", kinds="7")


def test_every_example_has_a_test() -> None:
    text = pathlib.Path(__file__).read_text()
    assert all(f'"{path.name}"' in text for path in FOLDER.glob("*.py"))
