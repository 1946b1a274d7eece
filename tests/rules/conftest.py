"""Lets the tests of this folder import prove, semantics, sexpr and weft_rules."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
