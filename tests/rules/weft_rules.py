"""Runs the program weft_rules of the build under test."""

import json
import os
import pathlib
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build/release")).resolve()
PROGRAM = BUILD / "bin/weft_rules"


def text(*arguments: str) -> str:
    if not PROGRAM.exists():
        raise FileNotFoundError(f"{PROGRAM} is not built: `make build` makes it")
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


def parsed(*arguments: str) -> Any:
    return json.loads(text(*arguments))
