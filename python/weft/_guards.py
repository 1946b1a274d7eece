"""What a captured function depends on beside its tensors: the values that its code names.

A function's code names global variables, cells of its closure, arguments, and attributes of them
(`self.layers`, `config.RATE`). Those are found in the bytecode, also in that of functions and methods
which are named there; what each of them was is compared before every replay.
"""

from __future__ import annotations

import builtins
import dis
import functools
import struct
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft._core import Tensor, tensor_identity
from weft._variable import BoundVariable

MOST_VALUES = 4096  # of one container, or object, with all inside of it
MISSING = object()
PLAIN = (bool, int, str, bytes, type(None), complex, type(Ellipsis))
LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST")
STORES = {"STORE_GLOBAL": "LOAD_GLOBAL", "STORE_DEREF": "LOAD_DEREF"}  # what is written is looked at, too
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR")
CONTAINERS = (list, tuple, dict, set, frozenset)

# ------------------------------------------------------------------------------------- values compared


class Same:
    """Equal only for the same object, while that lives."""

    __slots__ = ("number", "object")

    def __init__(self, value: object) -> None:
        self.number = id(value)
        try:
            self.object: Callable[[], object] = weakref.ref(value)
        except TypeError:
            self.object = lambda: value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.number == other.number and self.object() is other.object() is not None

    def __hash__(self) -> int:
        return self.number


def freeze(value: Any) -> Any:
    """Something that is equal only for what a function could not tell from `value`."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return kind, value
    return _freeze(value, [MOST_VALUES], set())


def _freeze(value: Any, left: list[int], inside: set[int]) -> Any:
    kind = type(value)
    left[0] -= 1
    if kind is float:
        return kind, struct.pack("d", value)  # NaN is itself, and -0.0 is not 0.0
    if kind is BoundVariable:
        return kind, value.variable, int(value)
    if kind in PLAIN:
        return kind, repr(value) if kind is complex else value
    if isinstance(value, Tensor):
        return tensor_identity(value)
    if isinstance(value, np.ndarray):
        return Same(value) if value.dtype.hasobject else (kind, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, types.MethodType):  # made anew whenever it is looked at
        return kind, Same(value.__func__), Same(value.__self__)
    if isinstance(value, types.BuiltinMethodType):
        return kind, value.__name__, Same(value.__self__)
    parts = _parts(value)
    if parts is None or left[0] < 0 or id(value) in inside:
        return Same(value)
    inside.add(id(value))
    frozen = tuple(_freeze(part, left, inside) for part in parts)
    inside.discard(id(value))
    return (kind, frozen) if isinstance(value, (*CONTAINERS, slice)) else (Same(value), frozen)


def _parts(value: Any) -> list[Any] | None:
    """What is inside of a container or of an object of a program's own class."""
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda part: (repr(type(part)), hash(part)))
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return None
    names = getattr(value, "__dict__", None)
    return [part for item in names.items() for part in item] if isinstance(names, dict) else None


# --------------------------------------------------------------------------------------- names in code


@functools.lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """(kind of load, name, attributes that follow) of what the code, and code inside of it, names."""
    found: dict[tuple[str, str, tuple[str, ...]], None] = {}
    chain: tuple[str, str, tuple[str, ...]] | None = None
    for step in dis.get_instructions(code):
        if chain is not None and step.opname in ATTRIBUTES:
            chain = (chain[0], chain[1], (*chain[2], str(step.argval)))
            continue
        if chain is not None and step.opname in ("COPY", "DUP_TOP"):  # self.x += 1
            continue
        if chain is not None:
            found[chain] = None
        chain = None
        if step.opname in STORES:
            found[(STORES[step.opname], step.argval, ())] = None
        for kind in LOADS:  # of two at once, both
            if step.opname.startswith(kind):
                names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                for name in names[:-1]:
                    found[(kind, name, ())] = None
                chain = (kind, names[-1], ())
    if chain is not None:
        found[chain] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update((named, None) for named in names_in(constant) if named[0] != "LOAD_FAST")
    return tuple(found)


class Place:
    """Where a value is found: in a dict, a cell or an object, then by attributes."""

    __slots__ = ("attributes", "label", "root")

    def __init__(self, root: Callable[[], Any], label: str, attributes: tuple[str, ...] = ()) -> None:
        self.root = root
        self.label = label
        self.attributes = attributes

    def get(self) -> Any:
        value = self.root()
        for name in self.attributes:
            value = getattr(value, name, MISSING)
        return value

    def then(self, attribute: str) -> Place:
        return Place(self.root, f"{self.label}.{attribute}", (*self.attributes, attribute))


def _in_dict(names: dict[str, Any], name: str) -> Callable[[], Any]:
    return lambda: names.get(name, MISSING)


