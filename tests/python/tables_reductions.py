"""Reductions, cumulative functions and sorting: the table of tests/python/op_table.py."""

from __future__ import annotations

from functools import partial

import torch

from op_table import FLOATS, INTS, UNARY, Op

ALL = (*FLOATS, *INTS, "bool")
AXES = ((1,), (7,), (3, 5), (2, 3, 4))
ROWS = ((3, 5), (2, 3, 4), (0, 2), (2, 5))
LONG = ((65,), (3, 100), (1025,), (2, 33, 3))
# PyTorch has uint8 for the truth of uint8.
TRUTH = (*FLOATS, "int32", "int8", "int64", "bool")
SMALL = ("float32", "float64", "int32")

REDUCTIONS = [
    Op("sum", lambda x: x.sum(), torch.sum, UNARY, grad=True, dtypes=ALL, special=True, signs=False),
    Op("sum_1", lambda x: x.sum(axis=1), partial(torch.sum, dim=1), ROWS, grad=True, dtypes=ALL),
    Op("sum_axes", lambda x: x.sum((0, -1), keepdim=True), lambda x: x.sum((0, -1), keepdim=True), ROWS, grad=True),
    Op("sum_double", lambda x: x.sum(dtype="float64"), partial(torch.sum, dtype=torch.float64), UNARY, dtypes=ALL),
    Op("sum_half", lambda x: x.sum(0, dtype="float16"), lambda x: x.sum(0, dtype=torch.float16), AXES, dtypes=("int32",)),
    Op("prod", lambda x: x.prod(), torch.prod, UNARY, grad=True, dtypes=ALL),
    Op("prod_0", lambda x: x.prod(0, keepdim=True), lambda x: x.prod(0, keepdim=True), AXES, grad=True),
    Op("prod_double", lambda x: x.prod(dtype="float64"), partial(torch.prod, dtype=torch.float64), UNARY, dtypes=SMALL),
    Op("mean", lambda x: x.mean(), torch.mean, ((), (1,), (7,), (3, 5), (2, 3, 4), (0,)), grad=True, special=True),
    Op("mean_1", lambda x: x.mean(1), partial(torch.mean, dim=1), ROWS, grad=True),
    Op("max", lambda x: x.max(), torch.max, ((), *AXES), grad=True, dtypes=ALL, special=True, distinct=True),
    Op("max_1", lambda x: x.max(axis=1), partial(torch.amax, dim=1), ROWS, grad=True, dtypes=ALL, distinct=True),
    Op("min", lambda x: x.min(), torch.min, ((), *AXES), grad=True, dtypes=ALL, special=True, distinct=True),
    Op("min_0", lambda x: x.min(0, keepdim=True), lambda x: x.amin(0, keepdim=True), AXES, grad=True, distinct=True),
    Op("any", lambda x: x.any(), torch.any, UNARY, dtypes=TRUTH, special=True),
    Op("any_1", lambda x: x.any(1), partial(torch.any, dim=1), ROWS, dtypes=TRUTH),
    Op("all", lambda x: x.all(), torch.all, UNARY, dtypes=TRUTH, special=True),
    Op("all_1", lambda x: x.all(1, keepdim=True), lambda x: x.all(1, keepdim=True), ROWS, dtypes=TRUTH),
    Op("argmax", lambda x: x.argmax(), torch.argmax, ((), *AXES), dtypes=(*FLOATS, *INTS), special=True),
    Op("argmax_1", lambda x: x.argmax(axis=1), partial(torch.argmax, dim=1), ROWS, dtypes=(*FLOATS, *INTS)),
    Op("argmax_keep", lambda x: x.argmax(keepdim=True), lambda x: x.argmax(keepdim=True), AXES),
    Op("argmin", lambda x: x.argmin(), torch.argmin, ((), *AXES), dtypes=(*FLOATS, *INTS), special=True),
    Op("argmin_0", lambda x: x.argmin(0, keepdim=True), lambda x: x.argmin(0, keepdim=True), AXES),
    Op("argmax_ties", lambda x: (x > 0).argmax(-1), lambda x: (x > 0).byte().argmax(-1), AXES),
    Op("var", lambda x: x.var(), torch.var, ((7,), (3, 5), (2, 3, 4)), grad=True, tolerance=(1e-2, 1e-6)),
    Op("var_exact", lambda x: x.var(), torch.var, ((7,), (3, 5), (2, 3, 4)), grad=True, dtypes=("float32", "float64")),
    Op("var_1", lambda x: x.var(1, correction=0), lambda x: x.var(1, correction=0), ROWS, grad=True),
    Op("std", lambda x: x.std(), torch.std, ((7,), (3, 5), (2, 3, 4)), grad=True),
    Op("std_keep", lambda x: x.std(-1, keepdim=True, correction=2), lambda x: x.std(-1, keepdim=True, correction=2),
       ((3, 5), (2, 3, 4)), grad=True),
    Op("var_mean", lambda x: x.var_mean(1), partial(torch.var_mean, dim=1), ((3, 5), (2, 3, 4)), grad=True),
    Op("std_mean", lambda x: x.std_mean(), torch.std_mean, ((3, 5), (2, 3, 4)), grad=True),
    Op("logsumexp", lambda x: x.logsumexp(), lambda x: torch.logsumexp(x.flatten(), 0), ((), *AXES), grad=True,
       special=True, signs=False),
    Op("logsumexp_1", lambda x: x.logsumexp(1, keepdim=True), lambda x: torch.logsumexp(x, 1, keepdim=True),
       ((3, 5), (2, 3, 4), (0, 2)), grad=True),
]

