"""no_grad and enable_grad: contexts and decorators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ParamSpec, TypeVar

from weft._core import gradients_are_on, set_gradients

P = ParamSpec("P")
R = TypeVar("R")


def within(context: AbstractContextManager[object], function: Callable[P, R]) -> Callable[P, R]:
    """The function, each call of which runs in the context."""
    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with context:
            return function(*args, **kwargs)

    return wrapped


class _GradMode:
    _on: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(gradients_are_on())
        set_gradients(self._on)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        set_gradients(self._before.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            with type(self)():
                return function(*args, **kwargs)

        return wrapped


class no_grad(_GradMode):
    """Operations within it are not differentiated; also a decorator.

    A write within it leaves the gradient of what it overwrites as it was.

    >>> w = Tensor([1.0, 2.0], requires_grad=True)
    >>> _ = (w * w).sum().backward()
    >>> with no_grad():
    ...     w -= 0.5 * w.grad
    >>> w.tolist(), w.requires_grad
    ([0.0, 0.0], True)
    """

    _on = False


class enable_grad(_GradMode):
    """Operations within it are differentiated, also inside of no_grad."""

    _on = True
