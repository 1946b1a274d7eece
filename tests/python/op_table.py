"""Tables of operations and what runs them: each entry on weft and on PyTorch, and the results compared.

A theme keeps its table in tables_<theme>.py as `OPS`, a list of `Op`; where checking all of them in all layouts,
or compiled, takes too long, it names some as `IN_LAYOUTS` and `ON_THE_CPU`. test_ops_of_tables.py runs them, and
test_gradients_of_ops.py the entries with `grad=True`.
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from weft import Device, Tensor

Shape = tuple[int, ...]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int32", "int8", "int64", "uint8")
# One argument: no axes, one element, none, a prime, 3-d.
UNARY = ((), (1,), (0,), (7,), (3, 5), (2, 3, 4))
# Two arguments that broadcast.
BINARY = (((), ()), ((7,), (7,)), ((3, 1), (1, 5)), ((2, 3, 4), (4,)), ((0, 2), (2,)), ((), (3,)))
# (relative, absolute) of a result's dtype; floats of 16 bits are rounded once or twice.
TOLERANCES = {"float64": (1e-12, 1e-13), "float32": (2e-6, 1e-6), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 8e-3)}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, float("nan"), float("inf"), float("-inf"), 1e-30, -1e-30, 88.0, -104.0,
           1e30, -1e30, 2.5, -3.5, 1e-4)


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation: `weft` and `torch` take as many tensors as an entry of `shapes` has shapes, and give a tensor
    or several. An entry of `shapes` that is one shape is one argument."""

    name: str
    weft: Callable[..., Any]
    torch: Callable[..., Any]
    shapes: Sequence[Any] = UNARY
    # Values are uniform in it; with several arguments it may be one pair for each.
    domain: Any = (-3.0, 3.0)
    # Differentiable: with float arguments, at every point of the domain but a few.
    grad: bool = False
    dtypes: Sequence[str] = ("float32", "float64", "float16", "bfloat16")
    # Compared at SPECIAL values also (one argument), or at all pairs of them (two).
    special: bool = False
    special_ints: bool = True
    # The signs of zeros are compared too, with the special values.
    signs: bool = True
    # (relative, absolute), instead of TOLERANCES for all dtypes.
    tolerance: tuple[float, float] | None = None
    # Takes arguments of these dtypes instead of the one being tested (None: that one), e.g. (None, "int64") for
    # classes; their domain is that of integers then.
    fixed: Sequence[str | None] | None = None
    # Elements are all different, and far enough apart to have one order.
    distinct: bool = False


def name_of(op: Op) -> str:
    return op.name


def all_tables(name: str) -> list[Op]:
    """The list of this name in every table; OPS where one has no such list."""
    tables = [importlib.import_module(p.stem) for p in sorted(pathlib.Path(__file__).parent.glob("tables_*.py"))]
    return [op for table in tables for op in getattr(table, name, table.OPS)]


def shapes_of(entry: Any) -> tuple[Shape, ...]:
    """The shapes of the arguments of an entry of `shapes`."""
    return tuple(entry) if entry and isinstance(entry[0], tuple) else (entry,)


def arrays_of(op: Op, entry: Any, dtype: str, seed: int = 0) -> list[Any]:
    """Arguments as NumPy arrays; a bfloat16 one is a float32 array of values that bfloat16 holds."""
    random = np.random.default_rng([seed, 7])
    shapes = shapes_of(entry)
    domains = op.domain if isinstance(op.domain[0], tuple) else [op.domain] * len(shapes)
    fixed = op.fixed or [None] * len(shapes)
    return [array_of(random, shape, own or dtype, *domain, op.distinct)
            for shape, domain, own in zip(shapes, domains, fixed, strict=True)]


def array_of(random: Any, shape: Shape, dtype: str, low: float, high: float, distinct: bool) -> Any:
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if distinct:
        values = low + (high - low) * (random.permutation(count) + 0.5) / max(count, 1)
    elif dtype.startswith(("int", "uint")):
        values = random.integers(int(max(low, 0) if dtype[0] == "u" else low), int(high) + 1, count)
    else:
        values = random.uniform(low, high, count)
    return rounded(values.reshape(shape), dtype)


def rounded(values: Any, dtype: str) -> Any:
    if dtype == "bfloat16":
        return torch.from_numpy(np.asarray(values)).bfloat16().float().numpy()
    return np.asarray(values).astype(dtype)


def on_weft(array: Any, dtype: str, device: str | None = None) -> Tensor:
    tensor = Tensor(array) if device is None else Tensor(array, device=device)
    return tensor.cast(dtype) if dtype == "bfloat16" and array.dtype == np.float32 else tensor


