#!/usr/bin/env python3
"""Checks the sources with the pinned clang-format, clang-tidy and mypy.

    tools/lint.py [--build build/release] [--check-format | --fix-format] [--torch-one-in N] [file ...]

With files, clang-format and clang-tidy look at those alone.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ["include", "src", "python", "torch", "tools", "tests", "bench"]
BIN = pathlib.Path(sys.executable).parent


def sources(chosen: list[pathlib.Path]) -> list[pathlib.Path]:
    """The C++ files: those chosen, or all."""
    found = [p for folder in FOLDERS for s in ("h", "cpp") for p in (ROOT / folder).rglob(f"*.{s}")]
    return sorted(set(found) & {p.resolve() for p in chosen} if chosen else found)


def clang_format(files: list[pathlib.Path], *options: str) -> bool:
    return not files or subprocess.run([BIN / "clang-format", *options, *files]).returncode == 0


def git(*arguments: str) -> str:
    """What git prints; nothing where the sources are not a checkout."""
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout


def part_of_torch(files: list[pathlib.Path], one_in: int) -> list[pathlib.Path]:
    """The files without most of torch/: of it stay those that the working tree or the last ten commits changed, and of
    the others one in so many, another part for each commit."""
    changed = {line[3:] for line in git("status", "--porcelain", "--untracked-files=all").splitlines()}
    changed |= set(git("log", "-10", "--name-only", "--format=").splitlines())
    part = int(git("rev-parse", "HEAD") or "0", base=16)
    torch = [f for f in files if ROOT / "torch" in f.parents and f.suffix == ".cpp"]
    left_out = {f for i, f in enumerate(torch) if (i + part) % one_in != 0 and str(f.relative_to(ROOT)) not in changed}
    return [f for f in files if f not in left_out]


def without_precompiled(command: dict[str, str]) -> dict[str, object]:
    """A command of CMake's list without the header that g++ has compiled before: clang would read all of its text."""
    arguments = shlex.split(command["command"])
    for i, argument in enumerate(arguments):
        if argument.endswith("/cmake_pch.hxx") and arguments[i - 1] == "-include":
            del arguments[i - 1:i + 1]
            break
    return {"directory": command["directory"], "file": command["file"], "arguments": arguments}


def clang_tidy(files: list[pathlib.Path], build: pathlib.Path) -> bool:
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {pathlib.Path(c["file"]) for c in commands}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([without_precompiled(c) for c in commands]))
        return tidy_all([f for f in files if f in compiled], pathlib.Path(folder))


def tidy_all(files: list[pathlib.Path], commands: pathlib.Path) -> bool:
    def tidy(file: pathlib.Path) -> bool:
        result = subprocess.run([BIN / "clang-tidy", "-p", commands, "--quiet", "--warnings-as-errors=*", file],
                                capture_output=True, text=True)
        print(f"  {file.relative_to(ROOT)}", result.stdout.strip(), sep="\n" if result.stdout.strip() else "", flush=True)
        if result.returncode != 0 and not result.stdout:
            print(result.stderr, flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return all(list(pool.map(tidy, files)))


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
    parser.add_argument("--torch-one-in", type=int, default=1, metavar="N",
                        help="of torch/, clang-tidy looks at what changed of late and at one file in N")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.torch_one_in < 1:
        parser.error("--torch-one-in: at least 1")
    files = sources(arguments.files)

    if arguments.fix_format:
        return 0 if clang_format(files, "-i") else 1
    good = clang_format(files, "--dry-run", "-Werror")
    if not arguments.check_format:
        build = arguments.build.resolve()
        good = clang_tidy(part_of_torch(files, arguments.torch_one_in), build) and good
        good = mypy(build) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
