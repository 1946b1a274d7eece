"""The example programs learn what they should, on the CPU."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

import weft

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "python"


def output(name: str, *arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, FOLDER / name, *arguments], env={**os.environ, "WEFT_DEVICE": "CPU"}, timeout=600,
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


def test_filters_through_views_are_those_of_numpy(tmp_path: pathlib.Path) -> None:
    lines = output("image_filter.py", "--output", str(tmp_path / "out.pgm"))
    assert "256 x 256 pixels, 0 kernels before" in lines[0]
    assert (tmp_path / "out.pgm").read_bytes().startswith(b"P5\n256 256\n255\n")


def test_physics_is_that_of_numpy() -> None:
    lines = [line for line in output("physics.py", "--size", "48", "--steps", "12") if "steps of 48 x 48" in line]
    assert [line.split(":")[0] for line in lines] == ["heat", "waves", "life"]


def test_a_kernel_of_ones_own() -> None:
    [line] = output("own_kernel.py")
    assert "its gradient by" in line


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_residual_network_of_pytorch() -> None:
    if not list((pathlib.Path(weft.__file__).parent / "torch").glob("_C.*")):
        pytest.skip("the build has no weft.torch")
    lines = output("resnet.py", "--steps", "4", "--batch", "16")
    assert losses(lines)[0] > 1.5 and "unseen digits are right, on weft" in lines[-1]


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


def test_the_tour_in_short(tmp_path: pathlib.Path) -> None:
    lines = output("tour.py", "--short", "--page", str(tmp_path / "tour.html"))
    text = "\n".join(lines)
    assert "0 kernels have run" in text and "unseen digits are right" in text and "Beside NumPy" in text
    assert "weft-data" in (tmp_path / "tour.html").read_text()


def test_every_example_has_a_test() -> None:
    text = "".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    assert [path.name for path in FOLDER.glob("*.py") if not re.search(rf'["/]{path.name}"', text)] == []


def test_every_example_has_a_line_in_the_readme() -> None:
    text = (FOLDER.parents[1] / "README.md").read_text()
    examples = [*FOLDER.glob("*.py"), *(FOLDER.parent / "cpp").glob("*.cpp")]
    assert [path.name for path in examples if f"{path.parent.name}/{path.name}" not in text] == []
