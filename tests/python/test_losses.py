"""Losses against PyTorch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from op_table import Op, check, check_layouts, name_of  # noqa: E402
from tables_losses import OPS  # noqa: E402


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_values(op: Op) -> None:
    check(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_layouts(op: Op) -> None:
    check_layouts(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_on_the_cpu(op: Op) -> None:
    check(op, dtypes=[op.dtypes[0]], device="CPU")
