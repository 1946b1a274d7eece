"""jit: functions of tensors whose kernels are found once and run again."""

from __future__ import annotations

import functools
import gc
import os
import traceback
from collections.abc import Callable
from types import MethodType
from typing import Any, Generic, TypeVar, cast

from weft._core import JitCapture, Tensor, default_float, default_int, is_capturing, is_recording
from weft._guards import PLAIN, Guards, Same, freeze, walk
from weft._variable import BoundVariable, Variable, WatchedInt, WatchedVariable
from weft.errors import JitError

MOST_CAPTURES = 8
MOST_CALLS = 256  # with different values of variables, that one capture has kernels of their own for
MOST_COMPARED = 16
MOST_SEEN = 64
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))

Result = TypeVar("Result")
Tree = Any  # nested lists, tuples and dicts


class _Kernels:
    def __init__(self, kernels: JitCapture, tree: Tree) -> None:
        self.kernels = kernels
        self.tree = tree  # of the result, with _Output where there is a tensor


Call = tuple[Any, ...]  # the values of a call's variables, and the shapes of its tensors


class _Capture:
    """Kernels for all values of the variables that they are right for, or for those of single calls: where the function
    uses a number as Python alone can (`range(n)`)."""

    def __init__(self, kernels: JitCapture, guards: Guards, tree: Tree, call: Call) -> None:
        self.guards = guards
        self.general: _Kernels | None = None
        self.of_calls = {call: _Kernels(kernels, tree)}  # those used last are the last ones

    def kernels_for(self, tensors: list[Tensor], bound: dict[Variable, int]) -> _Kernels | None:
        if self.general is not None:
            return self.general
        if len(self.of_calls) == 1:
            return next(iter(self.of_calls.values()))
        call = _call_of(tensors, bound)
        own = self.of_calls.pop(call, None)
        if own is not None:
            self.of_calls[call] = own
        return own

    def kernels(self) -> list[_Kernels]:
        return [self.general] if self.general is not None else list(self.of_calls.values())

    def keep(self, is_kept: Callable[[_Kernels], bool]) -> bool:
        """Lets go of other kernels; whether some are left."""
        if self.general is not None:
            return is_kept(self.general)
        self.of_calls = {call: kernels for call, kernels in self.of_calls.items() if is_kept(kernels)}
        return bool(self.of_calls)

    def add(self, older: _Capture) -> None:
        self.of_calls = {**older.of_calls, **self.of_calls}
        while len(self.of_calls) > MOST_CALLS:
            del self.of_calls[next(iter(self.of_calls))]


def _same_ranks(a: Call, b: Call) -> bool:
    return len(a[1]) == len(b[1]) and all(len(x) == len(y) for x, y in zip(a[1], b[1]))


def _call_of(tensors: list[Tensor], bound: dict[Variable, int]) -> Call:
    return tuple(bound.values()), tuple(t.shape for t in tensors) if bound else ()


class _Output:
    """A tensor of a result: an output of the kernels, or an argument itself."""

    __slots__ = ("argument", "number")

    def __init__(self, number: int, argument: int | None) -> None:
        self.number = number
        self.argument = argument