def _in_cell(cell: types.CellType) -> Callable[[], Any]:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return MISSING
    return get


def _is(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


# -------------------------------------------------------------------------------------------- guards


class Guards:
    """The values that a function's code names, as they are now."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._expected: list[tuple[Place, Callable[[Any], Any], Any]] = []
        self._known: set[Any] = set()
        self._todo: list[tuple[types.FunctionType, dict[str, Place]]] = []
        self._call(function, Place(_is(function), getattr(function, "__name__", "function")), args, kwargs)
        while self._todo:
            self._read(*self._todo.pop())

    def changed(self) -> str | None:
        """The name of a value that is not what it was."""
        for place, seen_as, expected in self._expected:
            if seen_as(place.get()) != expected:
                return place.label
        return None

    def hold(self) -> bool:
        return self.changed() is None

    def _call(self, function: Any, place: Place, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> None:
        """The code of a function that is named, when it is a program's own."""
        first: tuple[Place, ...] = ()
        while True:
            if isinstance(function, types.MethodType):
                owner = function.__self__
                first = (Place(_is(owner), place.label.rpartition(".")[0] or "self"), *first)
                function = function.__func__
            elif hasattr(function, "__wrapped__"):  # a decorator's
                function = function.__wrapped__
            elif _own_call(function) is not None:
                function = types.MethodType(type(function).__call__, function)
            else:
                break
        if not isinstance(function, types.FunctionType) or _is_library(function):
            return
        code = function.__code__
        names = code.co_varnames[:code.co_argcount]
        given: dict[str, Place] = dict(zip(names, first))
        defaults = {**dict(zip(reversed(names), reversed(function.__defaults__ or ()))), **(function.__kwdefaults__ or {})}
        values = {**defaults, **dict(zip(names[len(first):], args)), **(kwargs or {})}
        for name, value in values.items():
            if name not in given and not isinstance(value, (Tensor, *PLAIN, float)):
                given[name] = Place(_is(value), name)
        key = (function, tuple((name, id(place.get())) for name, place in given.items()))
        if key not in self._known:
            self._known.add(key)
            self._todo.append((function, given))

    def _read(self, function: types.FunctionType, given: dict[str, Place]) -> None:
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        for kind, name, attributes in names_in(code):
            if kind.endswith("DEREF") and name in cells:
                place = Place(_in_cell(cells[name]), name)
            elif kind in ("LOAD_GLOBAL", "LOAD_NAME") and (name in function.__globals__ or not hasattr(builtins, name)):
                place = Place(_in_dict(function.__globals__, name), name)
            elif name in given and kind in ("LOAD_FAST", "LOAD_DEREF"):
                place = given[name]
            else:
                continue  # a variable of the function, or one of Python's own names
            self._follow(place, attributes)

    def _follow(self, place: Place, attributes: tuple[str, ...]) -> None:
        value = place.get()
        for name in attributes:
            if isinstance(value, (Tensor, np.ndarray, *CONTAINERS, *PLAIN, float)) or value is MISSING:
                break
            static = _static(value, name)
            if isinstance(static, property):
                if static.fget is not None:
                    self._call(types.MethodType(static.fget, value), place.then(name))
                return
            if not isinstance(value, (types.ModuleType, type)) and isinstance(static, types.FunctionType):
                self._call(types.MethodType(static, value), place.then(name))
                return
            place = place.then(name)
            value = place.get()
        self._guard(place, value)

    def _guard(self, place: Place, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            return
        key = (place.label, id(value))
        if key in self._known:
            return
        self._known.add(key)
        is_called = isinstance(value, (types.FunctionType, types.MethodType)) or hasattr(value, "__wrapped__")
        if is_called or _own_call(value) is not None:
            seen_as = freeze if isinstance(value, types.MethodType) else Same
            self._expected.append((place, seen_as, seen_as(value)))
            self._call(value, place)
        else:
            self._expected.append((place, freeze, freeze(value)))


def _own_call(value: Any) -> types.FunctionType | None:
    """What runs when an object is called, where its class says so in Python."""
    call = getattr(type(value), "__call__", None)
    return call if isinstance(call, types.FunctionType) else None


def _static(value: Any, name: str) -> Any:
    """The attribute, without running code of a property."""
    own = getattr(value, "__dict__", {})
    if isinstance(own, dict) and name in own and not isinstance(value, type):
        return own[name]
    return next((vars(c)[name] for c in type(value).__mro__ if name in vars(c)), None)


@functools.lru_cache(maxsize=1024)
def _library_names() -> frozenset[str]:
    return frozenset(getattr(sys, "stdlib_module_names", ())) - {"__main__"} | {"weft", "numpy"}


def _is_library(function: types.FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] in _library_names()


def walk(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from walk(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from walk(part)
    else:
        yield value
