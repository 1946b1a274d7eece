"""What weft raises. Every error is a `weft.Error`, a RuntimeError as most of PyTorch's are, and one of Python's own
kinds."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from weft._core import UOp


class Error(RuntimeError):
    """The base of all errors of weft."""


class ShapeError(Error, ValueError):
    """Shapes do not fit."""


class DTypeError(Error, TypeError):
    """Dtypes do not fit, or a number does not fit into a dtype."""


class IndexError(Error, builtins.IndexError):
    """An access out of bounds."""


class DeviceError(Error):
    """A device that is not there, or tensors of two devices in one operation."""


class OutOfMemoryError(DeviceError, MemoryError):
    """The process gets no more memory. A device that has none for a buffer raises a DeviceError."""


class CompileError(Error):
    """A kernel could not be compiled: by the compiler's fault, or because it does not fit."""


class JitError(Error):
    """A function that cannot be captured, or whose capture would not give what the function gives."""


class CheckError(Error, AssertionError):
    """A function does not give what the reference gives: weft.check."""


class ParseError(Error, ValueError):
    """A text is no graph."""


class FileFormatError(Error, ValueError):
    """A file is not what its format says, or holds what weft does not read."""


class UnsafeFileError(FileFormatError):
    """A file asks for code to be run: nothing of it was."""


class StateDictError(Error, KeyError):
    """A state dict does not have the names of the model."""

    __str__ = Exception.__str__  # KeyError shows its text in quotes


class SpecError(Error, ValueError):
    """A graph breaks the rules of its stage; `node` is the first that does, where it is known."""

    def __init__(self, message: str, node: UOp | None = None) -> None:
        super().__init__(message)
        self.node = node


class InternalError(Error):
    """weft broke a promise of its own, or was handed a graph that has no meaning."""


class LoopStep(NamedTuple):
    """A step of a loop of rules: a node, the rule that replaced it, and where it changed ("3 becomes 4")."""

    node: str
    rule: str
    file: str
    line: int
    change: str = ""


class RewriteLoopError(Error):
    """Rules that never come to rest.

    kind is "cycle" when a node comes back, "growth" when every step makes a new node. `steps` are the
    first ones, and `ends_in` is the node after the last step that was taken; of a cycle that is where
    it began.
    """

    def __init__(self, message: str, kind: str, pass_name: str, steps: list[LoopStep], ends_in: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.pass_name = pass_name
        self.steps = steps
        self.ends_in = ends_in

    def __reduce__(self) -> tuple[type[RewriteLoopError], tuple[object, ...]]:
        return type(self), (str(self), self.kind, self.pass_name, self.steps, self.ends_in)