def on_torch(array: Any, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(np.array(array))
    return tensor.to(torch.bfloat16) if dtype == "bfloat16" and array.dtype == np.float32 else tensor


def check(op: Op, dtypes: Sequence[str] | None = None, device: str | None = None) -> None:
    """Every shape in every dtype that the device has, and the special values."""
    for dtype in there(op, dtypes or op.dtypes, device):
        for entry in op.shapes:
            compare(op, arrays_of(op, entry, dtype), dtype, device)
        if op.special and (op.special_ints or dtype.startswith(("float", "bfloat"))):
            compare(op, special_arrays(op, dtype), dtype, device)


def there(op: Op, dtypes: Sequence[str], device: str | None = None) -> list[str]:
    """Those that a device has; the test is skipped when it has none."""
    missing = {t.name for t in Device.missing_dtypes(device or "")}
    own = {t for t in op.fixed or () if t}
    left = [t for t in dtypes if t not in missing and not own & missing]
    if not left:
        pytest.skip(f"{device or Device.DEFAULT} has no {', '.join(dtypes)}")
    return left


def special_arrays(op: Op, dtype: str) -> list[Any]:
    special = rounded_special(dtype)
    if len(shapes_of(op.shapes[0])) == 1:
        return [special]
    x, y = np.meshgrid(special, special)
    return [np.ascontiguousarray(x), np.ascontiguousarray(y)]


def rounded_special(dtype: str) -> Any:
    if not dtype.startswith(("float", "bfloat")):
        return np.array([0, 1, 2, 7, 120] + ([] if dtype[0] == "u" else [-1, -2, -7, -128]), dtype)
    with np.errstate(over="ignore"):
        return rounded(np.array(SPECIAL), dtype)


def compare(op: Op, arrays: list[Any], dtype: str, device: str | None = None) -> None:
    ours = op.weft(*[on_weft(a, dtype, device) for a in arrays])
    theirs = op.torch(*[on_torch(a, dtype) for a in arrays])
    assert_same(op, ours, theirs, f"{op.name} of {dtype} {[a.shape for a in arrays]}")


def assert_same(op: Op, ours: Any, theirs: Any, what: str) -> None:
    if isinstance(ours, (tuple, list)):
        assert len(ours) == len(theirs), what
        for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(op, x, y, f"{what}, result {i}")
        return
    expected = str(theirs.dtype).removeprefix("torch.")
    # Integers are counted in int32 where PyTorch counts in int64.
    is_int = expected.startswith(("int", "uint"))
    assert ours.shape == tuple(theirs.shape), what
    assert ours.dtype.name == expected or (is_int and ours.dtype.name.startswith(("int", "uint"))), (what, ours.dtype)
    x, y = numbers_of(ours), numbers_of(theirs)
    relative, absolute = op.tolerance or TOLERANCES.get(expected, (0.0, 0.0))
    np.testing.assert_allclose(x, y, relative, absolute, equal_nan=True, err_msg=what)
    if op.special and op.signs and expected.startswith(("float", "bfloat")):
        zeros = (y == 0) & (x == 0)
        np.testing.assert_array_equal(np.signbit(x[zeros]), np.signbit(y[zeros]), err_msg=f"{what}: signs of zeros")


def numbers_of(tensor: Any) -> Any:
    """The values as an array of float64 or int64."""
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach()
    is_short = str(tensor.dtype).endswith("float16")  # bfloat16, too, which NumPy has not
    array = (tensor.float() if is_short else tensor).numpy()
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def check_layouts(op: Op, dtype: str | None = None) -> None:
    """Arguments that are views: transposed, every second element, repeated."""
    dtype = dtype or there(op, op.dtypes)[0]
    for entry in op.shapes:
        arrays = arrays_of(op, entry, dtype)
        for layout in layouts_of(arrays, dtype):
            ours, theirs = op.weft(*[x for x, _ in layout]), op.torch(*[y for _, y in layout])
            assert_same(op, ours, theirs, f"{op.name} of views of {[a.shape for a in arrays]}")


def layouts_of(arrays: list[Any], dtype: str) -> Iterator[list[tuple[Tensor, torch.Tensor]]]:
    yield [(on_weft(np.ascontiguousarray(a.T), dtype).permute(*range(a.ndim)[::-1]) if a.ndim > 1
            else on_weft(a, dtype), on_torch(a, dtype)) for a in arrays]
    yield [(on_weft(np.repeat(a, 2, -1), dtype)[..., ::2] if a.ndim else on_weft(a, dtype), on_torch(a, dtype))
           for a in arrays]
    yield [(on_weft(a[:1], dtype).expand(a.shape), on_torch(a[:1], dtype).expand(a.shape))
           if a.ndim and a.shape[0] and not is_class(a, dtype) else (on_weft(a, dtype), on_torch(a, dtype))
           for a in arrays]


def is_class(array: Any, dtype: str) -> bool:
    return array.dtype.kind in "iub" and dtype.startswith(("float", "bfloat"))
