"""Activations against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Tensor

torch = pytest.importorskip("torch")

from op_table import UNARY, Op, check, check_layouts, name_of  # noqa: E402
from tables_activations import OPS  # noqa: E402
from tables_maths import OPS as MATHS  # noqa: E402


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_values(op: Op) -> None:
    check(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_layouts(op: Op) -> None:
    check_layouts(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_on_the_cpu(op: Op) -> None:
    check(op, dtypes=[op.dtypes[0]], device="CPU")


# Where formulas have sides, are flat or overflow.
EDGES = [0.0, -0.0, 1.0, -1.0, 6.0, 3.0, -3.0, 20.0, -20.0, 100.0, -100.0, 1e4, -1e4]
SMOOTH = [op for op in OPS if op.grad and not op.name.startswith(("softmax", "softmin", "log_softmax", "layer", "norm"))]
FUNCTIONS = [op for op in MATHS if op.grad and op.shapes is UNARY and op.name not in ("acosh", "half", "bfloat16")]


@pytest.mark.parametrize("op", [*SMOOTH, *FUNCTIONS], ids=name_of)
def test_gradients_at_edges(op: Op) -> None:
    for dtype in ("float32", "float64"):
        array = np.array(EDGES, dtype)
        ours, theirs = Tensor(array), torch.from_numpy(array.copy()).requires_grad_()
        ours.requires_grad = True
        op.weft(ours).sum().backward()
        op.torch(theirs).sum().backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-4 if dtype == "float32" else 1e-6, 1e-6)
