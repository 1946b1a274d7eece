"""What must not compile does not, and says why in few words.

The first line of each .cpp file here is `// expect: text`, a part of the compiler's message.
control*.cpp are the same kind of code without the mistake: they compile.
"""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = sorted(HERE.glob("*.cpp"))
CONTROLS = [s for s in SOURCES if s.name.startswith("control")]
FAILING = [s for s in SOURCES if s not in CONTROLS]
MOST_LINES = 60  # of a message that a person reads to its end


def compile_only(source: pathlib.Path) -> subprocess.CompletedProcess[str]:
    flags = ["-std=c++20", "-fsyntax-only", "-DFMT_HEADER_ONLY", f"-I{ROOT}/src", f"-I{ROOT}/include"]
    return subprocess.run(
        [os.environ.get("CXX", "g++"), *flags, source],
        capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"},
    )


@pytest.mark.parametrize("source", CONTROLS, ids=lambda s: s.stem)
def test_control_compiles(source: pathlib.Path) -> None:
    result = compile_only(source)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("source", FAILING, ids=lambda s: s.stem)
def test_mistake_is_explained(source: pathlib.Path) -> None:
    first = source.read_text().splitlines()[0]
    assert first.startswith("// expect: "), f"{source.name} lacks its first line `// expect: text`"
    result = compile_only(source)
    assert result.returncode != 0, f"{source.name} compiles"
    assert first.removeprefix("// expect: ").strip() in result.stderr
    assert len(result.stderr.splitlines()) <= MOST_LINES, result.stderr


def test_failing_files_have_a_control() -> None:
    assert not FAILING or CONTROLS
