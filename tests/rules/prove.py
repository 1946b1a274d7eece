"""Proves declarative rules with Z3, for every dtype for which they are claimed.

    weft_rules | python tests/rules/prove.py        a table of all verdicts; exit status 1 unless all are proved

A rule is proved on a choice of dtypes when no values make its condition hold and its two sides differ.
Names of unknown dtype (the operands of a comparison under `not`) range over all that are allowed.

    index    unbounded integers, by the first of these that decides:
               symbolic   constants are symbols; several encodings of division are tried
               bits       and, or, xor, not alone: one bit stands for all, as bits do not meet
               |c| <= 8   every choice of constants in that range, each proved for all nodes
    int      bit-vectors of 8, 16, 32 and 64 bits. 8 bits are always decided; where Z3 gives up on a
    uint     wider one, `ring` says that the rule is a polynomial identity, which holds in every width
    bool     Bool
    float    IEEE formats; float16 and float32 are always decided

lower(x) and upper(x) stand for any values with lower(x) <= x <= upper(x). A condition that never holds
is a failure: it proves nothing.
"""

import copy
import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import z3

import semantics
from semantics import BOOL, CLASSES, COMPARISONS, DTYPES, INDEX, LOGICAL, DType, NoModel, Term
from sexpr import Node, parse, variants

SHORT, LONG = 2000, 5000  # milliseconds for one question
SMALL = range(-8, 9)  # constants, where symbols are too hard
ALWAYS_DECIDED = {"index", "int8", "uint8", "bool", "float8_e5m2", "float16", "float32"}
RING = {"add", "sub", "mul", "neg", "mulacc"}


class Malformed(Exception):
    """The sides of a rule do not fit together."""


# ---- dtypes


