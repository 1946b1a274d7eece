"""Variable: a size or an offset that changes from call to call, within bounds."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError


class Variable:
    """A named integer between two bounds, both included. `bind` gives it a value.

    What is bound is an int wherever one is taken: a size, an offset, an index. Kernels are compiled at most twice,
    whatever values follow: the second one has sizes and offsets as parameters. A function under jit that gets one as
    an argument is captured for each value by itself, of the same kernels.

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
        self.name, self.min, self.max = name, min, max

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
