"""Tests as programs of a device: run on PyTorch's CPU and on device weft, they must give the same.

    @same_on_both
    def test_a_slice_sees_its_base(d):
        a = numbers(d, 4)
        s = a[1:]
        a.mul_(2)
        return a, s

What a program returns is compared: of tensors the values, shapes, strides, offsets and dtypes; anything else by `==`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("weft.torch", reason="the build has no weft.torch", exc_type=ImportError)

import torch

DEVICES = ("cpu", "weft")
Program = Callable[[str], Any]


def numbers(device: str, *shape: int, first: float = 1) -> torch.Tensor:
    """first, first + 1, ... in this shape."""
    return torch.arange(first, first + torch.Size(shape).numel(), dtype=torch.float32).reshape(shape).clone().to(device)


def complexes(device: str, *shape: int, first: float = 1) -> torch.Tensor:
    return torch.view_as_complex(numbers(device, *shape, 2, first=first))


def assert_same(expected: Any, actual: Any, **tolerance: float) -> None:
    """`actual` is on device weft what `expected` is on the CPU."""
    if isinstance(expected, (list, tuple)):
        assert type(expected) is type(actual) and len(expected) == len(actual)
        for e, a in zip(expected, actual):
            assert_same(e, a, **tolerance)
    elif isinstance(expected, torch.Tensor):
        assert actual.device.type == "weft"
        for what in ("shape", "dtype", "layout", "requires_grad"):
            assert getattr(expected, what) == getattr(actual, what), what
        assert strides_that_matter(expected) == strides_that_matter(actual)
        assert expected.storage_offset() == actual.storage_offset()
        assert (expected.is_conj(), expected.is_neg()) == (actual.is_conj(), actual.is_neg())
        tolerance = tolerance or {"rtol": 0, "atol": 0}
        torch.testing.assert_close(actual.detach().cpu(), expected.detach(), equal_nan=True, **tolerance)
    else:
        assert expected == actual


def strides_that_matter(tensor: torch.Tensor) -> list[int]:
    """Those of axes that are gone along."""
    if tensor.numel() == 0:
        return []
    return [stride for stride, size in zip(tensor.stride(), tensor.shape) if size != 1]


def without_device(message: str) -> str:
    return re.sub(r"(torch\.|weft)(\w+)(Tensor|Type)\b", r"\2", message.replace("weft:0", "cpu"))


def same_on_both(program: Program) -> Callable[[], None]:
    return _test_of(program, {})


def close_on_both(program: Program) -> Callable[[], None]:
    """The same up to the rounding of float32."""
    return _test_of(program, {"rtol": 1e-4, "atol": 1e-5})


def raises_on_both(error: type[Exception]) -> Callable[[Program], Callable[[], None]]:
    """The program raises this error on both devices, with the same first line."""

    def test_of(program: Program) -> Callable[[], None]:
        def test() -> None:
            messages = []
            for device in DEVICES:
                with pytest.raises(error) as raised:
                    program(device)
                messages.append(without_device(str(raised.value).split("\n")[0]))
            assert messages[0] == messages[1]

        return _named(test, program)

    return test_of


def _test_of(program: Program, tolerance: dict[str, float]) -> Callable[[], None]:
    def test() -> None:
        results = []
        for device in DEVICES:
            torch.manual_seed(0)
            results.append(program(device))
        assert_same(*results, **tolerance)

    return _named(test, program)


def _named(test: Callable[[], None], program: Program) -> Callable[[], None]:
    test.__name__, test.__qualname__, test.__doc__ = program.__name__, program.__qualname__, program.__doc__
    test.__module__ = program.__module__
    return test
