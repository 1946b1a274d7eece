"""Mistakes raise at the call, in weft's types and Python's own, and name the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, counters, dtypes


def t(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype)


SHAPE_ERRORS: dict[str, Callable[[], Any]] = {
    "reshape": lambda: t(2, 3).reshape(4, 2),
    "reshape two -1": lambda: t(2, 3).reshape(-1, -1),
    "reshape -1 of nothing": lambda: t(2, 3).reshape(4, -1),
    "add": lambda: t(2, 3) + t(2),
    "iadd grows": lambda: t(3).__iadd__(t(2, 3)),
    "assign": lambda: t(2).assign(t(3)),
    "setitem": lambda: t(4).__setitem__(slice(0, 2), t(3)),
    "expand": lambda: t(2, 3).expand(4, 3),
    "write to expanded": lambda: t(1).expand(3).assign(t(3)),
    "update expanded": lambda: t(1).expand(3).__iadd__(1),
    "update windows": lambda: t(5).unfold(0, 3, 1).__iadd__(1),
    "permute": lambda: t(2, 3).permute(0, 0),
    "shrink": lambda: t(3).shrink(((1, 5),)),
    "unfold": lambda: t(3).unfold(0, 4, 1),
    "as_strided": lambda: t(4).as_strided((3,), (2,), 0),
    "cat": lambda: t(2, 3).cat(t(3, 3), dim=1),
    "stack": lambda: t(2).stack(t(3)),
    "matmul": lambda: t(2, 3) @ t(2, 3),
    "matmul of a number": lambda: t(2, 3) @ 2,
    "matmul 0-d": lambda: t() @ t(2),
    "max of nothing": lambda: t(0).max(),
    "min of nothing": lambda: t(2, 0).min(axis=1),
    "bool": lambda: bool(t(2)),
    "item": lambda: t(2).item(),
    "huge size": lambda: t(3).reshape(2**70),
    "negative size": lambda: t(-1),
    "ragged": lambda: Tensor([[1, 2], [3]]),
    "pad": lambda: t(2, 2).pad(((1, 1),)),
    "where": lambda: (t(2) > 0).where(t(3), 0),
    "squeeze": lambda: t(2, 1).reshape(3),
}

INDEX_ERRORS: dict[str, Callable[[], Any]] = {
    "getitem": lambda: t(3)[3],
    "getitem negative": lambda: t(3)[-4],
    "getitem of nothing": lambda: t(0)[0],
    "too many": lambda: t(3)[0, 0],
    "no axis": lambda: t()[0],
    "huge": lambda: t(3)[2**70],
    "two ellipses": lambda: t(2, 2)[..., ...],
    "setitem": lambda: t(3).__setitem__(3, 1),
    "axis": lambda: t(2, 3).sum(axis=2),
    "transpose": lambda: t(2, 3).transpose(0, 2),
    "flip": lambda: t(2).flip(1),
    "size": lambda: t(2).size(1),
    "str": lambda: t(3)["a"],  # type: ignore[index]
    "float": lambda: t(3)[1.0],  # type: ignore[index]
}

DTYPE_ERRORS: dict[str, Callable[[], Any]] = {
    "dtype": lambda: t(2, dtype="float31"),
    "void": lambda: t(2, dtype=dtypes.void),
    "bitcast": lambda: t(2).bitcast(dtypes.bool),
    "and": lambda: t(2) & t(2),
    "shift": lambda: t(2) << 1,
    "strings": lambda: Tensor(np.array(["a"])),
    "objects": lambda: Tensor([None]),
    "complex": lambda: Tensor(np.array([1j])),
    "large list": lambda: Tensor([2**40]),
    "large number": lambda: t(2) + 2**70,
}

TYPE_ERRORS: dict[str, Callable[[], Any]] = {
    "operand": lambda: t(2) + "a",  # type: ignore[operator]
    "method": lambda: t(2).add("a"),  # type: ignore[arg-type]
    "len": lambda: len(t()),
    "iter": lambda: list(t()),
    "data": lambda: Tensor("abc"),
    "data of nothing": lambda: Tensor(None),
    "shape": lambda: t(2).reshape("a"),  # type: ignore[arg-type]
    "cat": lambda: t(2).cat(3),  # type: ignore[arg-type]
    "dtype": lambda: t(2).cast(3),  # type: ignore[arg-type]
    "realize": lambda: t(2).realize(3),  # type: ignore[arg-type]
    "float size": lambda: t(2).reshape(2.0),  # type: ignore[arg-type]
}

DEVICE_ERRORS: dict[str, Callable[[], Any]] = {
    "none such": lambda: Tensor.zeros(2, device="TPU"),
    "two": lambda: Tensor.zeros(2, device="REF") + Tensor.zeros(2, device="NULL"),
    "assign": lambda: Tensor.zeros(2, device="REF").assign(Tensor.zeros(2, device="NULL")),
    "cat": lambda: Tensor.zeros(2, device="REF").cat(Tensor.zeros(2, device="NULL")),
}


def raises(kind: type[Exception], python: type[Exception], wrong: Callable[[], Any]) -> None:
    counters.reset()
    with pytest.raises(kind) as caught:
        wrong()
    assert isinstance(caught.value, python) and isinstance(caught.value, weft.Error)
    assert str(caught.value).startswith("[") and "]" in str(caught.value)
    assert counters.kernels == 0


@pytest.mark.parametrize("name", SHAPE_ERRORS)
def test_shape_errors(name: str) -> None:
    raises(weft.ShapeError, ValueError, SHAPE_ERRORS[name])


@pytest.mark.parametrize("name", INDEX_ERRORS)
def test_index_errors(name: str) -> None:
    raises(weft.IndexError, IndexError, INDEX_ERRORS[name])


@pytest.mark.parametrize("name", DTYPE_ERRORS)
def test_dtype_errors(name: str) -> None:
    raises(weft.DTypeError, TypeError, DTYPE_ERRORS[name])


@pytest.mark.parametrize("name", DEVICE_ERRORS)
def test_device_errors(name: str) -> None:
    raises(weft.DeviceError, RuntimeError, DEVICE_ERRORS[name])


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_type_errors(name: str) -> None:
    with pytest.raises(TypeError):
        TYPE_ERRORS[name]()


def test_messages_say_what_was_given() -> None:
    with pytest.raises(weft.ShapeError, match=r"\[reshape\] cannot view \(2,3\) as \(4,2\): 6 elements against 8"):
        t(2, 3).reshape(4, 2)
    with pytest.raises(weft.DeviceError, match="REF.*NULL|NULL.*REF"):
        DEVICE_ERRORS["two"]()
    with pytest.raises(weft.DeviceError, match="REF"):
        DEVICE_ERRORS["none such"]()


def test_a_fill_of_an_expanded_view_is_allowed() -> None:
    a = t(1)
    a.expand(3).assign(4)
    assert a.tolist() == [4]


def test_the_last_of_overlapping_writes_wins() -> None:
    a = t(4)
    a.unfold(0, 2, 1).assign(Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert a.tolist() == [1, 3, 5, 6]


@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_unready_tensor_is_refused() -> None:
    raw = Tensor.__new__(Tensor)
    for wrong in (lambda: raw + 1, lambda: t(2) + raw, lambda: t(2).cat(raw), lambda: raw.shape):
        with pytest.raises((TypeError, RuntimeError)):
            wrong()
