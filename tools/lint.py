#!/usr/bin/env python3
"""Checks the sources with the pinned clang-format, clang-tidy and mypy.

    tools/lint.py [--build build/release] [--check-format | --fix-format] [--changed | file ...]

With files, clang-format and clang-tidy look at those alone. With --changed, clang-tidy looks at the MOST files that
changed last, of those that differ from what stood DAYS before the last commit: some minutes of work, however much changed.
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
DAYS = 2
MOST = 80
PROGRESS = 50  # files between two lines that say how far it is
BIN = pathlib.Path(sys.executable).parent


def sources(chosen: list[pathlib.Path]) -> list[pathlib.Path]:
    """The C++ files: those chosen, or all."""
    found = [p for folder in FOLDERS for s in ("h", "cpp") for p in (ROOT / folder).rglob(f"*.{s}")]
    return sorted(set(found) & {p.resolve() for p in chosen} if chosen else found)


def changed(files: list[pathlib.Path]) -> list[pathlib.Path]:
    """The MOST sources that changed last, of those that differ from the last commit of DAYS ago; all where git cannot say."""
    def git(*arguments: str) -> list[str]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    try:
        last = int(git("log", "-1", "--format=%ct")[0])
        base = git("rev-list", "-1", f"--before={last - DAYS * 86400}", "HEAD")
        if not base:
            return files
        names = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
        names += git("log", "--format=", "--name-only", f"{base[0]}..HEAD")
    except (OSError, subprocess.CalledProcessError, IndexError):
        return files
    tidied = {f for f in files if f.suffix == ".cpp"}
    return sorted([f for name in dict.fromkeys(names) if (f := ROOT / name) in tidied][:MOST])


def clang_format(files: list[pathlib.Path], *options: str) -> bool:
    return not files or subprocess.run([BIN / "clang-format", *options, *files]).returncode == 0


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
        if result.returncode != 0:
            print(f"  {file.relative_to(ROOT)}\n{result.stdout.strip() or result.stderr}", flush=True)
        return result.returncode == 0

    good = True
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, ok in enumerate(pool.map(tidy, files), 1):
            good &= ok
            if done % PROGRESS == 0 or done == len(files):
                print(f"  clang-tidy: {done} of {len(files)} files", flush=True)
    return good


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
    parser.add_argument("--changed", action="store_true", help="clang-tidy on the files that changed alone")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    files = sources(arguments.files)

    if arguments.fix_format:
        return 0 if clang_format(files, "-i") else 1
    good = clang_format(files, "--dry-run", "-Werror")
    if not arguments.check_format:
        build = arguments.build.resolve()
        good = clang_tidy(changed(files) if arguments.changed else files, build) and good
        good = mypy(build) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
