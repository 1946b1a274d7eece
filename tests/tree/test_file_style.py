"""What every source file keeps to: its length, a first comment, and no switch over ops."""

import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ["include", "src", "python", "torch", "tools", "tests", "bench"]
MOST_LINES = 600
SWITCH_OVER_OPS = re.compile(r"\bswitch\s*\(.*\bop(code)?\b")
MAY_SWITCH = ("src/ir/", "src/render/")


def files(root: pathlib.Path, *suffixes: str) -> Iterator[tuple[str, list[str]]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text().splitlines()


def too_long(root: pathlib.Path) -> list[str]:
    return [f"{name}: {len(lines)} lines, at most {MOST_LINES}"
            for name, lines in files(root, ".h", ".cpp", ".def", ".py", ".js", ".cu")
            if len(lines) > MOST_LINES]


def without_first_comment(root: pathlib.Path) -> list[str]:
    return [f"{name}: does not begin with a comment that says what it is"
            for name, lines in files(root, ".h", ".cpp", ".def")
            if not (lines and lines[0].startswith(("//", "/*")))]


def switches_over_ops(root: pathlib.Path) -> list[str]:
    return [f"{name}:{number}: a switch over ops; make it a column of ops.def or a rule table"
            for name, lines in files(root, ".h", ".cpp") if not name.startswith(MAY_SWITCH)
            for number, line in enumerate(lines, 1) if SWITCH_OVER_OPS.search(line)]


def test_files_are_short() -> None:
    assert too_long(ROOT) == []


def test_files_say_what_they_are() -> None:
    assert without_first_comment(ROOT) == []


def test_ops_are_switched_over_in_their_rooms_only() -> None:
    assert switches_over_ops(ROOT) == []


def test_the_checks_find_faults(tmp_path: pathlib.Path) -> None:
    for folder in ["ir", "codegen"]:
        (tmp_path / "src" / folder).mkdir(parents=True)
    (tmp_path / "src/ir/print.cpp").write_text("// Prints.\nswitch (u->op()) {\n")
    (tmp_path / "src/codegen/lower.cpp").write_text("#include <vector>\nswitch (u->op()) {\n")
    (tmp_path / "src/codegen/long.cpp").write_text("// Long.\n" * (MOST_LINES + 1))
    assert [f.split(":")[0] for f in too_long(tmp_path)] == ["src/codegen/long.cpp"]
    assert [f.split(":")[0] for f in without_first_comment(tmp_path)] == ["src/codegen/lower.cpp"]
    assert [f.split(":")[0] for f in switches_over_ops(tmp_path)] == ["src/codegen/lower.cpp"]
