"""Every operation of the tables against PyTorch: values, dtypes, layouts, and compiled."""

import pytest

pytest.importorskip("torch")

from op_table import Op, all_tables, check, check_layouts, name_of  # noqa: E402


@pytest.mark.parametrize("op", all_tables("OPS"), ids=name_of)
def test_values(op: Op) -> None:
    check(op)


@pytest.mark.parametrize("op", all_tables("IN_LAYOUTS"), ids=name_of)
def test_layouts(op: Op) -> None:
    check_layouts(op)


@pytest.mark.parametrize("op", all_tables("ON_THE_CPU"), ids=name_of)
def test_on_the_cpu(op: Op) -> None:
    check(op, dtypes=[op.dtypes[0]], device="CPU")
