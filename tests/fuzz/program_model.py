"""Programs as pairs of texts, one for weft and one for NumPy, and what NumPy needs to be their model.

A tensor of weft is modelled by a true NumPy view of the memory that it would share in PyTorch; a new
tensor by a new array in row-major order. The functions of HELPERS are what a statement for NumPy may
call beside NumPy's own; a printed program carries those that it uses.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Statement(NamedTuple):
    """The same step for weft and for NumPy. Names of tensors are v0, v1, ... in both; at the end those
    of arrays read (n0, n1, ...) and of numbers read (s0, s1, ...) are compared."""

    weft: str
    numpy: str
    guards: tuple[str, ...] = ()  # hold in NumPy before the step, or the results may differ
    runs: bool = False  # may run kernels


Program = list[Statement]

# ------------------------------------------------------------------------------- helpers of NumPy's side


def new(x, dtype):
    """A new array in row-major order."""
    return np.array(x, dtype=dtype, order="C")


def memory(a):
    """All of the memory that a is a view of."""
    root = a
    while root.base is not None:
        root = root.base
    return root.reshape(-1).view(a.dtype)


def strided(a, shape, strides):
    """A view of a's memory from a's first element on; strides count elements."""
    return np.lib.stride_tricks.as_strided(a, shape, [s * a.itemsize for s in strides])


def strides_of(a):
    return [s // a.itemsize for s in a.strides]


def expanded(a, shape):
    lead = len(shape) - a.ndim
    ours = [0 if n == 1 else s for n, s in zip(a.shape, strides_of(a))]
    return strided(a, shape, [0] * lead + [s if shape[lead + i] == a.shape[i] else 0 for i, s in enumerate(ours)])


def unfolded(a, axis, size, step):
    shape, strides = list(a.shape), strides_of(a)
    shape[axis] = (shape[axis] - size) // step + 1
    return strided(a, [*shape, size], [s * step if i == axis else s for i, s in enumerate(strides)] + [strides[axis]])


def diagonal_of(a, offset, axis1, axis2):
    view = np.diagonal(a, offset, axis1, axis2)
    view.flags.writeable = True
    return view


def contiguous_of(a):
    return a if a.flags.c_contiguous else new(a, a.dtype)


def put(a, value):
    """Row-major, so that the last one wins where a holds an element twice."""
    value = np.broadcast_to(np.array(value), a.shape)
    for i in np.ndindex(a.shape):
        a[i] = value[i]


def put_at(a, key, value):
    """a[key] = value, one element after the other in row-major order of a[key]."""
    places = np.arange(a.size).reshape(a.shape)[key]
    value = np.array(np.broadcast_to(np.array(value), places.shape))
    for place, element in zip(places.reshape(-1), value.reshape(-1)):
        a[np.unravel_index(place, a.shape)] = element


def add_at(a, key, value):
    """a[key] += value, where a place may be there twice."""
    np.add.at(a, key, np.array(value))
    return a


def same(result, expected):
    """Equal in dtype, shape and every element; NaN is equal to NaN."""
    assert result.dtype == expected.dtype, f"dtype {result.dtype}, expected {expected.dtype}"
    assert result.shape == expected.shape, f"shape {result.shape}, expected {expected.shape}"
    equal = (result == expected) | ((result != result) & (expected != expected))
    assert equal.all(), f"\n{result!r}\nexpected\n{expected!r}"


def refused(error, function):
    """weft refuses the call."""
    try:
        function()
    except error:
        return
    raise AssertionError("not refused")


HELPERS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (new, memory, strided, strides_of, expanded, unfolded, diagonal_of, contiguous_of, put, put_at, add_at,
              same, refused)
}

# ------------------------------------------------------------------------------------------------ guards


def exact(x):
    """Any order of adding the elements gives the same: they are multiples of 1/8 and few bits."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        return True
    wide = x.astype(np.float64) * 8
    return bool(np.isfinite(wide).all() and (wide == np.rint(wide)).all() and np.abs(wide).sum() < 2**24)


def exact_product(x):
    x = np.asarray(x)
    if x.dtype.kind != "f":
        return True
    wide = np.abs(x.astype(np.float64))
    return bool(np.isfinite(wide).all() and (wide == np.rint(wide)).all() and np.prod(np.maximum(wide, 1)) < 2**24)


def exact_matmul(x, y):
    if np.asarray(x).dtype.kind != "f":
        return True
    return exact(x) and exact(y) and exact(np.matmul(np.abs(x, dtype=np.float64), np.abs(y, dtype=np.float64)))


def castable(x, dtype):
    """The cast is the same everywhere."""
    x = np.asarray(x)
    if x.dtype.kind != "f" or np.dtype(dtype).kind not in "iu":
        return True
    if not np.isfinite(x).all():
        return False
    info = np.iinfo(dtype)
    return x.size == 0 or bool(x.min() >= info.min and x.max() < min(info.max, 2**30))


def nonzero(x):
    return bool((np.asarray(x) != 0).all())


def offsets_of(a):
    flat = np.zeros(a.shape, np.int64)
    for axis, stride in enumerate(strides_of(a)):
        flat = flat + np.arange(a.shape[axis]).reshape([-1 if i == axis else 1 for i in range(a.ndim)]) * stride
    return flat


def overlaps(a):
    """Some element is there twice."""
    return len(np.unique(offsets_of(a))) < a.size


def is_plainly_distinct(a):
    """No element is there twice, as sorted strides show at once."""
    reach = 0
    for stride, size in sorted((abs(s), n) for s, n in zip(strides_of(a), a.shape) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def is_expanded(a):
    return a.size > 0 and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape))


def is_the_same_view(a, b):
    return (a.ctypes.data, a.shape, a.strides, a.dtype) == (b.ctypes.data, b.shape, b.strides, b.dtype)


GUARDS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (exact, exact_product, exact_matmul, castable, nonzero, overlaps, is_plainly_distinct, is_expanded)
}


def numpy_names() -> dict[str, Any]:
    return {"np": np, **HELPERS, **GUARDS}


# -------------------------------------------------------------------------------------- programs as text


def names_in(text: str) -> list[str]:
    """The arrays and numbers that a text reads, in order."""
    return list(dict.fromkeys(re.findall(r"\b[ns]\d+\b", text)))


def script_of(program: Program, comment: str = "") -> str:
    """A program that runs on its own: t0 is weft's v0, a0 NumPy's."""
    lines = []
    for step in program:
        lines.append(re.sub(r"\bv(\d+)\b", r"t\1", step.weft))
        if step.numpy != "pass":
            ours = re.sub(r"\bv(\d+)\b", r"a\1", step.numpy)
            lines.append(re.sub(r"\b([ns])(\d+)\b", r"expected_\1\2", ours))
    for name in names_in("\n".join(step.weft for step in program)):
        lines.append(f"same({name}, expected_{name})" if name[0] == "n"
                     else f"assert {name} == expected_{name} or {name} != {name}, ({name}, expected_{name})")
    body = "\n".join(lines)
    head = [f"# {line}" for line in comment.splitlines()]
    head += ["import numpy as np", "", "import weft", "from weft import Tensor, dtypes", ""]
    for function in _used(body):
        head += ["", inspect.getsource(function)]
    return "\n".join([*head, "", body, ""])


def _used(body: str) -> list[Callable[..., Any]]:
    found: set[str] = set()
    todo = [body]
    while todo:
        text = todo.pop()
        for name, function in HELPERS.items():
            if name not in found and re.search(rf"\b{name}\(", text):
                found.add(name)
                todo.append(inspect.getsource(function))
    return [f for name, f in HELPERS.items() if name in found]