class jit(Generic[Result]):
    """A function whose kernels are captured in one call and replayed in later ones.

    The first call with arguments of a kind runs the function, the second captures it, all others run
    the kernels alone, on the tensors that they are given and on what the tensors hold that the
    function uses by name. Results are those of the function: what would make them others (shapes,
    dtypes, shared memory, numbers that the code names) is compared before each replay, and captured
    anew when it has changed. No gradient passes out of the function: backward() is called inside of it.

    >>> from weft import Tensor, jit
    >>> total = Tensor([0.0, 0.0])
    >>> @jit
    ... def add(x):
    ...     total.assign(total + x)
    ...     return total.sum()
    >>> [add(Tensor([1.0, i])).item() for i in range(4)]
    [1.0, 3.0, 6.0, 10.0]
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        if not callable(function):
            raise TypeError(f"[jit] a function is needed, not {type(function).__name__}")
        functools.update_wrapper(self, function)
        self.function = function
        self._captures: dict[Any, list[_Capture]] = {}
        self._seen: dict[Any, Guards] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        if is_capturing() or is_recording():  # it becomes a part of the function that calls it
            return self.function(*args, **kwargs)
        tensors: list[Tensor] = []
        bound: dict[Variable, int] = {}
        key = default_float(), default_int(), _flatten((args, kwargs), tensors, bound)
        values = tuple(bound.values())
        for capture in self._captures.get(key, ()):
            if not capture.guards.hold():
                continue
            kernels = capture.kernels_for(tensors, bound)
            outputs = kernels.kernels.replay(tensors, values) if kernels is not None else None
            if kernels is not None and outputs is not None:
                return cast(Result, _with_tensors(kernels.tree, outputs, tensors))
        self._drop_spent(key)
        seen = self._seen.get(key)
        if seen is not None and seen.hold():
            return self._capture(key, args, kwargs, tensors, bound)
        result = self.function(*args, **kwargs)
        outputs = [leaf for leaf in walk(result) if isinstance(leaf, Tensor)]
        if outputs:
            outputs[0].realize(*outputs[1:])
            result = _replace(result, (t if t.is_leaf else t.detach() for t in outputs))
        self._seen.pop(key, None)
        self._seen[key] = Guards(self.function, args, kwargs)
        while len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def reset(self) -> None:
        """Forgets what was captured, and the tensors that it holds."""
        self._captures.clear()
        self._seen.clear()

    @property
    def captures(self) -> int:
        """How many there are."""
        return sum(len(captures) for captures in self._captures.values())

    def _capture(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor],
                 bound: dict[Variable, int]) -> Result:
        guards: Guards | None = None
        tree: Tree = None

        def function(proxies: list[Tensor]) -> list[Tensor]:
            nonlocal guards, tree
            guards = Guards(self.function, args, kwargs)  # the arguments' own memory is known
            outputs: list[Tensor] = []
            places = {id(proxy): i for i, proxy in enumerate(proxies)}
            proxied_args, proxied_kwargs = _replace((args, kwargs), iter(proxies), WatchedVariable)
            try:
                result = self.function(*proxied_args, **proxied_kwargs)
            except JitError as error:
                raise _with_line(error) from None
            tree = _result_tree(result, outputs, places)
            return outputs

        variables = [(v.name, v.min, v.max, value) for v, value in bound.items()]
        kernels, outputs = JitCapture.run(tensors, function, gc.collect, variables)
        assert guards is not None
        changed = guards.changed()
        if changed is not None:
            raise JitError(f"[jit] {self._name()} changes {changed}, which its code names: a replay would not; write to "
                           f"a Tensor with assign(), or change it outside")
        if kernels is not None:
            captures = self._captures.setdefault(key, [])
            captures.insert(0, _Capture(kernels, guards, tree, _call_of(tensors, bound)))
            if bound:
                self._merge(captures)
            self._forget(key)
        return cast(Result, _with_tensors(tree, outputs, tensors))

    def _merge(self, captures: list[_Capture]) -> None:
        """One capture in the place of some: with kernels for all values of the variables where these say enough, else with
        those of each."""
        newest = captures[0]
        (own,) = newest.of_calls.values()
        (call,) = newest.of_calls
        alike = [capture for capture in captures[1:] if capture.guards.hold()]
        same = [kernels.kernels for capture in reversed(alike) for kernels in capture.kernels()
                if _same_tree(kernels.tree, own.tree)]
        general = JitCapture.merged([*same[1 - MOST_COMPARED:], own.kernels])
        if general is not None:
            newest.general = _Kernels(general, own.tree)
            alike = [capture for capture in alike if not capture.keep(lambda k: not (
                _same_tree(k.tree, own.tree) and general.replaces(k.kernels)))]
        else:
            alike = [capture for capture in alike if capture.general is None and _same_ranks(next(iter(capture.of_calls)), call)]
            for capture in alike:
                newest.add(capture)
        captures[:] = [capture for capture in captures if capture not in alike]

    def _drop_spent(self, key: Any) -> None:
        """Captures that a new one with faster kernels is to take the place of."""
        captures = [capture for capture in self._captures.pop(key, ()) if capture.keep(lambda k: not k.kernels.is_spent)]
        if captures:
            self._captures[key] = captures

    def _forget(self, newest: Any) -> None:
        """The oldest captures, of this kind of call last."""
        captures = self._captures.pop(newest)
        del captures[MOST_CAPTURES:]
        self._captures[newest] = captures
        while self.captures > MOST_CAPTURES:
            oldest = next(iter(self._captures))
            self._captures[oldest].pop()
            if not self._captures[oldest]:
                del self._captures[oldest]

    def _name(self) -> str:
        return getattr(self.function, "__name__", "the function")


def _with_line(error: JitError) -> JitError:
    """The same, which names the line of the program that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDER)]
    if not own:
        return error
    return JitError(f"{error}; line {own[-1].lineno} of {own[-1].filename}: {own[-1].line}").with_traceback(
        error.__traceback__)


