"""weft, a tensor compiler."""

from weft import dtypes, errors, ir
from weft.errors import (
    DTypeError,
    Error,
    IndexError,
    InternalError,
    ParseError,
    RewriteLoopError,
    ShapeError,
    SpecError,
)

__version__ = "0.1.0"

__all__ = [
    "DTypeError",
    "Error",
    "IndexError",
    "InternalError",
    "ParseError",
    "RewriteLoopError",
    "ShapeError",
    "SpecError",
    "dtypes",
    "errors",
    "ir",
]
