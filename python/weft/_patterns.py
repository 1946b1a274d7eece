"""Patterns and rules in Python, for the engine in C++."""

from __future__ import annotations

import inspect
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Callable, Optional, Tuple, overload

from weft._core import MOST_CONST_NAMES, MOST_NODE_NAMES, DType, Ops, Rule, UOp, bound_names

Function = Callable[..., Optional[UOp]]
# kind, slot, arity, ops, dtypes, value: what _core reads
Cell = Tuple[str, int, int, list[Ops], list[DType], int]


class Pat:
    """A pattern: an expression that nodes match.

    Numbers match constants of that value. A name that occurs twice must match the same node. The two
    sources of a commutative op match in both orders, also when a rule's function returns None for the
    first.

    >>> x, c = Pat.var("x"), Pat.const("c")
    >>> (x + c) * 2
    Pat((x + c) * 2)
    >>> Pat.op({Ops.ADD, Ops.SUB}, x, c, name="sum", dtype=dtypes.int32)
    Pat(sum:{ADD, SUB}(x, c))
    """

    __slots__ = ("kind", "name", "ops", "dtypes", "value", "srcs")

    def __init__(self, kind: str, name: str | None = None, ops: Iterable[Ops] = (),
                 dtypes: Iterable[DType] = (), value: int = 0, srcs: Iterable[Pat] = ()) -> None:
        self.kind = kind
        self.name = name
        self.ops = tuple(ops)
        self.dtypes = tuple(dtypes)
        self.value = value
        self.srcs = tuple(srcs)

    # ---- leaves

    @staticmethod
    def var(name: str, dtype: DType | Iterable[DType] | None = None) -> Pat:
        """Any node, bound to a name."""
        return Pat("node", name, dtypes=_element_types(dtype))

    @staticmethod
    def any(dtype: DType | Iterable[DType] | None = None) -> Pat:
        """Any node."""
        return Pat("node", dtypes=_element_types(dtype))

    @staticmethod
    def nonconst(name: str | None = None, dtype: DType | Iterable[DType] | None = None) -> Pat:
        """Any node but a constant."""
        return Pat("nonconst", name, dtypes=_element_types(dtype))

    @staticmethod
    def const(name: str | None = None, dtype: DType | Iterable[DType] | None = None) -> Pat:
        """Any constant."""
        return Pat("const", name, dtypes=_element_types(dtype))

    @staticmethod
    def literal(value: int | float) -> Pat:
        """The constant of this value, in whatever dtype the node has; a float matches floats alone."""
        if isinstance(value, float):
            return Pat("float", value=struct.unpack("<q", struct.pack("<d", value))[0])
        if not -2**63 <= value < 2**63:
            raise ValueError(f"[pattern] {value} does not fit into 64 bits")
        return Pat("int", value=int(value))

    @staticmethod
    def rest(name: str | None = None) -> Pat:
        """All further sources, as a tuple; the last source of an op."""
        return Pat("rest", name)

    # ---- inner patterns

    @staticmethod
    def op(ops: Ops | Iterable[Ops], *srcs: Pat | int | float, name: str | None = None,
           dtype: DType | Iterable[DType] | None = None) -> Pat:
        """A node of an op, or of one of a set of ops, with these sources.

        The sources of a set of ops match in this order alone.
        """
        chosen = (ops,) if isinstance(ops, Ops) else tuple(sorted(set(ops), key=lambda o: int(o.value)))
        if not chosen:
            raise ValueError("[pattern] the set of ops is empty")
        return Pat("op", name, chosen, _element_types(dtype), srcs=[_pattern(s) for s in srcs])

    @staticmethod
    def either(first: Pat | int | float, second: Pat | int | float) -> Pat:
        """What matches the first pattern, or else the second. Names that both bind are bound."""
        return Pat("either", srcs=(_pattern(first), _pattern(second)))

    @staticmethod
    def fold(expression: Pat) -> Pat:
        """In a replacement: the value of an expression of constants, computed when the rule applies."""
        return Pat("fold", srcs=(expression,))

    def named(self, name: str) -> Pat:
        """The same pattern, bound to a name.

        >>> (Pat.var("x") + Pat.var("y")).named("sum")
        Pat(sum:(x + y))
        """
        if self.kind not in ("node", "nonconst", "const", "op"):
            raise ValueError(f"[pattern] {self!r} cannot have a name")
        return Pat(self.kind, name, self.ops, self.dtypes, self.value, self.srcs)

    def of(self, dtype: DType | Iterable[DType]) -> Pat:
        """The same pattern, for nodes of these element types alone."""
        return Pat(self.kind, self.name, self.ops, _element_types(dtype), self.value, self.srcs)

    def cast(self, dtype: DType) -> Pat:
        """A CAST of it to a dtype."""
        return Pat.op(Ops.CAST, self, dtype=dtype)

    def where(self, x: Pat | int | float, y: Pat | int | float) -> Pat:
        """A WHERE with this condition."""
        return Pat.op(Ops.WHERE, self, x, y)

    def eq(self, other: Pat | int | float) -> Pat:
        """A CMPEQ."""
        return Pat.op(Ops.CMPEQ, self, other)

    def ne(self, other: Pat | int | float) -> Pat:
        """A CMPNE."""
        return Pat.op(Ops.CMPNE, self, other)

    def max(self, other: Pat | int | float) -> Pat:
        """A MAX."""
        return Pat.op(Ops.MAX, self, other)

    def min(self, other: Pat | int | float) -> Pat:
        """A MIN."""
        return Pat.op(Ops.MIN, self, other)

    def __add__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.ADD, self, other)
    def __sub__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.SUB, self, other)
    def __mul__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.MUL, self, other)
    def __truediv__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.FDIV, self, other)
    def __floordiv__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.IDIV, self, other)
    def __mod__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.MOD, self, other)
    def __and__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.AND, self, other)
    def __or__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.OR, self, other)
    def __xor__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.XOR, self, other)
    def __lshift__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.SHL, self, other)
    def __rshift__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.SHR, self, other)
    def __lt__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.CMPLT, self, other)
    def __gt__(self, other: Pat | int | float) -> Pat: return Pat.op(Ops.CMPLT, other, self)
    def __radd__(self, other: int | float) -> Pat: return Pat.op(Ops.ADD, other, self)
    def __rsub__(self, other: int | float) -> Pat: return Pat.op(Ops.SUB, other, self)
    def __rmul__(self, other: int | float) -> Pat: return Pat.op(Ops.MUL, other, self)
    def __rtruediv__(self, other: int | float) -> Pat: return Pat.op(Ops.FDIV, other, self)
    def __rfloordiv__(self, other: int | float) -> Pat: return Pat.op(Ops.IDIV, other, self)
    def __rmod__(self, other: int | float) -> Pat: return Pat.op(Ops.MOD, other, self)
    def __rand__(self, other: int | float) -> Pat: return Pat.op(Ops.AND, other, self)
    def __ror__(self, other: int | float) -> Pat: return Pat.op(Ops.OR, other, self)
    def __rxor__(self, other: int | float) -> Pat: return Pat.op(Ops.XOR, other, self)
    def __rlshift__(self, other: int | float) -> Pat: return Pat.op(Ops.SHL, other, self)
    def __rrshift__(self, other: int | float) -> Pat: return Pat.op(Ops.SHR, other, self)
    def __neg__(self) -> Pat: return Pat.op(Ops.NEG, self)
    def __invert__(self) -> Pat: return Pat.op(Ops.NOT, self)

    def __bool__(self) -> bool:
        raise TypeError("a Pat is neither true nor false: a chain of comparisons is no pattern")

    def __repr__(self) -> str:
        return f"Pat({self._text()})"

    def _text(self, inside: bool = False) -> str:
        name = f"{self.name}:" if self.name else ""
        if self.kind == "op":
            args = [s._text(inside=True) for s in self.srcs]
            sign = _SIGNS.get(self.ops[0]) if len(self.ops) == 1 and len(args) == 2 else None
            if sign:
                return f"{name}({sign.join(args)})" if inside or name else sign.join(args)
            ops = ", ".join(o.name for o in self.ops)
            return f"{name}{ops if len(self.ops) == 1 else '{' + ops + '}'}({', '.join(args)})"
        if self.kind in ("either", "fold"):
            return f"{self.kind}({', '.join(s._text() for s in self.srcs)})"
        if self.kind == "int":
            return str(self.value)
        if self.kind == "float":
            return str(struct.unpack("<d", struct.pack("<q", self.value))[0])
        return self.name or {"node": "any", "rest": "rest"}.get(self.kind, self.kind)

    def _walk(self) -> Iterator[Pat]:
        """All patterns in it, itself first, then each source with all below it."""
        yield self
        for s in self.srcs:
            yield from s._walk()


