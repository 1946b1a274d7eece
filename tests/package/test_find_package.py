"""An installed weft is found by CMake, and compiles and runs with nothing of the tree."""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", HERE.parents[1] / "build/release")).resolve()


def run(*command: object, **environment: str) -> str:
    done = subprocess.run([str(c) for c in command], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if shutil.which("cmake") is None or not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("no CMake, or no build that it made")
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "cpp", "--prefix", prefix)
    return prefix


def test_a_project_outside_of_the_tree(prefix: pathlib.Path, tmp_path: pathlib.Path) -> None:
    source = shutil.copytree(HERE, tmp_path / "source")
    run("cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-G", "Ninja")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/uses_weft", WEFT_DEVICE="REF") == "118\n"


def test_each_public_header_stands_alone(prefix: pathlib.Path) -> None:
    headers = sorted((prefix / "include/weft").glob("*.h"))
    assert headers
    text = "".join(f'#include <weft/{h.name}>\n' for h in headers)
    for source in [text, *(f"#include <weft/{h.name}>\n" for h in headers if h.name != "weft.h")]:
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", prefix / "include",
                               "-x", "c++", "-"], input=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_library_says_its_version(prefix: pathlib.Path) -> None:
    names = {p.name for p in (prefix / "lib").rglob("libweft.so*")}
    assert names == {"libweft.so", "libweft.so.0", "libweft.so.0.1.0"}
