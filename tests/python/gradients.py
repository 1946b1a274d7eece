"""Gradients of the entries of tables of operations, compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from op_table import Op, arrays_of

import weft
from weft import Tensor

# Absolute too: where a gradient is a difference of large numbers.
TOLERANCES = {"float64": (1e-7, 1e-8), "float32": (2e-4, 2e-4)}


def weights_of(shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape, dtype=np.int64))
    return (0.5 + np.arange(count) % 7 * 0.25).reshape(shape)


def total_of(results: Any, is_ours: bool) -> Any:
    """The float results, weighted and summed."""
    total = None
    for x in results if isinstance(results, (tuple, list)) else [results]:
        if not x.is_floating_point():
            continue
        weights = weights_of(tuple(x.shape))
        part = (x.double() * (Tensor(weights, device=x.device) if is_ours else torch.from_numpy(weights))).sum()
        total = part if total is None else total + part
    return total


def check_gradients(op: Op, dtype: str = "float64", device: str | None = None, realize: bool = False) -> None:
    """Of every shape. With `realize` values are asked for before gradients are."""
    for entry in op.shapes:
        arrays = arrays_of(op, entry, dtype)
        if any(a.size == 0 for a in arrays):
            continue  # nothing is computed from them
        ours = [Tensor(a, device=device, requires_grad=a.dtype.kind == "f") for a in arrays]
        theirs = [torch.from_numpy(np.array(a)).requires_grad_(a.dtype.kind == "f") for a in arrays]
        result = op.weft(*ours)
        total, expected = total_of(result, True), total_of(op.torch(*theirs), False)
        if not expected.requires_grad:
            continue
        if realize:
            total.item()
        expected.backward()
        if total.requires_grad:  # else nothing of the arguments is in the result
            total.backward()
        relative, absolute = TOLERANCES[dtype]
        for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            if y.grad is None:
                continue
            mine = np.zeros(y.shape) if x.grad is None else x.grad.numpy()
            np.testing.assert_allclose(mine, y.grad.numpy(), relative, absolute, equal_nan=True,
                                       err_msg=f"{op.name}, by argument {i} of {[a.shape for a in arrays]}")


def check_second_gradients(op: Op) -> None:
    """Of the first shape with two or more elements: the gradient of the sum of the squared gradient."""
    for entry in op.shapes:
        arrays = arrays_of(op, entry, "float64")
        if not all(a.size > 1 for a in arrays):
            continue
        ours = [Tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
        theirs = [torch.from_numpy(np.array(a)).requires_grad_(a.dtype.kind == "f") for a in arrays]
        by = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # others have no second gradient
            expected = total_of(op.torch(*theirs), False)
        if not expected.requires_grad:
            return
        first = torch.autograd.grad(expected, [theirs[i] for i in by], create_graph=True, allow_unused=True)
        try:
            second_of(op, ours, theirs, by, first)
        except RuntimeError as error:
            if "is not implemented" not in str(error):  # by PyTorch
                raise
        return


def gradient_or_zero(result: Tensor, by: Tensor) -> Tensor:
    """Zeros where nothing of `by` is in the result: PyTorch has zeros there too."""
    try:
        return result.gradient(by)[0]
    except weft.Error as error:
        if "is not among" not in str(error):
            raise
        return by.detach() * 0


def second_of(op: Op, ours: list[Tensor], theirs: list[Any], by: list[int], first: Any) -> None:
    used = [i for i, g in zip(by, first, strict=True) if g is not None and g.requires_grad]
    if not used:
        return
    square = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
    second = torch.autograd.grad(square, [theirs[i] for i in used], allow_unused=True)
    result = total_of(op.weft(*ours), True)
    mine = [gradient_or_zero(result, ours[i]) for i in used]
    total = sum((g * g).sum() for g in mine)
    for i, y in zip(used, second, strict=True):
        if y is None or not bool((y != 0).any()):
            continue
        np.testing.assert_allclose(gradient_or_zero(total, ours[i]).numpy(), y.numpy(), 1e-6, 1e-7, equal_nan=True,
                                   err_msg=f"{op.name}, twice by argument {i}")
