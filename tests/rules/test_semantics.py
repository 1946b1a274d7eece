"""The prover's model of the ops says what weft computes."""

import re
from typing import Any

import pytest

z3 = pytest.importorskip("z3")

import semantics
import sexpr
import weft_rules
from semantics import BOOL, CLASSES, DTYPES, DType

SAMPLES = weft_rules.parsed("--scalar-samples")
RULES = [r for r in weft_rules.parsed() if r["declarative"]]


def model(op: str, dtype: DType, result: DType, operands: list[int]) -> Any:
    terms = [semantics.of_bits(BOOL if op == "where" and i == 0 else dtype, v) for i, v in enumerate(operands)]
    value = semantics.cast(dtype, result, terms[0]) if op == "cast" else semantics.apply(op, dtype, *terms)
    return z3.simplify(value)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_model_agrees_with_weft(dtype: DType) -> None:
    seen = 0
    for op, of, to, operands, result in SAMPLES:
        if of != dtype.name:
            continue
        seen += 1
        value = model(op, dtype, DTYPES[to], operands)
        if result is None:  # index leaves 64 bits
            agrees = not -2 ** 63 <= value.as_long() < 2 ** 63
        else:
            agrees = z3.is_true(z3.simplify(semantics.same(value, semantics.of_bits(DTYPES[to], result))))
        assert agrees, f"{op} of {operands} in {of} gives {result} in weft, {value} in the model"
    assert seen > (30 if dtype == BOOL else 1000)


def test_ops_of_rules_are_sampled() -> None:
    sampled = {op for op, *_ in SAMPLES}
    words = {"fold", "lower", "upper", "either"}
    for rule in RULES:
        for side in filter(None, (rule["lhs"], rule["rhs"], rule["when"])):
            for pattern in sexpr.variants(sexpr.parse(side)):
                assert {n.head for n in pattern.nodes() if n.args} <= sampled | words, rule["name"]


def commutative_ops() -> list[str]:
    """Those whose operands a pattern matches in both orders."""
    rows = re.findall(r"^WEFT_OP\((\w+), +Binary, [^,]+,[^,]+,[^,]+, ([^,]+),", (weft_rules.ROOT / "src/ir/ops.def").read_text(), re.M)
    return [name.lower() for name, flags in rows if "C" in flags.split("|")] 


@pytest.mark.parametrize("op", commutative_ops())
def test_commutative_op_commutes(op: str) -> None:
    proved = []
    for dtype in (t for types in CLASSES.values() for t in types if t.bits <= 32 or t.kind == "index"):
        a, b = (z3.Const(n, dtype.sort) for n in "ab")
        try:
            solver = z3.Solver()
            solver.add(z3.Not(semantics.same(semantics.apply(op, dtype, a, b), semantics.apply(op, dtype, b, a))))
        except semantics.NoModel:
            continue  # bits of index, which do not meet, or an op that floats do not have
        assert solver.check() == z3.unsat, f"{op} on {dtype}: {solver.model()}"
        proved.append(dtype)
    assert len(proved) >= 7
