"""The dtypes by name, sets of them, what is asked about them, and the ones of Python's numbers.

>>> from weft import Tensor, dtypes
>>> dtypes.float32.bits, dtypes.float32 in dtypes.floats, dtypes.half, dtypes.is_unsigned(dtypes.uchar)
(32, True, dtypes.float16, True)
>>> dtypes.default_float = dtypes.float64  # of Python's floats, and of what creates floats without a dtype
>>> Tensor([1.5]).dtype, (Tensor([1]) / 2).dtype, Tensor.rand(2).dtype
(dtypes.float64, dtypes.float64, dtypes.float64)
>>> dtypes.default_float = dtypes.float32
"""

from __future__ import annotations

import builtins as _builtins
import sys as _sys
import types as _types

from weft import _core
from weft._core import DType

void = DType("void")
bool = DType("bool")
int8 = char = DType("int8")
int16 = short = DType("int16")
int32 = int = DType("int32")
int64 = long = DType("int64")
uint8 = uchar = DType("uint8")
uint16 = ushort = DType("uint16")
uint32 = uint = DType("uint32")
uint64 = ulong = DType("uint64")
float8_e4m3 = fp8e4m3 = DType("float8_e4m3")
float8_e5m2 = fp8e5m2 = DType("float8_e5m2")
float16 = half = DType("float16")
bfloat16 = DType("bfloat16")
float32 = float = DType("float32")
float64 = double = DType("float64")
index = DType("index")  # exact integers for sizes and offsets

signed_ints = sints = (int8, int16, int32, int64)
unsigned_ints = uints = (uint8, uint16, uint32, uint64)
ints = signed_ints + unsigned_ints
fp8s = (float8_e4m3, float8_e5m2)
floats = (*fp8s, float16, bfloat16, float32, float64)
all = (bool, *ints, *floats, index)

# What Python's numbers are where nothing says otherwise. These two can be set; see _Dtypes.
default_float: DType
default_int: DType


def is_float(dtype: DType) -> _builtins.bool:
    return dtype.is_float


def is_int(dtype: DType) -> _builtins.bool:
    """Signed or unsigned; bool is none."""
    return dtype.is_int


def is_unsigned(dtype: DType) -> _builtins.bool:
    return dtype.is_unsigned


def is_bool(dtype: DType) -> _builtins.bool:
    return dtype.is_bool


def fields() -> dict[str, DType]:
    """Those that a tensor can have, by all of their names.

    >>> dtypes.fields()["int8"], dtypes.fields()["half"], len(set(dtypes.fields().values()))
    (dtypes.int8, dtypes.float16, 15)
    """
    return {name: value for name, value in globals().items()
            if isinstance(value, DType) and not value.is_void and not value.is_index and not name.startswith("default")}


def min(dtype: DType) -> _builtins.int | _builtins.float:
    """The least number of a dtype; minus infinity for a float."""
    return dtype.min


def max(dtype: DType) -> _builtins.int | _builtins.float:
    """The greatest number of a dtype; infinity for a float.

    >>> dtypes.max(dtypes.uint8), dtypes.min(dtypes.half)
    (255, -inf)
    """
    return dtype.max


def finfo(dtype: DType) -> tuple[_builtins.int, _builtins.int]:
    """The bits of a float's exponent, and of its mantissa.

    >>> dtypes.finfo(dtypes.float16)
    (5, 10)
    """
    if dtype not in _FLOAT_BITS:
        raise ValueError(f"[finfo] {dtype} is not a floating point type")
    return _FLOAT_BITS[dtype]


def from_py(value: object) -> DType:
    """The dtype that Tensor(value) has for Python's numbers, and lists of them.

    >>> dtypes.from_py([True, 2]), dtypes.from_py(2.5)
    (dtypes.int32, dtypes.float32)
    """
    if isinstance(value, (list, tuple)):
        kinds = [from_py(part) for part in value]
        return _builtins.max(kinds, key=lambda dtype: (dtype.is_float, dtype.is_int), default=_core.default_float())
    if isinstance(value, _builtins.bool):
        return bool
    if isinstance(value, (_builtins.int, _builtins.float)):
        return _core.default_int() if isinstance(value, _builtins.int) else _core.default_float()
    raise TypeError(f"[from_py] a number or a list of numbers is needed, not {type(value).__name__}")


_FLOAT_BITS = {float8_e4m3: (4, 3), float8_e5m2: (5, 2), float16: (5, 10), bfloat16: (8, 7), float32: (8, 23),
               float64: (11, 52)}


class _Dtypes(_types.ModuleType):
    @property
    def default_float(self) -> DType:
        """Of Python's floats, of functions of integers that give floats, of what creates floats without a dtype."""
        return _core.default_float()

    @default_float.setter
    def default_float(self, dtype: DType | str) -> None:
        _core.set_default_float(dtype)

    @property
    def default_int(self) -> DType:
        """Of Python's ints."""
        return _core.default_int()

    @default_int.setter
    def default_int(self, dtype: DType | str) -> None:
        _core.set_default_int(dtype)


_sys.modules[__name__].__class__ = _Dtypes
