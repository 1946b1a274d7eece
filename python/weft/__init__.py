"""weft, a tensor compiler."""

from weft import dtypes, errors, ir
from weft.errors import IndexError as IndexError  # not in __all__: `import *` must not hide Python's
from weft.errors import (
    DTypeError,
    Error,
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
    "InternalError",
    "ParseError",
    "RewriteLoopError",
    "ShapeError",
    "SpecError",
    "dtypes",
    "errors",
    "ir",
]
