"""The functions of the Python array API standard, 2023.12, on Tensors: what `x.__array_namespace__()` gives.

>>> xp = Tensor([1.0, 2.0]).__array_namespace__()
>>> xp.sum(xp.astype(xp.arange(4), xp.float64) ** 2).item()
14.0

`MISSING` names what is not here: complex numbers. Of the standard's attributes, `Tensor.size` is a method, as in PyTorch.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Union

from weft import dtypes
from weft._array_api_order import (
    UniqueAll, UniqueCounts, UniqueInverse, searchsorted, unique_all, unique_counts, unique_inverse, unique_values)
from weft._core import DType, Tensor, from_dlpack
from weft._device import Device as _devices

bool = dtypes.bool
int8, int16, int32, int64 = dtypes.signed_ints
uint8, uint16, uint32, uint64 = dtypes.unsigned_ints
float16, bfloat16, float32, float64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

__array_api_version__ = "2023.12"

MISSING = ("complex64", "complex128", "conj", "imag", "real")

Number = Union[builtins.bool, int, float]
Operand = Union[Tensor, Number]
Axis = Union[int, tuple[int, ...], None]
Device = Union[str, None]
Function = Callable[..., Tensor]


def _of_version(api_version: str | None) -> ModuleType:
    import weft.array_api as module

    if api_version not in (None, "2021.12", "2022.12", __array_api_version__):
        raise ValueError(f"[array_api] there is no version {api_version!r}; {__array_api_version__!r} is the newest")
    return module


# ---- creation

def asarray(obj: Any, /, *, dtype: DType | None = None, device: Device = None, copy: builtins.bool | None = None) -> Tensor:
    """A Tensor of a number, nested lists, an array or a Tensor, which is copied where it has to be, or as `copy` says."""
    if not isinstance(obj, Tensor):
        if copy is False:
            raise ValueError("[asarray] this becomes a Tensor in a copy alone, which copy=False forbids")
        return Tensor(obj, dtype=dtype, device=device)
    result = obj if device is None else obj.to(device)
    result = result if dtype is None else result.cast(dtype)
    same = result.shares_memory_with(obj)
    if copy is False and not same:
        raise ValueError("[asarray] another dtype or device takes a copy, which copy=False forbids")
    return result.clone() if copy and same else result


def arange(start: Number, /, stop: Number | None = None, step: Number = 1, *, dtype: DType | None = None,
           device: Device = None) -> Tensor:
    """start, start + step, ... before stop."""
    return Tensor.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Memory that nobody wrote."""
    return Tensor.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """All elements 0."""
    return Tensor.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """All elements 1."""
    return Tensor.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Number, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """All elements one number."""
    return Tensor.full(shape, fill_value, dtype=dtype, device=device)


def _like(name: str) -> Function:
    def function(x: Tensor, /, *, dtype: DType | None = None, device: Device = None) -> Tensor:
        result: Tensor = getattr(x, name)(dtype=dtype, device=device)
        return result

    return _named(function, name, f"Tensor.{name}: of the shape of x, and of its dtype and device where none is given.")


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


empty_like, zeros_like, ones_like = _like("empty_like"), _like("zeros_like"), _like("ones_like")


