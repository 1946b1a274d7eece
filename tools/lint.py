#!/usr/bin/env python3
"""Checks the sources with the pinned clang-format, clang-tidy and mypy.

    tools/lint.py [--build build/release] [--check-format | --fix-format] [file ...]

With files, clang-format and clang-tidy look at those alone; without, clang-tidy leaves out torch/.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ["include", "src", "python", "torch", "tools", "tests", "bench"]
BIN = pathlib.Path(sys.executable).parent


def sources(chosen: list[pathlib.Path]) -> list[pathlib.Path]:
    """The C++ files: those chosen, or all."""
    found = [p for folder in FOLDERS for s in ("h", "cpp") for p in (ROOT / folder).rglob(f"*.{s}")]
    return sorted(set(found) & {p.resolve() for p in chosen} if chosen else found)


def clang_format(files: list[pathlib.Path], *options: str) -> bool:
    return not files or subprocess.run([BIN / "clang-format", *options, *files]).returncode == 0


def clang_tidy(files: list[pathlib.Path], build: pathlib.Path, is_chosen: bool) -> bool:
    compiled = {pathlib.Path(c["file"]) for c in json.loads((build / "compile_commands.json").read_text())}
    # PyTorch's headers alone take a quarter of a minute each: files of torch/ are looked at when they are named.
    todo = [f for f in files if f in compiled and (is_chosen or ROOT / "torch" not in f.parents)]

    def tidy(file: pathlib.Path) -> bool:
        result = subprocess.run([BIN / "clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", file],
                                capture_output=True, text=True)
        print(f"  {file.relative_to(ROOT)}", result.stdout.strip(), sep="\n" if result.stdout.strip() else "", flush=True)
        if result.returncode != 0 and not result.stdout:
            print(result.stderr, flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return all(list(pool.map(tidy, todo)))


def mypy(build: pathlib.Path) -> bool:
    package = build / "python"
    if not (package / "weft").exists():
        return True
    return subprocess.run([sys.executable, "-m", "mypy", "-p", "weft"], cwd=ROOT,
                          env={**os.environ, "MYPYPATH": str(package)}).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--check-format", action="store_true", help="clang-format alone")
    parser.add_argument("--fix-format", action="store_true", help="rewrite the files with clang-format")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    files = sources(arguments.files)

    if arguments.fix_format:
        return 0 if clang_format(files, "-i") else 1
    good = clang_format(files, "--dry-run", "-Werror")
    if not arguments.check_format:
        build = arguments.build.resolve()
        good = clang_tidy(files, build, bool(arguments.files)) and good
        good = mypy(build) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
