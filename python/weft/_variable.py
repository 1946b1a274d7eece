"""Variable: a size or an offset that changes from call to call, within bounds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import _core
from weft.errors import ShapeError


class Variable:
    """A named integer between two bounds, both included. `bind` gives it a value.

    What is bound is an int wherever one is taken: a size, an offset, an index. Kernels are compiled at most twice,
    whatever values follow: the second one has sizes and offsets as parameters. A function under jit that gets one as
    an argument is captured for a few values; then one capture serves all of them.

    >>> from weft import Variable
    >>> n = Variable("n", 1, 8)
    >>> x = Tensor.arange(8)
    >>> [x[:n.bind(k)].sum().item() for k in (2, 5, 8)]
    [1, 10, 28]
    >>> n.bind(9)
    Traceback (most recent call last):
    weft.errors.ShapeError: [bind] n is between 1 and 8; given is 9
    """

    __slots__ = ("max", "min", "name")

    def __init__(self, name: str, min: int, max: int) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ShapeError(f"[Variable] a name is needed, not {name!r}")
        if any(isinstance(bound, bool) or not isinstance(bound, int) for bound in (min, max)):
            raise TypeError(f"[Variable] the bounds of {name} are ints, not {min!r} and {max!r}")
        if min > max:
            raise ShapeError(f"[Variable] the bounds of {name} are in order, not {min} and {max}")
        if not -(2**63) <= min <= max < 2**63:
            raise ShapeError(f"[Variable] the bounds of {name} do not fit into 64 bits: {min} and {max}")
        self.name, self.min, self.max = name, min, max

    @property
    def expr(self) -> str:
        """The name."""
        return self.name

    def bind(self, value: int) -> BoundVariable:
        """Its value in this call."""
        return BoundVariable(self, value)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.min}, {self.max})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and (self.name, self.min, self.max) == (other.name, other.min, other.max)

    def __hash__(self) -> int:
        return hash((self.name, self.min, self.max))


class BoundVariable(int):
    """The value of a Variable: an int that knows what it is of."""

    variable: Variable

    def __new__(cls, variable: Variable, value: int) -> BoundVariable:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"[bind] the value of {variable.name} is an int, not {value!r}")
        if not variable.min <= value <= variable.max:
            raise ShapeError(f"[bind] {variable.name} is between {variable.min} and {variable.max}; given is {value}")
        bound = super().__new__(cls, value)
        bound.variable = variable
        return bound

    @property
    def val(self) -> int:
        """As a plain int."""
        return int(self)

    def unbind(self) -> tuple[Variable, int]:
        return self.variable, int(self)

    def __reduce__(self) -> Any:
        return BoundVariable, (self.variable, int(self))


# ------------------------------------------------------------------------- ints of a captured function

FAR = 2**62  # whatever is farther is as far


def _assume_at_most(a: int, b: int) -> None:
    _core.assume_at_most(max(-FAR, min(a, FAR)), max(-FAR, min(b, FAR)))


def _assume_exact(number: int) -> None:
    _core.assume_exact(max(-FAR, min(number, FAR)))


class WatchedInt:
    """What a function that is captured gets for an int that another call has another value of.

    Tensors take it as an int, sums and products of it are such ints again, and what is asked about it (is it less
    than 5, is it 0) becomes a condition of the capture. Whatever else looks at the number makes the capture one for
    this number alone: then nothing can go unnoticed.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(size, int)
        return int

    def _plain(self) -> int:
        _assume_exact(self.number)
        return self.number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)

    def __eq__(self, other: object) -> Any:
        return _compare(self, other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return _compare(self, other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return _compare(self, other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return _compare(self, other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return _compare(self, other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return _compare(self, other, operator.ge)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> WatchedInt:
        return WatchedInt(-self.number)

    def __pos__(self) -> WatchedInt:
        return self

    def __abs__(self) -> WatchedInt:
        return -self if self < 0 else self

    def __index__(self) -> int:
        return self._plain()

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __invert__(self) -> WatchedInt:
        return WatchedInt(~self.number)

    def __round__(self, digits: int | None = None) -> int:
        return round(self._plain(), digits)

    def __float__(self) -> float:
        return float(self._plain())

    def __hash__(self) -> int:
        return hash(self._plain())

    def __repr__(self) -> str:
        return repr(self._plain())

    def __format__(self, spec: str) -> str:
        return format(self._plain(), spec)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(self._plain(), *args, **kwargs)

    def __reduce__(self) -> Any:
        return int, (self._plain(),)


class WatchedVariable(WatchedInt):
    """The same for a Variable."""

    __slots__ = ("variable",)

    def __init__(self, bound: BoundVariable) -> None:
        super().__init__(int(bound))
        self.variable = bound.variable

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return BoundVariable

    @property
    def val(self) -> WatchedInt:
        return WatchedInt(self.number)

    def unbind(self) -> tuple[Variable, WatchedInt]:
        return self.variable, self.val


def _is_int(value: object) -> bool:
    return type(value) is int or isinstance(value, WatchedInt) or type(value) in (BoundVariable, bool)


def _number(value: Any) -> int:
    return value.number if isinstance(value, WatchedInt) else int(value)


def _compare(a: WatchedInt, b: Any, how: Callable[[Any, Any], Any]) -> Any:
    if not _is_int(b):
        return how(a._plain(), b) if isinstance(b, (int, float, complex)) else NotImplemented
    x, y = a.number, _number(b)
    if how in (operator.eq, operator.ne):
        _assume_exact((x > y) - (x < y))
        if x <= y:
            _assume_at_most(x if x == y else x + 1, y)
        if y <= x:
            _assume_at_most(y if x == y else y + 1, x)
    elif how in (operator.lt, operator.ge):
        _assume_exact(int(x < y))
        _assume_at_most(*((x + 1, y) if x < y else (y, x)))
    else:
        _assume_exact(int(y < x))
        _assume_at_most(*((y + 1, x) if y < x else (x, y)))
    return how(x, y)


def _quotient(x: int, y: int) -> int:
    """x // y: as long as x is where it is between multiples of y."""
    if y <= 0:
        _assume_exact(y)
        _assume_exact(x)
        return x // y
    least = x // y * y
    _assume_at_most(x // y, x // y)  # a whole number
    _assume_at_most(least, x)
    _assume_at_most(x, least + y - 1)
    return x // y


def _remainder(x: int, y: int) -> int:
    return x - _quotient(x, y) * y


def _operator(name: str, compute: Callable[[int, int], int] | None = None) -> None:
    """a op b and b op a: of ints, such an int where there is a way to compute it; else of plain numbers."""
    plain: Callable[[Any, Any], Any] = getattr(operator, f"__{name}__") if name != "divmod" else divmod

    def forward(self: WatchedInt, other: Any) -> Any:
        if compute is not None and _is_int(other):
            return WatchedInt(compute(self.number, _number(other)))
        return plain(self._plain(), _plain_of(other)) if _is_number(other) else NotImplemented

    def backward(self: WatchedInt, other: Any) -> Any:
        if compute is not None and _is_int(other):
            return WatchedInt(compute(_number(other), self.number))
        return plain(_plain_of(other), self._plain()) if _is_number(other) else NotImplemented

    setattr(WatchedInt, f"__{name}__", forward)
    setattr(WatchedInt, f"__r{name}__", backward)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex))


def _plain_of(value: Any) -> Any:
    return value._plain() if isinstance(value, WatchedInt) else value


for _name, _compute in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("floordiv", _quotient),
                        ("mod", _remainder)):
    _operator(_name, _compute)
for _name in ("truediv", "pow", "lshift", "rshift", "and", "or", "xor", "divmod"):
    _operator(_name)

_core.set_watched_int(WatchedInt)
