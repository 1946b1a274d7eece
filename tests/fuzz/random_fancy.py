"""Statements of random programs that read and write by tensors, lists and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from program_model import Statement
from random_tensor_expression import ARITHMETIC, Unfit, numpy_type, promoted

MOST_CHOSEN = 24


def key_of(g: Any, a: Any) -> tuple[str, str]:
    """A key with a tensor in it, for weft and for NumPy."""
    r = g.random
    if r.random() < 0.2:
        return mask_of(g, a)
    weft, ours = [], []
    shape = r.choice([(1,), (2,), (3,), (2,), (2, 2), (1, 3), ()])
    axes = r.randint(1, a.ndim)
    chosen = set(r.sample(range(axes), r.choice([1, 1, 1, min(2, axes)])))
    for axis in range(axes):
        n = a.shape[axis]
        if axis in chosen:
            w, o = integers(g, n, shape if r.random() < 0.8 else (1,))
        elif r.random() < 0.25 and n > 0:
            w = o = str(r.randint(-n, n - 1))
        else:
            w = o = g.slice(n)
        weft.append(w)
        ours.append(o)
    if r.random() < 0.15:
        at = r.randint(0, len(weft))
        extra = r.choice(["None", "..."])
        weft.insert(at if extra == "None" else len(weft), extra)
        ours.insert(at if extra == "None" else len(ours), extra)
    return ", ".join(weft), ", ".join(ours)


def integers(g: Any, n: int, shape: tuple[int, ...]) -> tuple[str, str]:
    r = g.random
    if n == 0:
        shape = (0,)
    others = [v for v in g.live if g.array(v).dtype in (np.int32, np.int64) and g.array(v).size <= MOST_CHOSEN]
    if others and n and r.random() < 0.3:  # what another tensor holds, perhaps the one that is written
        v = r.choice(others)
        return f"({v} % {n})", f"({v} % {n})"
    numbers = np.array([r.randint(-n, n - 1) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape).tolist()
    ours = f"np.array({numbers}, np.int64)"
    if isinstance(numbers, list) and numbers and r.random() < 0.5:
        return f"{numbers}", ours
    text = f"Tensor({numbers}, dtype=dtypes.{r.choice(['int32', 'int64', 'int8'])})"
    return (f"({text} + 0)" if r.random() < 0.4 else text), ours


def mask_of(g: Any, a: Any) -> tuple[str, str]:
    r = g.random
    likes = [v for v in g.live if g.array(v).dtype != bool and g.array(v).ndim
             and g.array(v).shape == a.shape[:g.array(v).ndim]]
    if likes and r.random() < 0.6:
        v, c = r.choice(likes), r.randint(-2, 3)
        return f"({v} > {c})", f"({v} > {c})"
    bits = [r.random() < 0.5 for _ in range(a.shape[0])]
    return (f"{bits}" if bits else "Tensor([], dtype=dtypes.bool)"), f"np.array({bits}, bool)"


def is_mask(g: Any, ours: str) -> bool:
    """Reading by a mask, and writing one value for each that is true, computes it."""
    key = eval(f"np.s_[{ours}]", g.names)
    return isinstance(key, np.ndarray) and key.dtype == bool


def pick(g: Any) -> tuple[str, Any]:
    target = g.pick()
    a = g.array(target)
    if a.ndim == 0:
        raise Unfit
    return target, a


def fancy_read(g: Any) -> Statement:
    source, a = pick(g)
    weft, ours = key_of(g, a)
    value = eval(f"{source}[{ours}]", g.names)
    if value.size > 2 * MOST_CHOSEN or value.ndim > 5:
        raise Unfit
    step = g.bound(f"{source}[{weft}]", f"new({source}[{ours}], {numpy_type(str(a.dtype))})", retire=0.2)
    return step._replace(runs=is_mask(g, ours))


def fancy_write(g: Any) -> Statement:
    """v0[key] = value, v0[key] += value"""
    r = g.random
    target, a = pick(g)
    weft, ours = key_of(g, a)
    shape = eval(f"{target}[{ours}]", g.names).shape
    dtype = str(a.dtype)
    guards: tuple[str, ...] = (f"is_plainly_distinct({target})", f"{target}[{ours}].shape == {shape}")
    is_update = dtype != "bool" and r.random() < 0.3
    if r.random() < 0.3 or int(np.prod(shape)) == 0:
        value = g.number(dtype)
        weft_value, numpy_value = str(value), f"np.{dtype if dtype != 'bool' else 'bool_'}({value})"
    else:
        e = g.fitted(shape, dtype)
        if is_update and promoted(e.dtype, dtype) != dtype:
            raise Unfit
        weft_value, numpy_value, guards = e.weft, f"new({e.numpy}, {numpy_type(dtype)})", (*guards, *e.guards)
    if not is_update:
        return Statement(f"{target}[{weft}] = {weft_value}", f"put_at({target}, np.s_[{ours}], {numpy_value})", guards,
                         runs=is_mask(g, ours))
    symbol, function = r.choice(ARITHMETIC)
    return Statement(f"{target}[{weft}] {symbol}= {weft_value}",
                     f"put_at({target}, np.s_[{ours}], np.{function}({target}[{ours}], {numpy_value}))", guards,
                     runs=is_mask(g, ours))


def fancy_add(g: Any) -> Statement:
    """Sums at places that may be there twice."""
    r = g.random
    target, a = pick(g)
    axis = r.randrange(a.ndim)
    n, count = a.shape[axis], r.randint(0, 5)
    if n == 0 or a.dtype == bool:
        raise Unfit
    at = [r.randint(-n, n - 1) for _ in range(count)]
    shape = (*a.shape[:axis], count, *a.shape[axis + 1:])
    dtype = str(a.dtype)
    e = g.fitted(shape, dtype)
    if e.dtype != dtype or e.value.shape != shape:
        raise Unfit
    index = f"Tensor({at}, dtype=dtypes.int32)"
    spots = ", ".join([":"] * axis + [f"np.array({at}, np.int64)"])
    return Statement(f"{target}.index_add_({axis}, {index}, {e.weft})",
                     f"add_at({target}, np.s_[{spots}], {e.numpy})",
                     (*e.guards, f"is_plainly_distinct({target})",
                      f"exact(add_at({target}.copy(), np.s_[{spots}], {e.numpy}))"))
