"""Random expressions over the tensors of a program, as texts for weft and for NumPy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from random_program import Generator

FLOAT64 = "float32" if os.environ.get("WEFT_DEVICE") == "WEBGPU" else "float64"  # which WebGPU lacks


class Expression(NamedTuple):
    """An expression for weft and for NumPy, and its value."""

    weft: str
    numpy: str
    value: Any
    guards: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        return str(self.value.dtype)

    def as_type(self, dtype: str) -> str:
        return self.numpy if self.dtype == dtype else f"new({self.numpy}, {numpy_type(dtype)})"


class Unfit(Exception):
    """A choice that leads nowhere."""


REFUSALS = (ValueError, TypeError, OverflowError, IndexError)  # of NumPy


def promoted(x: str, y: str) -> str:
    """PyTorch's lattice: a float wins over an integer of any width."""
    floats = [t for t in (x, y) if t.startswith("float")]
    result = str(np.promote_types(x, y))
    if not floats and result.startswith("float"):
        raise Unfit  # no integer holds both
    return floats[0] if len(floats) == 1 else result


def numpy_type(dtype: str) -> str:
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def random_expression(g: Generator, depth: int) -> Expression:
    if depth == 0:
        return leaf(g)
    kinds = [(elementwise, 40), (with_number, 15), (unary, 12), (reduction, 16), (product, 6), (choice, 6),
             (joined, 6), (rolled, 6), (padded, 4), (cast, 6)]
    make = g.random.choices(*zip(*kinds))[0]
    result: Expression = make(g, depth)
    return result


def leaf(g: Generator) -> Expression:
    name = g.pick()
    if g.random.random() < 0.4:
        weft, ours = g.view_text(g.array(name))
        return g.made(name + weft, ours.format(name))
    return g.made(name, name)


def fitted_expression(g: Generator, shape: tuple[int, ...]) -> Expression:
    """An expression that can be broadcast to the shape."""
    e = narrowed(g, leaf(g) if g.random.random() < 0.6 else random_expression(g, g.random.choice([1, 1, 2])), shape)
    if g.random.random() < 0.3:
        return with_number(g, 0, e)
    if g.random.random() < 0.2:
        return arithmetic(g, e, narrowed(g, leaf(g), shape))
    return e


def narrowed(g: Generator, e: Expression, shape: tuple[int, ...]) -> Expression:
    """The expression, or a part of it, that can be broadcast to the shape."""
    sizes = e.value.shape
    if can_broadcast(sizes, shape) and g.random.random() < 0.8:
        return e
    if len(sizes) == len(shape) and all(n >= s for n, s in zip(sizes, shape)) and shape:
        begins = [g.random.randint(0, n - s) for n, s in zip(sizes, shape)]
        index = ", ".join(f"{b}:{b + s}" for b, s in zip(begins, shape))
        return g.made(f"{e.weft}[{index}]", f"{e.numpy}[{index}]", e.guards)
    if e.value.size == np.prod(shape, dtype=np.int64) and e.value.size:
        return g.made(f"{e.weft}.reshape({shape})", f"{e.numpy}.reshape({shape})", e.guards)
    if len(sizes) == 2 and can_broadcast(sizes[::-1], shape):
        return g.made(f"{e.weft}.T", f"{e.numpy}.T", e.guards)
    if e.value.size and sizes:
        keep = g.random.random() < 0.5 and len(sizes) > 1 and shape and sizes[-1] == shape[-1]
        index = ", ".join([str(g.random.randrange(n)) for n in (sizes[:-1] if keep else sizes)])
        return g.made(f"{e.weft}[{index}]", f"{e.numpy}[{index}]", e.guards)
    raise Unfit


