"""weft.custom_kernel: kernels written on weft.ir, called on tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft._core import DType, Ops, Tensor, UOp, call_custom_kernel


def custom_kernel(build: Callable[..., Any], outputs: Sequence[tuple[Any, DType | str]], inputs: Sequence[Tensor] = (), *,
                  name: str | None = None, device: str | None = None) -> Any:
    """New tensors that a kernel of one's own writes, when one of them is asked for.

    `build` gets the memory of each output, a pair of shape and dtype, then that of each input, as UOps,
    and gives what the kernel does: a SINK, or the effects of one. Elements are in row-major order. The
    kernel has to write all elements of its outputs, and to stay within its memory. An access that is known to
    leave it raises an IndexError; at an index or behind a gate that depends on values, nothing checks that.
    Inputs are those of the call, whatever is written to them later. Gradients do not pass: weft.function
    gives one. The result is a Tensor, or a tuple of them where there are several outputs. A kernel equal
    to one of an earlier call is not compiled again.

    >>> from weft import custom_kernel
    >>> from weft.ir import UOp
    >>> def double(out, x):
    ...     i = UOp.range(3, 0)
    ...     return out.index(i).assign(x.index(i).load() * 2).end(i)
    >>> custom_kernel(double, [((3,), "int32")], [Tensor([1, 2, 3])]).tolist()
    [2, 4, 6]
    """
    kinds = [((shape,) if isinstance(shape, int) else tuple(shape), dtype if isinstance(dtype, DType) else DType(dtype))
             for shape, dtype in outputs]
    for x in inputs:
        if not isinstance(x, Tensor):
            raise TypeError(f"[custom_kernel] a Tensor is needed, not {type(x).__name__}")
    memory = [*((dtype, math.prod(shape)) for shape, dtype in kinds), *((x.dtype, x.numel()) for x in inputs)]
    made = build(*(UOp.define_global(dtype, size, i) for i, (dtype, size) in enumerate(memory)))
    if isinstance(made, UOp) and made.op is not Ops.SINK:
        made = UOp.sink(made)
    elif not isinstance(made, UOp):
        made = UOp.sink(*made)
    label = name if name is not None else getattr(build, "__name__", "custom")
    tensors = call_custom_kernel(made, label if label.isidentifier() else "custom", kinds, list(inputs), device or "")
    return tensors[0] if len(tensors) == 1 else tuple(tensors)
