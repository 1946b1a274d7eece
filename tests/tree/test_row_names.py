"""Rows of calls have names of their own: what WEFT_DEBUG and errors print is one function."""

from __future__ import annotations

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
ROW = re.compile(r'\brow(?:<[\w:<>]+>)?\(\s*"(\w*)"')


def names() -> dict[str, list[str]]:
    """Where each name stands."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for folder in (ROOT / "src", ROOT / "torch" / "src"):
        for path in sorted([*folder.rglob("*.h"), *folder.rglob("*.cpp")]):
            text = "\n".join(line.split("//")[0] for line in path.read_text().splitlines())
            for name in ROW.findall(text):
                found[name].append(path.name)
    return found


def test_names_are_unique() -> None:
    found = names()
    assert len(found) > 100
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
