"""weft, a tensor compiler.

>>> from weft import Tensor
>>> a = Tensor([[1.0, 2.0], [3.0, 4.0]])
>>> row, total = a[0], a.sum()  # nothing runs yet: row is a view of a, total keeps these values
>>> row *= 10
>>> a.tolist(), total.item()
([[10.0, 20.0], [3.0, 4.0]], 10.0)

`Tensor` is an array that is lazy and behaves as if it were not, `dtypes` has the types of elements,
`counters` says what was run, and `weft.ir` is the compiler's inside.
"""

import os as _os
import sys as _sys

from weft import _core, array_api, dtypes, errors, ir, nn
from weft._check import check
from weft._core import Tensor, counters, from_dlpack, set_beam, set_package_path as _set_package_path
from weft._custom_kernel import custom_kernel
from weft._device import Device
from weft._function import Saved, function
from weft._grad import enable_grad, no_grad
from weft._jit import jit
from weft._notebook import show_in_notebooks as _show_in_notebooks
from weft._variable import BoundVariable, Variable
from weft.errors import IndexError as IndexError  # not in __all__: `import *` must not hide Python's
from weft.errors import (
    CheckError,
    CompileError,
    DeviceError,
    DTypeError,
    Error,
    FileFormatError,
    InternalError,
    JitError,
    OutOfMemoryError,
    ParseError,
    RewriteLoopError,
    ShapeError,
    SpecError,
    StateDictError,
    UnsafeFileError,
)

__version__ = "0.1.0"

_show_in_notebooks()
_core.set_package_folder(_os.path.join(_os.path.dirname(__file__), ""))
_set_package_path(":".join(folder for folder in _sys.path if folder))  # wgpu's package has a library in it

if _os.environ.get("WEFT_VIZ", "0") not in ("", "0"):  # at the end of this process, its page
    from weft.viz import watch_process as _watch_process

    _watch_process(_os.environ["WEFT_VIZ"])

__all__ = [
    "BoundVariable",
    "CheckError",
    "CompileError",
    "DTypeError",
    "Device",
    "DeviceError",
    "Error",
    "FileFormatError",
    "InternalError",
    "JitError",
    "OutOfMemoryError",
    "ParseError",
    "RewriteLoopError",
    "Saved",
    "ShapeError",
    "SpecError",
    "StateDictError",
    "Tensor",
    "UnsafeFileError",
    "Variable",
    "array_api",
    "check",
    "counters",
    "custom_kernel",
    "dtypes",
    "enable_grad",
    "errors",
    "from_dlpack",
    "function",
    "ir",
    "jit",
    "nn",
    "no_grad",
    "set_beam",
]