class Types:
    """Which dtypes the nodes of a rule can have: nodes of one dtype share a variable."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.allowed: list[list[DType]] = []
        self.names: dict[str, int] = {}

    def new(self, allowed: list[DType] | None = None) -> int:
        self.parent.append(len(self.parent))
        self.allowed.append(list(DTYPES.values()) if allowed is None else allowed)
        return len(self.parent) - 1

    def find(self, v: int) -> int:
        while self.parent[v] != v:
            v = self.parent[v]
        return v

    def restrict(self, v: int, dtypes: list[DType]) -> None:
        v = self.find(v)
        self.allowed[v] = [t for t in self.allowed[v] if t in dtypes]
        if not self.allowed[v]:
            raise Malformed("no dtype fits")

    def unify(self, a: int, b: int) -> int:
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parent[b] = a
            self.restrict(a, self.allowed[b])
        return a

    def of_name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = self.new()
        return self.names[name]

    def infer(self, n: Node) -> int:
        """The variable of a node of a pattern or a replacement."""
        if n.is_name:
            v = self.of_name(n.head)
        elif n.is_literal:
            v = self.new(CLASSES["float"] if isinstance(n.number, float) else None)
        elif n.head == "fold":
            inner = self.infer_expression(n.args[0])
            v = self.new([BOOL]) if is_truth(n.args[0]) else inner
        else:
            v = self.infer_op(n, [self.infer(a) for a in n.args])
        for name in n.aliases:
            v = self.unify(self.of_name(name), v)
        if n.dtypes:
            self.restrict(v, dtypes_of(n.dtypes))
        n.type = v
        return v

    def infer_op(self, n: Node, args: list[int]) -> int:
        if n.head == "cast":
            return self.new()
        values = args[1:] if n.head == "where" else args
        if n.head == "where":
            self.restrict(args[0], [BOOL])
        for v in values[1:]:
            self.unify(values[0], v)
        return self.new([BOOL]) if n.head in COMPARISONS else values[0]

    def infer_expression(self, n: Node) -> int:
        """The one dtype in which a condition, or what fold() encloses, is computed."""
        v = self.new()
        for node in n.nodes():
            node.type = self.unify(v, self.of_name(node.head)) if node.is_name else v
        return v

    def choices(self) -> Iterator[dict[int, DType]]:
        """Every choice of dtypes, the narrow ones first."""
        roots = [v for v in range(len(self.parent)) if self.find(v) == v]
        for chosen in sorted(itertools.product(*(self.allowed[r] for r in roots)), key=lambda c: sum(t.bits for t in c)):
            yield dict(zip(roots, chosen))


def dtypes_of(names: list[str]) -> list[DType]:
    return [t for name in names for t in CLASSES.get(name, [DTYPES[name]] if name in DTYPES else [])]


def is_truth(n: Node) -> bool:
    """Whether an expression is a truth value: a comparison, or and, or, not of such."""
    return n.head in COMPARISONS or (n.head in LOGICAL and is_truth(n.args[0]))


# ---- terms


@dataclasses.dataclass(frozen=True)
class Encoding:
    """A way to put the question to Z3; all of them mean the same."""

    name: str = "symbolic"
    solver: str = "smt"  # Z3's default, or its tactic for nonlinear integers
    remainder: str = "mod"  # Z3's own, or `quotient`: a - b * (a // b)
    divisible: bool = False  # where c0 % c1 == 0 is given, c0 is c1 * k
    bits: bool = False  # index is one bit


class Terms:
    """The sides of a rule as Z3 terms, for one choice of dtypes."""

    def __init__(self, types: Types, chosen: dict[int, DType], encoding: Encoding, constants: dict[str, int]) -> None:
        self.types, self.chosen, self.encoding, self.constants = types, chosen, encoding, constants
        self.names: dict[str, Term] = {}
        self.facts: list[Term] = []
        self.factors: dict[tuple[str, str], Term] = {}  # (c0, c1): k with c0 = c1 * k

    def dtype(self, v: int) -> DType:
        return self.chosen[self.types.find(v)]

    def sort(self, dtype: DType) -> Term:
        return z3.BoolSort() if self.encoding.bits and dtype == INDEX else dtype.sort

    def of_name(self, name: str) -> Term:
        if name not in self.names:
            dtype = self.dtype(self.types.of_name(name))
            if name in self.constants:
                self.names[name] = semantics.literal(dtype, self.constants[name])
            else:
                self.names[name] = z3.Const(name, self.sort(dtype))
        return self.names[name]

    def bound(self, which: str, name: str) -> Term:
        key = f"{which}({name})"
        if key not in self.names:
            dtype, x = self.dtype(self.types.of_name(name)), self.of_name(name)
            end = self.names[key] = z3.Const(key, self.sort(dtype))
            self.facts.append(semantics.at_most(dtype, *((end, x) if which == "lower" else (x, end))))
        return self.names[key]

    def literal(self, dtype: DType, number: float) -> Term:
        if not (self.encoding.bits and dtype == INDEX):
            return semantics.literal(dtype, number)
        if number not in (0, -1):
            raise NoModel(f"{number} has different bits")
        return z3.BoolVal(number == -1)

    def apply(self, n: Node, dtype: DType, args: list[Term]) -> Term:
        if dtype == INDEX and self.encoding.bits:
            if n.head not in LOGICAL:
                raise NoModel(f"{n.head} mixes bits")
            dtype = BOOL
        if dtype == INDEX and n.head in ("idiv", "mod"):
            a, b = args
            k = self.factors.get((n.args[0].head, n.args[1].head))
            if k is not None:
                return z3.If(b == 0, a if n.head == "mod" else z3.IntVal(0), z3.IntVal(0) if n.head == "mod" else k)
            if n.head == "mod" and self.encoding.remainder == "quotient":
                return a - b * semantics.floor_parts(a, b)[0]
        return semantics.apply(n.head, dtype, *args)

    def term(self, n: Node) -> Term:
        """The value of a pattern or a replacement."""
        if n.is_name:
            return self.of_name(n.head)
        dtype = self.dtype(n.type)
        if n.is_literal:
            return self.literal(dtype, n.number)
        if n.head == "fold":
            return self.expression(n.args[0], self.dtype(n.args[0].type))
        args = [self.term(a) for a in n.args]
        if n.head == "cast":
            value = semantics.cast(self.dtype(n.args[0].type), dtype, args[0])
        else:
            value = self.apply(n, self.dtype(n.args[-1].type), args)
        for name in n.aliases:
            self.names[name] = value
        return value

    def expression(self, n: Node, dtype: DType) -> Term:
        """The value of a condition, or of what fold() encloses: a Bool where is_truth(n)."""
        if n.is_literal:
            return self.literal(dtype, n.number)
        if n.head in ("lower", "upper"):
            return self.bound(n.head, n.args[0].head)
        if n.is_name:
            return self.of_name(n.head)
        truths = [(is_truth(a), self.expression(a, dtype)) for a in n.args]
        if is_truth(n) and n.head not in COMPARISONS:
            return semantics.apply(n.head, BOOL, *(v if truth else v != self.literal(dtype, 0) for truth, v in truths))
        one, zero = (self.literal(dtype, i) for i in (1, 0)) if any(t for t, _ in truths) else (None, None)
        return self.apply(n, dtype, [z3.If(v, one, zero) if truth else v for truth, v in truths])

    def condition(self, n: Node | None) -> Term:
        if n is None:
            return z3.BoolVal(True)
        if self.encoding.divisible:
            for a, b in divisibilities(n):
                k = z3.Int(f"{a}/{b}")
                self.names[a] = self.of_name(b) * k
                self.factors[a, b] = k
        dtype = self.dtype(n.type)
        value = self.expression(n, dtype)
        return value if is_truth(n) else value != self.literal(dtype, 0)


def divisibilities(n: Node) -> list[tuple[str, str]]:
    """Pairs (c0, c1) for which the condition asks that c0 % c1 == 0."""
    if n.head == "and":
        return [pair for a in n.args for pair in divisibilities(a)]
    if n.head == "cmpeq" and n.args[0].head == "mod" and n.args[1].is_literal and n.args[1].number == 0:
        a, b = n.args[0].args
        if a.head.startswith("c") and b.is_name:
            return [(a.head, b.head)]
    return []


# ---- verdicts


@dataclasses.dataclass
class Verdict:
    dtypes: str
    outcome: str  # proved, refuted, vacuous, undecided
    how: str = ""
    example: str = ""


@dataclasses.dataclass
class Proof:
    rule: dict[str, Any]
    verdicts: list[Verdict]
    seconds: float = 0

    @property
    def outcome(self) -> str:
        outcomes = {v.outcome for v in self.verdicts}
        for worst in ("malformed", "refuted", "vacuous"):
            if worst in outcomes:
                return worst
        must = [v for v in self.verdicts if set(v.dtypes.split(", ")) <= ALWAYS_DECIDED]
        return "proved" if must and all(v.outcome == "proved" for v in must) else "undecided"

    @property
    def is_bounded(self) -> bool:
        return any(v.how == "|c| <= 8" for v in self.verdicts)

    @property
    def text(self) -> str:
        """`index (symbolic), int8 int16, ...`: the dtypes by outcome and method."""
        groups: dict[tuple[str, str], list[str]] = {}
        for v in self.verdicts:
            groups.setdefault((v.outcome, v.how), []).append(v.dtypes.replace(", ", "/"))
        parts = [f"{outcome}{f' ({how})' if how else ''}: {' '.join(names)}" for (outcome, how), names in groups.items()]
        examples = [v.example for v in self.verdicts if v.example]
        return "; ".join(parts + examples[:1])


class Question:
    """One rule on one choice of dtypes in one encoding: ready to ask."""

    def __init__(self, lhs: Node, rhs: Node, when: Node | None, terms: Terms) -> None:
        self.terms = terms
        self.condition = terms.condition(when)
        self.left, self.right = terms.term(lhs), terms.term(rhs)

    def ask(self, limit: int) -> tuple[str, str]:
        """`vacuous`, `proved`, `refuted` with an example, or `undecided`."""
        solver = z3.Solver() if self.terms.encoding.solver == "smt" else z3.Tactic(self.terms.encoding.solver).solver()
        solver.set("timeout", limit)
        solver.add(self.condition, *self.terms.facts)
        possible = z3.sat if z3.is_true(self.condition) else solver.check()
        if possible == z3.unsat:
            return "vacuous", ""
        solver.add(z3.Not(semantics.same(self.left, self.right)))
        answer = solver.check()
        if answer == z3.sat:
            return "refuted", self.example(solver.model())
        return ("proved" if answer == z3.unsat and possible == z3.sat else "undecided"), ""

    def example(self, model: z3.ModelRef) -> str:
        def show(term: Term) -> str:
            value = model.eval(term, model_completion=True)
            if self.terms.encoding.bits:
                return "-1" if z3.is_true(value) else "0"
            signed = isinstance(value, z3.BitVecNumRef) and any(t.kind == "int" for t in self.terms.chosen.values())
            return str(value.as_signed_long() if signed else z3.simplify(value))

        values = ", ".join(f"{name} = {show(term)}" for name, term in sorted(self.terms.names.items()))
        return f"{values}: {show(self.left)} becomes {show(self.right)}"


def encodings(ops: set[str], when: Node | None) -> list[Encoding]:
    """For index, in the order in which they are tried."""
    divides = [True, False] if when is not None and divisibilities(when) else [False]
    remainders = ["quotient", "mod"] if "mod" in ops else ["mod"]
    return [Encoding("symbolic", s, r, d) for d in divides for r in remainders for s in ("smt", "qfnia")]


def decide(lhs: Node, rhs: Node, when: Node | None, types: Types, chosen: dict[int, DType]) -> Verdict:
    """The verdict on one choice of dtypes."""
    used = sorted({chosen[types.find(v)] for v in types.names.values()}, key=lambda t: list(DTYPES).index(t.name))
    shown = [t for t in used if t != BOOL] or [BOOL]
    verdict = Verdict(", ".join(t.name for t in shown), "undecided")
    nodes = [n for side in (lhs, rhs, when) if side is not None for n in side.nodes()]
    ops = {n.head for n in nodes if n.args}

    def ask(encoding: Encoding, limit: int, constants: dict[str, int] | None = None) -> tuple[str, str]:
        return Question(lhs, rhs, when, Terms(types, chosen, encoding, constants or {})).ask(limit)

    if INDEX not in used:
        limit = 12 * LONG if all(t.name in ALWAYS_DECIDED for t in used) else LONG
        verdict.outcome, verdict.example = ask(Encoding(), limit)
        wraps = all(t.kind in ("int", "uint") for t in used)
        if verdict.outcome == "undecided" and wraps and when is None and is_ring_identity(lhs, rhs, ops):
            verdict.outcome, verdict.how = "proved", "ring"
        return verdict

    on_bits = any(n.head in ("and", "or", "xor") and not is_truth(n) and chosen[types.find(n.args[-1].type)] == INDEX
                  for n in nodes)
    ways = [Encoding("bits", bits=True)] if on_bits else encodings(ops, when)
    for limit, encoding in itertools.product((SHORT, LONG), ways):
        verdict.outcome, verdict.example = ask(encoding, limit)
        verdict.how = encoding.name
        if verdict.outcome != "undecided":
            return verdict
    return by_constants(verdict, sorted(n for n in types.names if n.startswith("c")), ask)


def is_ring_identity(lhs: Node, rhs: Node, ops: set[str]) -> bool:
    """Whether the sides are equal polynomials over the integers: then they are in Z / 2**n too."""
    if not ops <= RING | {"fold"}:
        return False
    lhs, rhs, types = copy.deepcopy(lhs), copy.deepcopy(rhs), Types()
    types.unify(types.infer(lhs), types.infer(rhs))
    chosen = {v: INDEX for v in range(len(types.parent))}
    return Question(lhs, rhs, None, Terms(types, chosen, Encoding(), {})).ask(LONG)[0] == "proved"


def by_constants(verdict: Verdict, names: list[str], ask: Any) -> Verdict:
    verdict.outcome, verdict.how = "vacuous", "|c| <= 8"
    for values in itertools.product(SMALL, repeat=len(names)):
        outcome, example = ask(Encoding(), SHORT, dict(zip(names, values)))
        if outcome in ("refuted", "undecided"):
            verdict.outcome, verdict.example = outcome, example
            return verdict
        if outcome == "proved":
            verdict.outcome = "proved"
    return verdict


def prove(rule: dict[str, Any]) -> Proof:
    """All verdicts on a rule of rules_json(), up to the first that says that it is wrong."""
    start = time.monotonic()
    verdicts: dict[str, Verdict] = {}
    try:
        for verdict in verdicts_on(rule):
            before = verdicts.get(verdict.dtypes)
            if before is None or before.outcome == "proved":  # of several variants the worst counts
                verdicts[verdict.dtypes] = verdict
            if verdict.outcome in ("refuted", "vacuous"):
                break
    except (Malformed, NoModel) as error:
        verdicts["all"] = Verdict("all", "malformed", str(error))
    return Proof(rule, list(verdicts.values()), time.monotonic() - start)


def verdicts_on(rule: dict[str, Any]) -> Iterator[Verdict]:
    for lhs in variants(parse(rule["lhs"])):
        rhs, when = parse(rule["rhs"]), parse(rule["when"]) if rule["when"] else None
        types = Types()
        root = types.infer(lhs)
        types.restrict(lhs.args[-1].type, dtypes_of(rule["domain"]))
        types.unify(root, types.infer(rhs))
        if when is not None:
            types.infer_expression(when)
        for chosen in types.choices():
            yield decide(lhs, rhs, when, types, chosen)


def report(proofs: list[Proof]) -> str:
    lines = [f"{p.rule['table']:32} {p.rule['name']:24} {p.outcome:9} {p.seconds:6.2f} s  {p.text}" for p in proofs]
    tally: dict[str, int] = {}
    for p in proofs:
        key = f"{p.outcome} for |c| <= 8" if p.is_bounded else p.outcome
        tally[key] = tally.get(key, 0) + 1
    total = ", ".join(f"{n} {outcome}" for outcome, n in sorted(tally.items()))
    return "\n".join([*lines, f"{total} in {sum(p.seconds for p in proofs):.1f} s", ""])


if __name__ == "__main__":
    found = [prove(r) for r in json.load(sys.stdin) if r["declarative"]]
    print(report(found), end="")
    sys.exit(any(p.outcome != "proved" for p in found))
