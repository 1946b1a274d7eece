"""The example programs in C++ end well and print what they should."""

import os
import pathlib
import subprocess

import pytest
import weft

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(weft.__file__).parents[2] / "bin"
EXPECTED = {
    "views": "120, then 532\ncolumn 0: 0 5 12 12\nkernels of a loop of 1,000 writes: 1\n",
    "train": "at last    loss 0.00",
}


@pytest.mark.parametrize("path", sorted((ROOT / "examples/cpp").glob("*.cpp")), ids=lambda p: p.stem)
def test_example(path: pathlib.Path) -> None:
    program = PROGRAMS / f"example_{path.stem}"
    if not program.exists():
        pytest.skip("the examples are not built")
    done = subprocess.run([program], env={**os.environ, "WEFT_DEVICE": "CPU"}, timeout=300, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert EXPECTED[path.stem] in done.stdout