def full_like(x: Tensor, /, fill_value: Number, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """One number in the shape of x."""
    return x.full_like(fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Ones along diagonal k, else 0."""
    rows, columns = n_rows, n_rows if n_cols is None else n_cols
    row, column = Tensor.arange(rows, device=device).unsqueeze(1), Tensor.arange(columns, device=device)
    return (column - row == k).cast(float32 if dtype is None else dtype)


def linspace(start: Number, stop: Number, /, num: int, *, dtype: DType | None = None, device: Device = None,
             endpoint: builtins.bool = True) -> Tensor:
    """`num` numbers from start to stop, which is one of them where `endpoint` says so."""
    last = stop if endpoint or num == 0 else start + (stop - start) * (num - 1) / num
    return Tensor.linspace(start, last, num, dtype=dtype or float32, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Vectors as the coordinates of a grid."""
    return list(arrays[0].meshgrid(*arrays[1:], indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """0 above diagonal k."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """0 below diagonal k."""
    return x.triu(k)


# ---- dtypes

def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Device = None) -> Tensor:
    """x in another dtype."""
    return asarray(x, dtype=dtype, device=device, copy=True if copy else None)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x repeated to a shape: a view."""
    return x.expand(tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All in the shape that they broadcast to: views."""
    if not arrays:
        return []
    empty_sum = arrays[0].bool()
    for x in arrays[1:]:
        empty_sum = empty_sum | x.bool()
    return [x.expand(empty_sum.shape) for x in arrays]


def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The dtype that these meet in."""
    given = [x if isinstance(x, Tensor) else Tensor.empty(0, dtype=x) if isinstance(x, DType) else x
             for x in arrays_and_dtypes]
    tensors = [Tensor.empty(0, dtype=x.dtype) for x in given if isinstance(x, Tensor)]
    if not tensors:
        raise ValueError("[result_type] a Tensor or a DType is needed")
    total = tensors[0]
    for x in tensors[1:]:
        total = Tensor.where(total.bool(), total, x)
    for number in given:
        if not isinstance(number, Tensor):
            total = Tensor.where(total.bool(), total, number)
    return total.dtype


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether the dtype that both meet in is `to`."""
    try:
        return result_type(from_, to) == to
    except TypeError:
        return False


_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,), "signed integer": dtypes.signed_ints, "unsigned integer": dtypes.unsigned_ints,
    "integral": dtypes.ints, "real floating": dtypes.floats, "complex floating": (),
    "numeric": dtypes.ints + dtypes.floats,
}


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether a dtype is another one, or of a kind, such as "integral"."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"[isdtype] there is no kind {kind!r}; there are {', '.join(map(repr, _KINDS))}")
    return dtype in _KINDS[kind]





def finfo(type: DType | Tensor, /) -> Any:
    """The limits of a dtype of floats: bits, eps, max, min, smallest_normal, dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    digits, exponent = {float64: (52, 1023), float32: (23, 127), float16: (10, 15), bfloat16: (7, 127)}[dtype]
    most = math.ldexp(2 - math.ldexp(1, -digits), exponent)
    return SimpleNamespace(bits=dtype.bits, eps=math.ldexp(1, -digits), max=most, min=-most,
                           smallest_normal=math.ldexp(1, 1 - exponent), dtype=dtype)


def iinfo(type: DType | Tensor, /) -> Any:
    """The limits of a dtype of integers: bits, max, min, dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    if dtype not in dtypes.ints:
        raise ValueError(f"[iinfo] {dtype.name} is no dtype of integers")
    least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return SimpleNamespace(bits=dtype.bits, max=least + (1 << dtype.bits) - 1, min=least, dtype=dtype)


# ---- elementwise

def _unary(method: str, name: str | None = None) -> Function:
    def function(x: Tensor, /) -> Tensor:
        result: Tensor = getattr(x, method)()
        return result

    return _named(function, name or method, f"Tensor.{method}.")


def _binary(method: str, name: str | None = None, reverse: str | None = None) -> Function:
    def function(x1: Operand, x2: Operand, /) -> Tensor:
        if isinstance(x1, Tensor):
            result: Tensor = getattr(x1, method)(x2)
        elif reverse is not None:
            result = getattr(x2, reverse)(x1)
        else:
            assert isinstance(x2, Tensor)
            result = getattr(Tensor(x1, dtype=result_type(x2, x1), device=x2.device), method)(x2)
        return result

    return _named(function, name or method, f"Tensor.{method}.")


abs, acos, acosh, asin, asinh = _unary("abs"), _unary("acos"), _unary("acosh"), _unary("asin"), _unary("asinh")
atan, atanh, ceil, cos, cosh = _unary("atan"), _unary("atanh"), _unary("ceil"), _unary("cos"), _unary("cosh")
exp, expm1, floor, isfinite, isinf = _unary("exp"), _unary("expm1"), _unary("floor"), _unary("isfinite"), _unary("isinf")
isnan, log, log1p, log2, log10 = _unary("isnan"), _unary("log"), _unary("log1p"), _unary("log2"), _unary("log10")
logical_not, round, sign, sin, sinh = _unary("logical_not"), _unary("round"), _unary("sign"), _unary("sin"), _unary("sinh")
sqrt, square, tan, tanh, trunc = _unary("sqrt"), _unary("square"), _unary("tan"), _unary("tanh"), _unary("trunc")
negative, bitwise_invert = _unary("neg", "negative"), _unary("bitwise_not", "bitwise_invert")

add, subtract = _binary("__add__", "add", "__radd__"), _binary("__sub__", "subtract", "__rsub__")
multiply, divide = _binary("__mul__", "multiply", "__rmul__"), _binary("__truediv__", "divide", "__rtruediv__")
floor_divide, remainder = _binary("__floordiv__", "floor_divide", "__rfloordiv__"), _binary("__mod__", "remainder", "__rmod__")
pow, atan2 = _binary("__pow__", "pow", "__rpow__"), _binary("atan2")
bitwise_and, bitwise_or = _binary("__and__", "bitwise_and", "__rand__"), _binary("__or__", "bitwise_or", "__ror__")
bitwise_xor, hypot = _binary("__xor__", "bitwise_xor", "__rxor__"), _binary("hypot")
bitwise_left_shift, bitwise_right_shift = _binary("__lshift__", "bitwise_left_shift"), _binary("__rshift__", "bitwise_right_shift")
equal, not_equal = _binary("eq", "equal", "eq"), _binary("ne", "not_equal", "ne")
less, less_equal = _binary("lt", "less", "gt"), _binary("le", "less_equal", "ge")
greater, greater_equal = _binary("gt", "greater", "lt"), _binary("ge", "greater_equal", "le")
maximum, minimum = _binary("maximum", None, "maximum"), _binary("minimum", None, "minimum")
copysign, logaddexp = _binary("copysign"), _binary("logaddexp", None, "logaddexp")


def positive(x: Tensor, /) -> Tensor:
    """x."""
    return x.clone()


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign is negative, also that of 0 and of NaN."""
    return x.ones_like().copysign(x) < 0


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """No less than min, no more than max."""
    return x.clone() if min is None and max is None else x.clamp(min, max)


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether both are not 0."""
    return not_equal(x1, 0) & not_equal(x2, 0)


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether one is not 0."""
    return not_equal(x1, 0) | not_equal(x2, 0)


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether just one is not 0."""
    return not_equal(x1, 0) ^ not_equal(x2, 0)


# ---- manipulation

def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """One after the other along an axis; without one, of the flat arrays. Dtypes are promoted."""
    dtype = result_type(*arrays)
    parts = [x.cast(dtype) for x in arrays]
    if axis is None:
        parts, axis = [x.flatten() for x in parts], 0
    return parts[0].cat(*parts[1:], dim=axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Along a new axis. Dtypes are promoted."""
    dtype = result_type(*arrays)
    first, *more = (x.cast(dtype) for x in arrays)
    return first.stack(*more, dim=axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis: views."""
    return tuple(moveaxis(x, axis, 0))


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """A new axis of size 1."""
    return x.unsqueeze(axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Without these axes, which are of size 1."""
    axes = [a % x.ndim if -x.ndim <= a < x.ndim else a for a in ((axis,) if isinstance(axis, int) else axis)]
    for a in axes:
        if x.size(a) != 1:
            raise ValueError(f"[squeeze] axis {a} is of size {x.size(a)}; 1 is allowed")
    return x.reshape(tuple(s for i, s in enumerate(x.shape) if i not in axes))


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """These axes reversed, or all."""
    return x.flip(tuple(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Axes at other places: a view."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Axes in another order: a view."""
    return x.permute(axes)


def repeat(x: Tensor, repeats: int, /, *, axis: int | None = None) -> Tensor:
    """Every element so often."""
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape: a view where it can be one, or as `copy` says."""
    result = x.reshape(shape)
    same = result.shares_memory_with(x)
    if copy is False and not same:
        raise ValueError("[reshape] no view has this shape, and copy=False forbids a copy")
    return result.clone() if copy and same else result


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    """Elements moved along axes, around the end."""
    return x.roll(shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """All of it, so often along every axis."""
    return x.repeat((1,) * (x.ndim - len(repetitions)) + tuple(repetitions))


# ---- linear algebra

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices."""
    return x1 @ x2


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged: a view."""
    return x.transpose(-1, -2)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Products summed over pairs of axes."""
    pairs = (range(x1.ndim - axes, x1.ndim), range(axes)) if isinstance(axes, int) else axes
    first, second = [a % x1.ndim for a in pairs[0]], [a % x2.ndim for a in pairs[1]]
    free1, free2 = [a for a in range(x1.ndim) if a not in first], [a for a in range(x2.ndim) if a not in second]
    size = math.prod(x1.shape[a] for a in first)
    rows = x1.permute((*free1, *first)).reshape((math.prod(x1.shape[a] for a in free1), size))
    columns = x2.permute((*second, *free2)).reshape((size, math.prod(x2.shape[a] for a in free2)))
    return (rows @ columns).reshape(tuple(x1.shape[a] for a in free1) + tuple(x2.shape[a] for a in free2))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Products summed along an axis."""
    return (x1 * x2).sum(axis, dtype=result_type(x1, x2))


# ---- searching, sorting, statistics

def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The first place of the largest element."""
    return x.argmax(axis, keepdim=keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The first place of the smallest element."""
    return x.argmin(axis, keepdim=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places along each axis where elements are not 0; computes x."""
    return unstack(x.nonzero(), axis=1)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts at these places along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[take] of {x.ndim} axes one has to be named")
        axis = 0
    result: Tensor = x[(slice(None),) * (axis % x.ndim) + (indices,)]
    return result


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """x1 where the condition holds, else x2."""
    return condition.where(x1, x2)


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The places of the elements in order; equal ones keep theirs."""
    return x.argsort(axis, descending)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The elements in order."""
    return x.sort(axis, descending)[0]


def _reduction(name: str) -> Function:
    def function(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
        result: Tensor = getattr(x, name)(axis, keepdim=keepdims)
        return result

    return _named(function, name, f"Tensor.{name}.")


all, any, max, min, mean = (_reduction(name) for name in ("all", "any", "max", "min", "mean"))


def _sum_dtype(x: Tensor, dtype: DType | None) -> DType:
    """That of the elements; of narrow integers, that of their kind with 32 bits."""
    if dtype is not None:
        return dtype
    if x.dtype.is_float or x.dtype.bits >= 32:
        return x.dtype
    return uint32 if x.dtype.is_unsigned else int32


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Elements added."""
    return x.sum(axis, keepdim=keepdims, dtype=_sum_dtype(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Elements multiplied."""
    return x.prod(axis, keepdim=keepdims, dtype=_sum_dtype(x, dtype))


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """Squares of the distances to the mean, over their count less the correction."""
    return x.var(axis, keepdim=keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The square root of var."""
    return x.std(axis, keepdim=keepdims, correction=correction)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: builtins.bool = False) -> Tensor:
    """Sums of all elements so far, behind a 0 where `include_initial` says so."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[cumulative_sum] of {x.ndim} axes one has to be named")
        axis = 0
    axis = axis % x.ndim
    sums = x.cast(_sum_dtype(x, dtype)).cumsum(axis)
    return sums.pad(tuple((int(i == axis), 0) for i in range(x.ndim))) if include_initial else sums


# ---- inspection

class _Info:
    """What `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """Masks index, and shapes may depend on values: these are computed then."""
        return {"boolean indexing": True, "data-dependent shapes": True}

    def default_device(self) -> str:
        """Where tensors are made."""
        return Tensor.empty(0).device

    def devices(self) -> list[str]:
        """The default one; others by their name."""
        return [self.default_device()]

    def default_dtypes(self, *, device: Device = None) -> dict[str, DType]:
        """Of Python's numbers, and of places."""
        return {"real floating": float32, "integral": int32, "indexing": int32}

    def dtypes(self, *, device: Device = None, kind: Any = None) -> dict[str, DType]:
        """By name, those of a kind or all, that the device has."""
        names = (bool, *dtypes.ints, float32, float64)
        missing = _devices.missing_dtypes(device or "")
        return {t.name: t for t in names if t not in missing and (kind is None or isdtype(t, kind))}


def __array_namespace_info__() -> _Info:
    """Capabilities, devices and dtypes."""
    return _Info()


__all__ = sorted(name for name, value in globals().items() if not name.startswith("_") and not isinstance(value, ModuleType)
                 and name not in {"annotations", "Any", "Axis", "Callable", "DType", "Device", "Function", "Number", "Operand",
                                  "Sequence", "SimpleNamespace", "ModuleType", "Tensor", "Union", "dtypes"})