_SIGNS = {Ops.ADD: " + ", Ops.SUB: " - ", Ops.MUL: " * ", Ops.FDIV: " / ", Ops.IDIV: " // ",
          Ops.MOD: " % ", Ops.AND: " & ", Ops.OR: " | ", Ops.XOR: " ^ ", Ops.SHL: " << ",
          Ops.SHR: " >> ", Ops.CMPLT: " < "}


def _pattern(value: Pat | int | float) -> Pat:
    if isinstance(value, Pat):
        return value
    if isinstance(value, (int, float)):
        return Pat.literal(value)
    raise TypeError(f"[pattern] a source is a Pat or a number, not {type(value).__name__}")


def _element_types(dtype: DType | Iterable[DType] | None) -> tuple[DType, ...]:
    if dtype is None:
        return ()
    types = (dtype,) if isinstance(dtype, DType) else tuple(dtype)
    for t in types:
        if t != t.element:
            raise ValueError(f"[pattern] a pattern looks at element types; {t.name} is none")
    if not types:
        raise ValueError("[pattern] the set of dtypes is empty")
    return types


class _Slots:
    """Where the names of a pattern go."""

    def __init__(self, pattern: Pat) -> None:
        self.nodes: dict[str, int] = {}
        self.consts: dict[str, int] = {}
        self.rest: str | None = None
        rests = 0
        for p in pattern._walk():
            if p.kind == "fold":
                raise ValueError("[pattern] fold() stands in replacements alone")
            if any(s.kind == "rest" for s in p.srcs[:-1]) or (p.kind != "op" and any(
                    s.kind == "rest" for s in p.srcs)):
                raise ValueError("[pattern] rest() is the last source of an op")
            if p.kind == "rest":
                rests += 1
                self.rest = p.name
            elif p.name is not None:
                table = self.consts if p.kind == "const" else self.nodes
                table.setdefault(p.name, len(table))
        if rests > 1:
            raise ValueError("[pattern] a pattern has at most one rest()")
        both = [n for n in self.nodes if n in self.consts or n == self.rest]
        both += [n for n in self.consts if n == self.rest]
        if both:
            raise ValueError(f"[pattern] the name {both[0]} stands for two kinds of things")
        # Cells without a name share one slot.
        anonymous = [p.kind for p in pattern._walk() if p.name is None]
        self.hidden = (len(self.nodes), len(self.consts))
        _check_count("nodes", self.nodes, MOST_NODE_NAMES, "node" in anonymous or "nonconst" in anonymous)
        _check_count("constants", self.consts, MOST_CONST_NAMES, "const" in anonymous)

    def cells(self, pattern: Pat) -> list[Cell]:
        """The pattern for _core."""
        out: list[Cell] = []
        for p in pattern._walk():
            slot = -1
            if p.name is not None and p.kind != "rest":
                slot = (self.consts if p.kind == "const" else self.nodes).get(p.name, -1)
                if slot < 0:
                    raise ValueError(f"[rule] the replacement uses {p.name}, which the pattern does not bind")
            # The sources of a set of ops match in their order alone, which is what rest() needs.
            ordered = len(p.ops) > 1 or any(s.kind == "rest" for s in p.srcs)
            kind = "ops" if p.kind == "op" and ordered else p.kind
            out.append((kind, slot, len(p.srcs), list(p.ops), list(p.dtypes), p.value))
        return out

    def bound(self, cells: list[Cell]) -> dict[str, tuple[str, int]]:
        """The names that every match binds, with the kind and slot of each."""
        bits = bound_names(cells, self.hidden)
        out = {n: ("node", s) for n, s in self.nodes.items() if bits >> s & 1}
        out.update({n: ("const", s) for n, s in self.consts.items() if bits >> (8 + s) & 1})
        if self.rest is not None and bits >> 16 & 1:
            out[self.rest] = ("rest", 0)
        return out


