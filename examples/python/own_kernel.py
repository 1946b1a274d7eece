"""A kernel of one's own and its gradient: softplus, written on weft.ir, used among other operations.

    python examples/python/own_kernel.py
"""

from __future__ import annotations

import sys

import numpy as np

from weft import Tensor, check, custom_kernel, function
from weft.ir import UOp


def softplus_kernel(out: UOp, x: UOp) -> UOp:
    """log(1 + exp(x)) of every element: max(x, 0) + log2(1 + exp2(-|x| log2(e))) log(2)."""
    i = UOp.range(x.src[0].arg, 0)  # the elements of its memory
    value = x.index(i).load()
    small = (value.max(value * -1.0) * -1.4426950408889634).exp2()
    return out.index(i).assign(value.max(0.0) + (small + 1.0).log2() * 0.6931471805599453).end(i)


@function
def softplus(x: Tensor) -> Tensor:
    result = custom_kernel(softplus_kernel, [(x.shape, x.dtype)], [x])
    assert isinstance(result, Tensor)
    return result


@softplus.backward
def _(grad: Tensor, x: Tensor) -> Tensor:
    return grad * x.sigmoid()


def main() -> int:
    x = Tensor(np.linspace(-4, 4, 10_000, dtype=np.float32), requires_grad=True)
    y = softplus(x * 2)
    (y * y).sum().backward()
    assert x.grad is not None
    ours, by_x = y.numpy(), x.grad.numpy()
    wide = 2 * np.linspace(-4, 4, 10_000, dtype=np.float64)
    exact = np.log1p(np.exp(wide))
    error = float(np.abs(ours - exact).max())
    gradient_error = float(np.abs(by_x - 4 * exact / (1 + np.exp(-wide))).max())
    check(lambda: softplus(Tensor([-1.0, 0.0, 30.0])))  # the same by the reference evaluator
    print(f"softplus of {x.numel()} numbers: wrong by at most {error:.1e}, its gradient by {gradient_error:.1e}")
    return 0 if error < 1e-5 and gradient_error < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
