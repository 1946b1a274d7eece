#!/usr/bin/env python3
"""Random reductions of floats, compiled, whose error against long doubles is at most 4 times PyTorch's.

    fuzz_sums.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                 [--known REGEX] [--case N] [--show]
    fuzz_sums.py --errors [--seed 1] [--count 1000] [--first 0]     the distribution of the ratios, and the worst

An error is the largest over the elements of several results; one below an ulp of the largest result counts as that.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from drive import Failed, Fuzzer

import weft

torch.set_num_threads(1)

DEVICE = os.environ.get("WEFT_DEVICE", "REF")
DEVICE = DEVICE if DEVICE != "REF" else "CPU"  # the evaluator sums in order: that is its meaning
MOST = 4.0  # times PyTorch's error
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
MOST_ELEMENTS = {"float64": 200_000, "float32": 1_000_000, "float16": 200_000, "bfloat16": 1_000_000}
MOST_TERMS = {"float64": 200_000, "float32": 1_000_000, "float16": 4_000, "bfloat16": 1_000_000}


@dataclasses.dataclass
class Case:
    op: str
    dtype: str
    data: str  # how its numbers are drawn
    shape: tuple[int, ...]
    view: str  # that is reduced: an expression of x
    axes: tuple[int, ...]
    seed: int


# name: on weft, on PyTorch, on long doubles; of a view and axes.
Function = Callable[[Any, tuple[int, ...]], Any]


def spread(x: Any, axes: tuple[int, ...]) -> Any:
    return np.square(x - x.mean(axes, keepdims=True)).sum(axes) / (terms_of(x.shape, axes) - 1)


def terms_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return math.prod(shape[a] for a in axes)


def normed(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)


REDUCTIONS: dict[str, tuple[Function, Function, Function]] = {
    "sum": (lambda x, a: x.sum(a), lambda x, a: x.sum(a), lambda x, a: x.sum(a)),
    "mean": (lambda x, a: x.mean(a), lambda x, a: x.mean(a), lambda x, a: x.mean(a)),
    "var": (lambda x, a: x.var(a), lambda x, a: x.var(a), spread),
    "std": (lambda x, a: x.std(a), lambda x, a: x.std(a), lambda x, a: np.sqrt(spread(x, a))),
    "norm": (lambda x, a: x.square().sum(a).sqrt(), lambda x, a: x.square().sum(a).sqrt(),
             lambda x, a: np.sqrt(np.square(x).sum(a))),
    "squares": (lambda x, a: (x * x).sum(a), lambda x, a: (x * x).sum(a), lambda x, a: np.square(x).sum(a)),
    "distances": (lambda x, a: (x - 0.25).abs().sum(a), lambda x, a: (x - 0.25).abs().sum(a),
                  lambda x, a: np.abs(x - 0.25).sum(a)),
    "prod": (lambda x, a: functools.reduce(lambda y, i: y.prod(i), sorted(a, reverse=True), x),
             lambda x, a: functools.reduce(lambda y, i: y.prod(i), sorted(a, reverse=True), x),
             lambda x, a: x.prod(a)),
    "logsumexp": (lambda x, a: x.logsumexp(a), lambda x, a: x.logsumexp(a), lambda x, a: np.log(np.exp(x).sum(a))),
    "softmax": (lambda x, a: x.softmax(a[0]), lambda x, a: x.softmax(a[0]),
                lambda x, a: np.exp(x) / np.exp(x).sum(a[0], keepdims=True)),
    "layer norm": (lambda x, a: x.layernorm(), lambda x, a: torch.nn.functional.layer_norm(x, x.shape[-1:]),
                   lambda x, a: normed(x)),
}
PRODUCTS = ("dot", "matmul", "matmul of columns", "vector by matrix", "matrix by vector")


def draw(random_: Any, data: str, shape: tuple[int, ...]) -> Any:
    if data == "positive":
        return random_.uniform(0, 1, shape)
    if data == "near one":
        return 1 + random_.uniform(-1, 1, shape) * 0.002
    if data == "shifted":
        return random_.standard_normal(shape) + 3
    if data == "equal":
        return np.full(shape, random_.uniform(0.1, 1))
    return random_.standard_normal(shape)


def rounded(x: Any, dtype: str) -> Any:
    return torch.from_numpy(np.asarray(x, np.float64)).to(getattr(torch, dtype))


def on_weft(x: Any) -> Any:
    if x.dtype == torch.bfloat16:
        return weft.Tensor(x.float().numpy(), device=DEVICE).cast("bfloat16").realize()
    return weft.Tensor(x.numpy(), device=DEVICE)


def exact(x: Any) -> Any:
    return x.double().numpy().astype(np.longdouble)


def from_weft(x: Any) -> Any:
    return x.cast("float64").numpy().astype(np.longdouble)


def three_results(case: Case, k: int) -> tuple[Any, Any, Any]:
    """Of weft, of PyTorch, and the true one."""
    random_ = np.random.default_rng([case.seed, k])
    if case.op in PRODUCTS:
        m, n, terms = case.shape
        a = rounded(draw(random_, case.data, (m, terms)), case.dtype)
        b = rounded(draw(random_, case.data, (n, terms)), case.dtype)
        wide_a, wide_b = exact(a), exact(b)
        ours_a, ours_b = on_weft(a), on_weft(b)
        if case.op == "dot":
            return from_weft((ours_a[0] * ours_b[0]).sum()), exact(a[0] @ b[0]), wide_a[0] @ wide_b[0]
        if case.op == "matmul of columns":
            return from_weft(ours_a @ ours_b.transpose(0, 1)), exact(a @ b.T), wide_a @ wide_b.T
        b, wide_b = b.T.contiguous(), wide_b.T
        ours_b = on_weft(b)
        if case.op == "vector by matrix":
            return from_weft(ours_a[0] @ ours_b), exact(a[0] @ b), wide_a[0] @ wide_b
        if case.op == "matrix by vector":
            return from_weft(ours_a @ ours_b[:, 0]), exact(a @ b[:, 0]), wide_a @ wide_b[:, 0]
        return from_weft(ours_a @ ours_b), exact(a @ b), wide_a @ wide_b
    x = rounded(draw(random_, case.data, case.shape), case.dtype)
    wide = exact(x)
    of = [eval(case.view, {"x": each}) for each in (on_weft(x), x, wide)]
    ours, theirs, true = (f(each, case.axes) for f, each in zip(REDUCTIONS[case.op], of))
    return from_weft(ours), exact(theirs), true


def ratio_of(case: Case) -> float:
    """The error, as a multiple of PyTorch's."""
    errors = [0.0, 0.0]
    largest, results = 0.0, 0
    for k in range(8):
        *both, true = three_results(case, k)
        errors = [max(e, float(np.max(np.abs(x - true), initial=0))) for e, x in zip(errors, both)]
        largest = max(largest, float(np.max(np.abs(true), initial=0)))
        results += true.size
        if results >= 64 or (k >= 2 and math.prod(case.shape) > 100_000):
            break
    ulp = 2 * UNIT[case.dtype] * largest
    return errors[0] / max(errors[1], ulp) if ulp > 0 else 0.0