CUMULATIVE = [
    Op("cumsum", lambda x: x.cumsum(), partial(torch.cumsum, dim=0), (*UNARY, *LONG), grad=True, dtypes=(*SMALL, "bool"),
       tolerance=(1e-5, 1e-5), special=True, signs=False),
    Op("cumsum_last", lambda x: x.cumsum(-1), partial(torch.cumsum, dim=-1), (*ROWS, *LONG), grad=True,
       dtypes=("float16", "int8", "uint8"), tolerance=(1e-3, 1e-3)),
    Op("cumprod", lambda x: x.cumprod(0), partial(torch.cumprod, dim=0), (*UNARY, *LONG), grad=True, dtypes=SMALL,
       domain=(0.8, 1.2), tolerance=(1e-5, 1e-6)),
    Op("cumprod_1", lambda x: x.cumprod(1), partial(torch.cumprod, dim=1), ROWS, grad=True),
    Op("cummax", lambda x: x.cummax(), partial(torch.cummax, dim=0), (*UNARY, *LONG), dtypes=(*FLOATS, *INTS),
       special=True, signs=False),
    Op("cummax_values", lambda x: x.cummax(-1)[0], lambda x: torch.cummax(x, -1)[0], AXES, grad=True, distinct=True),
    Op("cummin", lambda x: x.cummin(-1), partial(torch.cummin, dim=-1), (*UNARY, *LONG), dtypes=(*FLOATS, *INTS),
       special=True, signs=False),
    Op("cummin_values", lambda x: x.cummin(0)[0], lambda x: torch.cummin(x, 0)[0], AXES, grad=True, distinct=True),
    Op("logcumsumexp", lambda x: x.logcumsumexp(), partial(torch.logcumsumexp, dim=0), (*UNARY, *LONG), grad=True,
       dtypes=("float32", "float64"), tolerance=(1e-5, 1e-5), special=True, signs=False),
    Op("logcumsumexp_last", lambda x: x.logcumsumexp(-1), partial(torch.logcumsumexp, dim=-1), ROWS, grad=True,
       domain=(-90, 90), dtypes=("float32", "float64")),
]

SORTED = ((), (1,), (0,), (7,), (3, 5), (2, 3, 4), (65,), (3, 100))


def stable(x: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


SORTING = [
    Op("sort", lambda x: x.sort(), stable, SORTED, dtypes=ALL, special=True),
    Op("sort_descending", lambda x: x.sort(descending=True), partial(stable, descending=True), SORTED, dtypes=ALL,
       special=True),
    Op("sort_0", lambda x: x.sort(0), partial(stable, dim=0), SORTED),
    Op("sort_values", lambda x: x.sort(0)[0], lambda x: stable(x, 0)[0], (*AXES, (70, 2)), grad=True, distinct=True),
    Op("argsort", lambda x: x.argsort(), partial(torch.argsort, stable=True), SORTED, dtypes=ALL, special=True),
    Op("argsort_0", lambda x: x.argsort(0, descending=True), partial(torch.argsort, dim=0, descending=True, stable=True),
       SORTED),
    Op("topk", lambda x: x.topk(1), lambda x: [t[..., :1] for t in stable(x, -1, True)], AXES, dtypes=ALL, special=True),
    Op("topk_3", lambda x: x.topk(3), lambda x: [t[..., :3] for t in stable(x, -1, True)], ((7,), (3, 5), (2, 3, 4), (3, 100)),
       distinct=True),
    Op("topk_values", lambda x: x.topk(2, 1)[0], lambda x: torch.topk(x, 2, 1)[0], ((3, 5), (2, 3, 4)), grad=True,
       distinct=True),
    Op("topk_least", lambda x: x.topk(2, 0, largest=False), lambda x: [t[:2] for t in stable(x, 0)],
       ((7,), (3, 5), (2, 3, 4), (70, 2)), distinct=True, dtypes=("float32", "float64")),
]

OPS = [*REDUCTIONS, *CUMULATIVE, *SORTING]
