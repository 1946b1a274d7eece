"""Rooms hold in the linker: each library of a room links with those before it alone."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build/release"))
ROOMS = re.search(r"set\(rooms (.*)\)", (ROOT / "CMakeLists.txt").read_text()).group(1).split()  # type: ignore[union-attr]


def undefined(room: str, before: list[str]) -> list[str]:
    """The functions that a room calls and neither has nor finds in those before it."""
    archives = [f"{BUILD}/lib/libweft_{name}.a" for name in before]
    command = ["c++", "-shared", "-o", os.devnull, "-Wl,--no-undefined", "-Wl,--demangle", "-Wl,--whole-archive",
               f"{BUILD}/lib/libweft_{room}.a", "-Wl,--no-whole-archive", *archives, "-lfmt", "-ldl", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = sorted(set(re.findall(r"undefined reference to `(.*)'", done.stderr)))
    assert found or done.returncode == 0, done.stderr
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_needs_only_those_before_it(room: str) -> None:
    if shutil.which("c++") is None or not (BUILD / f"lib/libweft_{room}.a").exists():
        pytest.skip("no compiler, or no build")
    assert undefined(room, ROOMS[:ROOMS.index(room)][::-1]) == []


def test_a_room_cannot_do_without_those_before_it() -> None:
    if shutil.which("c++") is None or not (BUILD / "lib/libweft_rewrite.a").exists():
        pytest.skip("no compiler, or no build")
    assert any("weft::" in name for name in undefined("rewrite", ["base"]))