# --------------------------------------------------------------------------------------- arguments


def _flatten(value: Tree, tensors: list[Tensor], bound: dict[Variable, int]) -> Any:
    """The tensors of an argument, and the values of variables; all else of it as a key."""
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return Tensor
    if kind is BoundVariable:
        if bound.setdefault(value.variable, value.val) != value:
            raise JitError(f"[jit] {value.variable.name} is bound to {bound[value.variable]} and to {value.val} in "
                           f"one call")
        return kind, value.variable
    if kind is tuple or kind is list:
        return kind, *[_flatten(part, tensors, bound) for part in value]
    if kind is dict:
        return kind, *[(freeze(name), _flatten(part, tensors, bound)) for name, part in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind, *[_flatten(part, tensors, bound) for part in value]
    is_object = hasattr(value, "__dict__") and not isinstance(value, MethodType)
    return Same(value) if is_object else freeze(value)  # what the code reads of an object is guarded


def _replace(value: Tree, tensors: Any, of_variable: Callable[[BoundVariable], Any] = lambda bound: bound) -> Any:
    """The same with the next tensors in the place of tensors, and others in the place of variables."""
    kind = type(value)
    if kind is Tensor:
        return next(tensors)
    if kind is BoundVariable:
        return of_variable(value)
    if kind is tuple or kind is list:
        return kind(_replace(part, tensors, of_variable) for part in value)
    if kind is dict:
        return {name: _replace(part, tensors, of_variable) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_replace(part, tensors, of_variable) for part in value))
    return value


# ----------------------------------------------------------------------------------------- results


def _result_tree(value: Any, outputs: list[Tensor], arguments: dict[int, int]) -> Tree:
    kind = type(value)
    if kind is Tensor:
        outputs.append(value)
        return _Output(len(outputs) - 1, arguments.get(id(value)))
    if kind is tuple or kind is list:
        return kind(_result_tree(part, outputs, arguments) for part in value)
    if kind is dict:
        return {name: _result_tree(part, outputs, arguments) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_result_tree(part, outputs, arguments) for part in value))
    if isinstance(value, WatchedInt):
        return int(value)
    if kind in PLAIN or kind is float or kind is BoundVariable:
        return value
    raise JitError(f"[jit] a function that is captured returns Tensors, numbers and text, in lists, tuples and dicts, "
                   f"not {kind.__name__}")


def _same_tree(a: Tree, b: Tree) -> bool:
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is _Output:
        return bool(a.number == b.number and a.argument == b.argument)
    if kind is dict:
        return list(a) == list(b) and all(_same_tree(a[name], b[name]) for name in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(_same_tree(x, y) for x, y in zip(a, b))
    return bool(freeze(a) == freeze(b))


def _with_tensors(tree: Tree, outputs: list[Tensor], tensors: list[Tensor]) -> Any:
    kind = type(tree)
    if kind is _Output:
        return outputs[tree.number] if tree.argument is None else tensors[tree.argument]
    if kind is tuple or kind is list:
        return kind(_with_tensors(part, outputs, tensors) for part in tree)
    if kind is dict:
        return {name: _with_tensors(part, outputs, tensors) for name, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*(_with_tensors(part, outputs, tensors) for part in tree))
    return tree
