"""Every operation of the tables that has a gradient has PyTorch's."""

import importlib
import pathlib

import pytest

pytest.importorskip("torch")

from gradients import check_gradients, check_second_gradients
from op_table import Op, name_of

TABLES = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("tables_*.py"))
OPS = [op for table in TABLES for op in importlib.import_module(table).OPS if op.grad]


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_gradients(op: Op) -> None:
    check_gradients(op)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_after_values(op: Op) -> None:
    check_gradients(op, "float32", "CPU", realize=True)


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_second_gradients(op: Op) -> None:
    check_second_gradients(op)
