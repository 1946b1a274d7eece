"""What PyTorch calls when it finds device weft among its backends: `device="weft"` then needs no import of its own.

PyTorch does not import where a backend fails to load, so one that this package has not, or not for this PyTorch, is
passed over with a word.
"""
from __future__ import annotations

import importlib
import importlib.util
import warnings


def autoload() -> None:
    if importlib.util.find_spec("weft.torch._C") is None:
        return
    try:
        importlib.import_module("weft.torch")
    except ImportError as error:
        warnings.warn(f"device weft is left out: {error}", stacklevel=2)
