"""Includes point one way: a file of src/<room> sees only its own room and those before it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROOMS = ["base", "ir", "rewrite", "symbolic", "schedule", "codegen", "render", "runtime", "value",
         "engine", "tensor"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path: pathlib.Path) -> list[tuple[int, str, str]]:
    """(line number, opening quote, included path) of each include in the file."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            found.append((number, match[1], match[2]))
    return found


def include_faults(root: pathlib.Path) -> list[str]:
    faults = []

    def fault(path: pathlib.Path, number: int, text: str) -> None:
        faults.append(f"{path.relative_to(root)}:{number}: {text}")

    for path in sorted((root / "src").rglob("*.*")):
        if path.suffix not in (".h", ".cpp", ".def"):
            continue
        room = path.relative_to(root / "src").parts[0]
        if room not in ROOMS:
            faults.append(f"{path.relative_to(root)}: {room} is no room of src/")
            continue
        for number, quote, name in includes(path):
            target = name.split("/")[0]
            if quote == "<":
                if target in ROOMS:
                    fault(path, number, f'write "{name}" for a header of weft')
            elif target == "weft":
                continue  # a public header
            elif target not in ROOMS or "/" not in name:
                fault(path, number, f'"{name}" is not written as "room/file.h"')
            elif not (root / "src" / name).is_file():
                fault(path, number, f'"{name}" does not exist')
            elif ROOMS.index(target) > ROOMS.index(room):
                fault(path, number, f"{room} may not include {target}, which comes after it")

    for path in sorted((root / "include").rglob("*.h")):
        for number, _, name in includes(path):
            if name.split("/")[0] in ROOMS:
                fault(path, number, f'a public header may not include the private "{name}"')
    return faults


def test_the_tree_keeps_the_order() -> None:
    assert include_faults(ROOT) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        ("src/ir/a.h", '#include "symbolic/b.h"', "ir may not include symbolic"),
        ("src/base/deep/a.cpp", '#  include "ir/b.h"', "base may not include ir"),
        ("src/ir/a.h", '#include "b.h"', "not written as"),
        ("src/ir/a.h", '#include "../base/b.h"', "not written as"),
        ("src/ir/a.h", '#include <base/b.h>', "for a header of weft"),
        ("src/ir/a.h", '#include "base/absent.h"', "does not exist"),
        ("src/attic/a.h", '#include "base/b.h"', "no room"),
        ("include/weft/a.h", '#include "ir/b.h"', "public header"),
        ("src/ir/a.h", '#include "base/b.h"', None),
        ("src/symbolic/a.h", '#include "symbolic/b.h"', None),
        ("src/tensor/a.h", '#include <weft/tensor.h>', None),
    ],
)
def test_the_check_finds(tmp_path: pathlib.Path, file: str, line: str, fault: str | None) -> None:
    for path in [file, "src/base/b.h", "src/ir/b.h", "src/symbolic/b.h"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("// A header.\n")
    (tmp_path / file).write_text(f"// A file.\n#include <vector>\n{line}\n")
    faults = include_faults(tmp_path)
    if fault is None:
        assert faults == []
    else:
        assert len(faults) == 1 and file in faults[0] and fault in faults[0]
