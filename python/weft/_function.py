"""weft.function: operations with a gradient of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft._core import Tensor, gradients_are_on, with_gradient
from weft._grad import no_grad
from weft.errors import Error

Backward = Callable[..., Any]


class Saved:
    """What the forward of a weft.function gives where its backward reads something else than the arguments."""

    def __init__(self, result: Any, *values: Any) -> None:
        self.result = result
        self.values = values


class function:
    """A function of tensors with a gradient of its own.

    The function is computed without gradients; `backward` gets the gradient by each of its results, then
    the arguments as they were, and gives the gradient by each argument that is a Tensor, or None.

    >>> from weft import function
    >>> @function
    ... def clipped(x):
    ...     return x.clamp(-1, 1)
    >>> @clipped.backward
    ... def _(grad, x):
    ...     return grad * 0.5  # also where it is clipped
    >>> x = Tensor([0.5, 3.0], requires_grad=True)
    >>> _ = clipped(x).sum().backward()
    >>> x.grad.tolist()
    [0.5, 0.5]

    A function that gives `Saved(result, *values)` has its backward called with these values in place of
    the arguments. A backward made of operations that have gradients can be differentiated again, by what
    it reads of arguments and results; other values that are saved are constants.

    >>> from weft import Saved
    >>> @function
    ... def exp(x):
    ...     y = x.exp()
    ...     return Saved(y, y)
    >>> @exp.backward
    ... def _(grad, y):
    ...     return grad * y
    >>> x = Tensor([0.0], requires_grad=True)
    >>> (by_x,) = exp(x * 2).gradient(x)
    >>> by_x.item(), by_x.gradient(x)[0].item()
    (2.0, 4.0)
    """

    def __init__(self, forward: Callable[..., Any]) -> None:
        if not callable(forward):
            raise TypeError(f"[function] a function is needed, not {type(forward).__name__}")
        functools.update_wrapper(self, forward)
        self.forward = forward
        self._backward: Backward | None = None

    def backward(self, backward: Backward) -> Backward:
        """Sets the gradient: a decorator."""
        self._backward = backward
        return backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs = [a for a in args if isinstance(a, Tensor)]
        if not gradients_are_on() or not any(x.requires_grad for x in inputs):
            with no_grad():
                given = self.forward(*args, **kwargs)
            return given.result if isinstance(given, Saved) else given
        before = [a.clone() if isinstance(a, Tensor) else a for a in args]  # writes to the arguments come later
        with no_grad():
            given = self.forward(*args, **kwargs)
        result, values = (given.result, given.values) if isinstance(given, Saved) else (given, None)
        results = [result] if isinstance(result, Tensor) else list(result)
        tensors = [r for r in results if isinstance(r, Tensor)]
        saved = before if values is None else [_saved(v, args, before, tensors) for v in values]
        linked = iter(with_gradient(tensors, inputs, _call(self._name(), lambda: self._backward, saved, kwargs, values is None)))
        outputs = [next(linked) if isinstance(r, Tensor) else r for r in results]
        return outputs[0] if isinstance(result, Tensor) else type(result)(outputs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _name(self) -> str:
        return getattr(self, "__name__", type(self.forward).__name__)


class _Result:
    """A result that was saved: its values, and which one it is."""

    def __init__(self, values: Tensor, number: int) -> None:
        self.values = values
        self.number = number


def _saved(value: Any, args: Sequence[Any], before: Sequence[Any], results: Sequence[Tensor]) -> Any:
    for i, result in enumerate(results):
        if value is result:
            return _Result(value.detach().clone(), i)
    for given, held in zip(args, before):
        if value is given:
            return held
    return value.detach().clone() if isinstance(value, Tensor) else value


def _call(name: str, backward: Callable[[], Backward | None], saved: Sequence[Any], kwargs: dict[str, Any],
          with_kwargs: bool) -> Callable[..., Sequence[Tensor | None]]:
    def call(gradients: tuple[Tensor, ...], as_result: Callable[[Tensor, int], Tensor]) -> Sequence[Tensor | None]:
        function = backward()
        if function is None:
            raise Error(f"[function] {name} has no gradient: give it one by @{name}.backward")
        values = [as_result(v.values, v.number) if isinstance(v, _Result) else v for v in saved]
        by = function(*gradients, *values, **(kwargs if with_kwargs else {}))
        return by if isinstance(by, (tuple, list)) else (by,)

    return call