# ---- cases


def random_case(text: str) -> Case:
    r = random.Random(text)
    dtype = r.choice(["float32"] * 5 + ["float16", "bfloat16", "float64"])
    seed = r.randrange(1 << 30)
    data = r.choice(["positive", "mixed", "mixed", "shifted", "equal"])
    if r.random() < 0.2:
        terms = int(10 ** r.uniform(1, 4.6 if dtype != "float16" else 3.5))
        op = r.choice(PRODUCTS)
        most = max(1, int(min(2e6 if dtype == "float64" else 1e7, 3e6 * 8) / terms))
        m = r.randint(1, min(100, most))
        n = r.randint(1, max(1, min(100, most // m)))
        return Case(op, dtype, data, (m, n, terms), "x", (), seed)
    op = r.choice(list(REDUCTIONS))
    rank = r.choice([1, 2, 2, 3, 3, 4])
    numel = 10 ** r.uniform(1, math.log10(MOST_ELEMENTS[dtype]))
    cuts = sorted(r.random() for _ in range(rank - 1))
    shares = [b - a for a, b in zip([0.0, *cuts], [*cuts, 1.0])]
    shape = tuple(max(1, int(numel**share)) for share in shares)
    view, axes = r.choice(["x", "x", "x[::2]", "x[..., ::2]", "x[1:]", "x[..., 1:]", "columns"]), tuple[int, ...]()
    if view == "columns":
        view = "x.transpose(0, -1)" if rank == 1 else f"x.swapaxes(0, {rank - 1})"
    if "transpose(0, -1)" in view or (view.startswith("x[1:") and shape[0] < 2) or ("1:]" in view and shape[-1] < 2):
        view = "x"
    left = eval(view, {"x": np.empty(shape, np.bool_)}).shape
    longest = max(range(rank), key=lambda i: left[i])
    axes = tuple(sorted({longest, *(i for i in range(rank) if r.random() < 0.3)}))
    if op in ("softmax", "prod"):
        axes = (longest,)
    if op == "prod":
        data = "near one"
    while terms_of(left, axes) > MOST_TERMS[dtype] and len(axes) > 1:
        axes = axes[:-1]
    if terms_of(left, axes) > MOST_TERMS[dtype] or (op in ("var", "std") and terms_of(left, axes) < 2):
        op = "mean"
    return Case(op, dtype, data, shape, view, axes, seed)


def make(text: str) -> list[Case]:
    return [random_case(text)]


def run(steps: list[Case]) -> None:
    for case in steps:
        try:
            ratio = ratio_of(case)
        except weft.Error as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        if not ratio <= MOST:
            raise Failed(f"its error is {ratio:.1f} times PyTorch's")


def script_of(steps: list[Case]) -> str:
    return "from fuzz_sums import *\n" + "".join(f"print(ratio_of({case}))\n" for case in steps)


FUZZER = Fuzzer("fuzz_sums", make, run, script_of)


def print_errors(seed: int, first: int, count: int) -> None:
    cases = [random_case(f"{seed}/{k}") for k in range(first, first + count)]
    ratios = np.array([ratio_of(case) for case in cases])
    for name in ["all", *sorted({case.op for case in cases})]:
        some = np.array([ratio for ratio, case in zip(ratios, cases) if name in ("all", case.op)])
        at = [float(np.quantile(some, q)) for q in (0.5, 0.9, 0.99, 1)]
        print(f"{name:18} {len(some):5} cases: median {at[0]:.2f}, 90% {at[1]:.2f}, 99% {at[2]:.2f}, worst {at[3]:.2f}, "
              f"{int((some > MOST).sum())} above {MOST:.0f}")
    for k in np.argsort(-ratios)[:10]:
        print(f"{ratios[k]:.1f} case {first + k}: {cases[k]}")


if __name__ == "__main__":
    if "--errors" in sys.argv:
        given = {name: int(value) for name, value in zip(sys.argv, sys.argv[1:]) if value.lstrip("-").isdigit()}
        print_errors(given.get("--seed", 1), given.get("--first", 0), given.get("--count", 1000))
    else:
        FUZZER.main(__doc__ or "")