def can_broadcast(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(sizes, shape) == shape
    except ValueError:
        return False


# ----------------------------------------------------------------------------------------- elementwise

COMPARISONS = [("<", "less"), ("<=", "less_equal"), (">", "greater"), (">=", "greater_equal"), ("==", "equal"),
               ("!=", "not_equal")]
ARITHMETIC = [("+", "add"), ("+", "add"), ("-", "subtract"), ("*", "multiply")]
DIVISIONS = [("//", "floor_divide"), ("%", "remainder")]
BITWISE = [("&", "bitwise_and"), ("|", "bitwise_or"), ("^", "bitwise_xor")]


def elementwise(g: Generator, depth: int) -> Expression:
    x = random_expression(g, depth - 1)
    other = random_expression(g, g.random.randrange(depth))
    y = other if broadcast_together(x, other) else narrowed(g, other, x.value.shape)
    return arithmetic(g, x, y)


def broadcast_together(x: Expression, y: Expression) -> bool:
    try:
        np.broadcast_shapes(x.value.shape, y.value.shape)
    except ValueError:
        return False
    return True


def arithmetic(g: Generator, x: Expression, y: Expression) -> Expression:
    r = g.random
    dtype = promoted(x.dtype, y.dtype)
    guards = x.guards + y.guards
    if dtype == "bool":
        symbol, function = r.choice(BITWISE)
    elif r.random() < 0.12:
        symbol, function = r.choice(COMPARISONS)
    elif r.random() < 0.1:
        name = r.choice(["maximum", "minimum"])
        return g.made(f"{x.weft}.{name}({y.weft})", f"np.{name}({x.as_type(dtype)}, {y.as_type(dtype)})", guards)
    elif r.random() < 0.1 and not dtype.startswith("float"):
        symbol, function = r.choice([*BITWISE, *DIVISIONS])
        if symbol in ("//", "%"):
            guards = (*guards, f"nonzero({y.as_type(dtype)})")
    elif r.random() < 0.04 and dtype.startswith("float"):
        symbol, function = "/", "true_divide"
        guards = (*guards, f"nonzero({y.as_type(dtype)})")
    else:
        symbol, function = r.choice(ARITHMETIC)
    return g.made(f"({x.weft} {symbol} {y.weft})", f"np.{function}({x.as_type(dtype)}, {y.as_type(dtype)})", guards)


def with_number(g: Generator, depth: int, x: Expression | None = None) -> Expression:
    r = g.random
    if x is None:
        x = random_expression(g, depth - 1)
    number = g.number(x.dtype)
    if x.dtype == "bool":
        symbol, function = r.choice(BITWISE)
    elif r.random() < 0.15:
        symbol, function = r.choice(COMPARISONS)
    elif r.random() < 0.15 and not x.dtype.startswith("float"):
        symbol, function = r.choice([*DIVISIONS, ("<<", "left_shift"), (">>", "right_shift")])
        number = r.randint(1, 4)
        return g.made(f"({x.weft} {symbol} {number})", f"np.{function}({x.numpy}, {number})", x.guards)
    else:
        symbol, function = r.choice(ARITHMETIC)
    if r.random() < 0.3:
        return g.made(f"({number} {symbol} {x.weft})", f"np.{function}({number}, {x.numpy})", x.guards)
    return g.made(f"({x.weft} {symbol} {number})", f"np.{function}({x.numpy}, {number})", x.guards)


def unary(g: Generator, depth: int) -> Expression:
    x = random_expression(g, depth - 1)
    kind = g.random.choice(["-", "abs", "relu", "~", "trunc", "floor", "ceil", "round", "sqrt", "reciprocal", "half"])
    if kind == "-":
        return g.made(f"(-{x.weft})", f"np.negative({x.numpy})", x.guards)
    if kind == "~" and not x.dtype.startswith("float"):
        return g.made(f"(~{x.weft})", f"np.invert({x.numpy})", x.guards)
    if x.dtype == "bool":
        raise Unfit
    if kind == "abs":
        return g.made(f"{x.weft}.abs()", f"np.abs({x.numpy})", x.guards)
    if kind == "relu":
        return g.made(f"{x.weft}.relu()", f"np.maximum({x.numpy}, 0)", x.guards)
    if not x.dtype.startswith("float"):
        raise Unfit
    if kind == "half":
        return g.made(f"({x.weft} * 0.5)", f"np.multiply({x.numpy}, 0.5)", x.guards)
    if kind == "reciprocal":
        return g.made(f"{x.weft}.reciprocal()", f"np.reciprocal({x.numpy})", (*x.guards, f"nonzero({x.numpy})"))
    if kind == "~":
        raise Unfit
    return g.made(f"{x.weft}.{kind}()", f"np.{kind}({x.numpy})", x.guards)


def choice(g: Generator, depth: int) -> Expression:
    x = random_expression(g, depth - 1)
    y = narrowed(g, leaf(g), x.value.shape)
    c = narrowed(g, leaf(g), x.value.shape)
    condition = (f"({c.weft} > 1)", f"({c.numpy} > 1)") if c.dtype != "bool" else (c.weft, c.numpy)
    dtype = promoted(x.dtype, y.dtype)
    return g.made(f"{condition[0]}.where({x.weft}, {y.weft})",
                  f"np.where({condition[1]}, {x.as_type(dtype)}, {y.as_type(dtype)})", x.guards + y.guards + c.guards)


def cast(g: Generator, depth: int) -> Expression:
    x = random_expression(g, depth - 1)
    dtype = g.random.choice(["float32", "int32", "int64", "uint8", "bool", FLOAT64])
    if dtype == x.dtype:  # that is the tensor itself
        raise Unfit
    return g.made(f"{x.weft}.cast(dtypes.{dtype})", f"new({x.numpy}, {numpy_type(dtype)})",
                  (*x.guards, f"castable({x.numpy}, {numpy_type(dtype)})"))


# ------------------------------------------------------------------------------------------ reductions


def reduction(g: Generator, depth: int) -> Expression:
    r = g.random
    x = random_expression(g, depth - 1)
    axis: int | tuple[int, ...] | None = None
    if x.value.ndim and r.random() < 0.7:
        axis = r.randint(-x.value.ndim, x.value.ndim - 1)
        if x.value.ndim > 1 and r.random() < 0.2:
            axis = tuple(sorted(r.sample(range(x.value.ndim), 2)))
    keep = r.random() < 0.4
    kind = r.choice(["sum", "sum", "sum", "max", "min", "prod", "any", "all", "mean"])
    given = ", ".join(([f"axis={axis}"] if axis is not None else []) + (["keepdim=True"] if keep else []))
    where = f"axis={axis}, keepdims={keep}"
    weft = f"{x.weft}.{kind}({given})"
    if kind in ("any", "all"):
        return g.made(weft, f"np.{kind}({x.numpy}, {where})", x.guards)
    if kind in ("max", "min"):
        return g.made(weft, f"np.{kind}({x.numpy}, {where})", x.guards)
    if kind == "mean":
        if not x.dtype.startswith("float") or not is_power_of_two(x, axis):
            raise Unfit
        return g.made(weft, f"np.mean({x.numpy}, {where})", (*x.guards, f"exact({x.numpy})"))
    guard = f"exact({x.numpy})" if kind == "sum" else f"exact_product({x.numpy})"
    return g.made(weft, f"np.{kind}({x.numpy}, {where}, dtype={numpy_type(summed(x.dtype))})", (*x.guards, guard))


def summed(dtype: str) -> str:
    return {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def is_power_of_two(x: Expression, axis: int | tuple[int, ...] | None) -> bool:
    axes = range(x.value.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    count = int(np.prod([x.value.shape[i] for i in axes], dtype=np.int64))
    return count > 0 and count & (count - 1) == 0


def product(g: Generator, depth: int) -> Expression:
    x, y = leaf(g), leaf(g)
    dtype = promoted(x.dtype, y.dtype)
    if dtype not in ("float32", "int32", "int64", "float64"):
        raise Unfit
    texts = [(x.weft, x.as_type(dtype)), (y.weft, y.as_type(dtype))]
    if x.value.ndim == 2 and y.value.ndim == 2 and x.value.shape[1] != y.value.shape[0]:
        texts[1] = (f"{y.weft}.T", f"{texts[1][1]}.T")
    (a, b), (c, d) = texts
    return g.made(f"({a} @ {c})", f"np.matmul({b}, {d})", (*x.guards, *y.guards, f"exact_matmul({b}, {d})"))


# ---------------------------------------------------------------------------------------- new layouts


def joined(g: Generator, depth: int) -> Expression:
    r = g.random
    x = random_expression(g, depth - 1)
    if x.value.ndim == 0:
        raise Unfit
    axis = r.randint(-x.value.ndim, x.value.ndim - 1)
    others = [x if r.random() < 0.3 else narrowed(g, leaf(g), x.value.shape) for _ in range(r.choice([1, 1, 2, 9]))]
    if any(o.value.shape != x.value.shape for o in others):
        raise Unfit
    dtype = x.dtype
    for o in others:
        dtype = promoted(dtype, o.dtype)
    kind = r.choice(["cat", "cat", "stack"])
    function = "concatenate" if kind == "cat" else "stack"
    parts = ", ".join(o.as_type(dtype) for o in [x, *others])
    return g.made(f"{x.weft}.{kind}({', '.join(o.weft for o in others)}, dim={axis})",
                  f"np.{function}([{parts}], {axis})", x.guards + tuple(guard for o in others for guard in o.guards))


def rolled(g: Generator, depth: int) -> Expression:
    x = random_expression(g, depth - 1)
    if x.value.ndim == 0:
        raise Unfit
    shift, axis = g.random.randint(-4, 4), g.random.randint(-x.value.ndim, x.value.ndim - 1)
    return g.made(f"{x.weft}.roll({shift}, {axis})", f"np.roll({x.numpy}, {shift}, {axis})", x.guards)


def padded(g: Generator, depth: int) -> Expression:
    r = g.random
    x = random_expression(g, depth - 1)
    if x.value.ndim == 0 or x.dtype == "bool":
        raise Unfit
    widths = tuple((r.choice([0, 0, 1, 2]), r.choice([0, 0, 1, 2])) for _ in range(x.value.ndim))
    value = r.choice([0, 0, g.number(x.dtype)])
    given = f", value={value}" if value else ""
    return g.made(f"{x.weft}.pad({widths}{given})", f"np.pad({x.numpy}, {widths}, constant_values={value})",
                  (*x.guards, f"np.ndim({x.numpy}) == {x.value.ndim}"))