def _check_count(what: str, names: dict[str, int], most: int, hidden: bool) -> None:
    if len(names) + hidden > most:
        also = " and one for all that have no name" if hidden else ""
        raise ValueError(f"[pattern] {', '.join(names)}{also}: a pattern names at most {most} {what}")


def _check_replacement(replacement: Pat) -> None:
    for p in replacement._walk():
        if not _is_expression(p):
            raise ValueError(f"[rule] {p!r} has no place in a replacement")
        if p.dtypes:
            raise ValueError(f"[rule] a replacement has the dtypes of what it replaces: {p!r}")
        if p.kind == "fold" and any(q.kind in ("node", "fold") for q in p.srcs[0]._walk()):
            raise ValueError(f"[rule] fold() computes with constants alone: {p!r}")


def _is_expression(p: Pat) -> bool:
    """Numbers, names, and elementwise ops whose dtype follows from where they stand."""
    if p.kind != "op":
        return p.kind in ("int", "float", "fold") or (p.kind in ("node", "const") and p.name is not None)
    op = p.ops[0]
    is_plain = op.is_elementwise and op not in (Ops.CAST, Ops.BITCAST)
    return is_plain and len(p.ops) == 1 and p.name is None and op.arity == (len(p.srcs), len(p.srcs))


def _parameters(function: Function, bound: dict[str, tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Which values a function is given, as keyword arguments."""
    given = {"ctx": ("ctx", 0), "root": ("root", 0), **bound}  # a pattern may use these names itself
    signature = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in signature):
        named = {p.name for p in signature}
        return [(n, *given[n]) for n in given if n in bound or n in named]
    out = []
    for p in signature:
        if p.kind is p.VAR_POSITIONAL:
            continue
        if p.kind is p.POSITIONAL_ONLY:
            raise TypeError(f"[rule] the parameter {p.name} cannot be given by name")
        if p.name in given:
            out.append((p.name, *given[p.name]))
        elif p.default is p.empty:
            names = ", ".join(bound) or "no name"
            raise TypeError(f"[rule] the function wants {p.name}; the pattern binds {names}")
    return out


@overload
def rule(pattern: Pat, replacement: Function | Pat | int | float, name: str | None = None) -> Rule: ...
@overload
def rule(pattern: Pat, *, name: str | None = None) -> Callable[[Function], Rule]: ...


def rule(pattern: Pat, replacement: Function | Pat | int | float | None = None,
         name: str | None = None) -> Rule | Callable[[Function], Rule]:
    """A rule: what to make of the nodes that a pattern matches.

    The replacement is a function or a pattern. A function is given the names of its parameters by
    keyword: what the pattern bound, `root` (the node that matched), `ctx` (the context of the rewrite);
    it returns a UOp, or None when the rule does not apply after all. Without a replacement, it decorates
    a function, whose name it takes.

    >>> x, c0, c1 = Pat.var("x"), Pat.const("c0"), Pat.const("c1")
    >>> add_add = rule((x + c0) + c1, x + Pat.fold(c0 + c1), name="add-add")
    >>> @rule(x // c0)
    ... def div_to_shift(x, c0):
    ...     return x >> 3 if c0.arg == 8 else None
    >>> r = UOp.range(64, 0)
    >>> print((((r + 1) + 2) // 8).rewrite(RuleSet([add_add, div_to_shift])))
    r0 + 3 >> 3
    """
    frame = sys._getframe(1)
    where = frame.f_code.co_filename, frame.f_lineno

    def decorate(function: Function) -> Rule:
        return _make_rule(pattern, function, name, where)

    if replacement is None:
        return decorate
    return _make_rule(pattern, replacement, name, where)


def _make_rule(pattern: Pat, replacement: Function | Pat | int | float, name: str | None,
               where: tuple[str, int]) -> Rule:
    if not isinstance(pattern, Pat):
        raise TypeError(f"[rule] a Pat is needed, not {type(pattern).__name__}")
    slots = _Slots(pattern)
    cells = slots.cells(pattern)
    if isinstance(replacement, (Pat, int, float)):
        result = _pattern(replacement)
        _check_replacement(result)
        return Rule(name or repr(pattern)[4:-1], *where, name is None, cells, slots.hidden, slots.cells(result),
                    None, [])
    parameters = _parameters(replacement, slots.bound(cells))
    default = getattr(replacement, "__name__", type(replacement).__name__)
    if default == "<lambda>":
        default = f"lambda:{where[1]}"
    return Rule(name or default.replace("_", "-"), *where, name is None, cells, slots.hidden, None,
                replacement, parameters)
