"""Every operation of the tables that has a gradient has PyTorch's."""

import numpy as np
import pytest

from weft import Tensor

torch = pytest.importorskip("torch")

from gradients import check_gradients, check_second_gradients  # noqa: E402
from op_table import UNARY, Op, all_tables, name_of  # noqa: E402
from tables_activations import OPS as ACTIVATIONS  # noqa: E402
from tables_maths import OPS as MATHS  # noqa: E402

OPS = [op for op in all_tables("OPS") if op.grad]


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_gradients(op: Op) -> None:
    check_gradients(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_after_values(op: Op) -> None:
    check_gradients(op, "float32", "CPU", realize=True)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_second_gradients(op: Op) -> None:
    check_second_gradients(op)


# Where formulas have sides, are flat or overflow.
EDGES = [0.0, -0.0, 1.0, -1.0, 6.0, 3.0, -3.0, 20.0, -20.0, 100.0, -100.0, 1e4, -1e4]
SMOOTH = [op for op in ACTIVATIONS if op.grad and not op.name.startswith(("softmax", "softmin", "log_softmax", "layer", "norm"))]
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
