"""What every elementwise op means, as Z3 terms: the model of src/ir/scalar.cpp.

index is an unbounded integer, machine integers are bit-vectors that wrap, bool is Bool, floats are
IEEE with one NaN. test_semantics.py holds this file against weft's own arithmetic.
"""

import dataclasses
import struct
from typing import Any

import z3

Term = Any  # a Z3 expression


class NoModel(Exception):
    """This op has no model on this dtype."""


@dataclasses.dataclass(frozen=True)
class DType:
    name: str
    kind: str  # index, int, uint, bool or float
    bits: int
    exponent: int = 0  # bits of a float's exponent

    @property
    def sort(self) -> Term:
        if self.kind == "index":
            return z3.IntSort()
        if self.kind == "bool":
            return z3.BoolSort()
        return z3.FPSort(self.exponent, self.bits - self.exponent) if self.kind == "float" else z3.BitVecSort(self.bits)

    def __str__(self) -> str:
        return self.name


INDEX, BOOL = DType("index", "index", 64), DType("bool", "bool", 1)
CLASSES = {
    "index": [INDEX],
    "int": [DType(f"int{b}", "int", b) for b in (8, 16, 32, 64)],
    "uint": [DType(f"uint{b}", "uint", b) for b in (8, 16, 32, 64)],
    "bool": [BOOL],
    "float": [DType(n, "float", b, e) for n, b, e in (("float8_e5m2", 8, 5), ("float16", 16, 5), ("bfloat16", 16, 8),
                                                      ("float32", 32, 8), ("float64", 64, 11))],
}
DTYPES = {t.name: t for types in CLASSES.values() for t in types}
COMPARISONS = ("cmplt", "cmpeq", "cmpne")
LOGICAL = ("and", "or", "xor", "not")
NEAREST = z3.RNE()


def literal(dtype: DType, value: float) -> Term:
    """A number in a dtype: integers wrap, floats round."""
    if dtype.kind == "bool":
        return z3.BoolVal(value != 0)
    if dtype.kind == "index":
        return z3.IntVal(int(value))
    if dtype.kind != "float":
        return z3.BitVecVal(int(value), dtype.bits)
    if value == 0:  # with its sign
        return z3.fpMinusZero(dtype.sort) if struct.pack(">d", value)[0] else z3.fpPlusZero(dtype.sort)
    return z3.FPVal(value, dtype.sort)


def of_bits(dtype: DType, value: int) -> Term:
    """A value as the samples of weft_rules write it: integers themselves, floats as their bits."""
    if dtype.kind == "float":
        return z3.simplify(z3.fpBVToFP(z3.BitVecVal(value, dtype.bits), dtype.sort))
    return literal(dtype, value)


def same(a: Term, b: Term) -> Term:
    """Equal; of floats, the same sign of zero too, or both NaN."""
    return a == b  # Z3's sort of floats has one NaN, and = tells the zeros apart


def less(dtype: DType, a: Term, b: Term) -> Term:
    if dtype.kind == "float":
        return z3.fpLT(a, b)
    if dtype.kind == "bool":
        return z3.And(z3.Not(a), b)
    return z3.ULT(a, b) if dtype.kind == "uint" else a < b


def at_most(dtype: DType, a: Term, b: Term) -> Term:
    return z3.Not(less(dtype, b, a))


def apply(op: str, dtype: DType, *v: Term) -> Term:
    """`op` on elements of `dtype` (of WHERE, the dtype of the values)."""
    if op == "where":
        return z3.If(v[0], v[1], v[2])
    if op == "cmplt":
        return less(dtype, *v)
    if op in ("cmpeq", "cmpne"):
        equal = z3.fpEQ(*v) if dtype.kind == "float" else v[0] == v[1]
        return equal if op == "cmpeq" else z3.Not(equal)
    model = {"index": index_op, "bool": bool_op, "float": float_op}.get(dtype.kind, machine_op)
    return model(op, dtype, *v)


def floor_parts(a: Term, b: Term) -> tuple[Term, Term]:
    """a // b and a % b of unbounded integers; Z3's own div and mod round down for positive b."""
    quotient = z3.If(b > 0, a / b, z3.If(b < 0, (-a) / (-b), z3.IntVal(0)))
    remainder = z3.If(b > 0, a % b, z3.If(b < 0, -((-a) % (-b)), a))
    return quotient, remainder


def truncated_parts(a: Term, b: Term) -> tuple[Term, Term]:
    magnitude = z3.If(a < 0, -a, a) / z3.If(b < 0, -b, b)
    quotient = z3.If(b == 0, z3.IntVal(0), z3.If((a < 0) == (b < 0), magnitude, -magnitude))
    return quotient, a - quotient * b


def power_of_two(b: Term) -> Term:
    """2**b for 0 <= b < 64."""
    if z3.is_int_value(b):
        return z3.IntVal(2 ** b.as_long() if 0 <= b.as_long() < 64 else 0)
    power = z3.IntVal(1)
    for n in range(1, 64):
        power = z3.If(b == n, z3.IntVal(2 ** n), power)
    return power


def index_op(op: str, dtype: DType, a: Term, b: Term = None, c: Term = None) -> Term:
    match op:
        case "add": return a + b
        case "sub": return a - b
        case "mul": return a * b
        case "mulacc": return a * b + c
        case "neg": return -a
        case "not": return -1 - a
        case "idiv": return floor_parts(a, b)[0]
        case "mod": return floor_parts(a, b)[1]
        case "cdiv": return truncated_parts(a, b)[0]
        case "cmod": return truncated_parts(a, b)[1]
        case "max": return z3.If(a < b, b, a)
        case "min": return z3.If(b < a, b, a)
        case "shl": return z3.If(z3.Or(b < 0, b >= 64), z3.IntVal(0), a * power_of_two(b))
        case "shr": return z3.If(z3.Or(b < 0, b >= 64), z3.IntVal(0), a / power_of_two(b))
        case "trunc" | "floor" | "ceil" | "round": return a
        case "and" | "or" | "xor":
            # Only on numbers: proofs about bits of unbounded integers go bit by bit (see prove.py).
            if z3.is_int_value(a) and z3.is_int_value(b):
                x, y = a.as_long(), b.as_long()
                return z3.IntVal({"and": x & y, "or": x | y, "xor": x ^ y}[op])
    raise NoModel(f"{op} on {dtype}")


def machine_op(op: str, dtype: DType, a: Term, b: Term = None, c: Term = None) -> Term:
    signed, zero = dtype.kind == "int", z3.BitVecVal(0, dtype.bits)
    match op:
        case "add": return a + b
        case "sub": return a - b
        case "mul": return a * b
        case "mulacc": return a * b + c
        case "neg": return -a
        case "not": return ~a
        case "and": return a & b
        case "or": return a | b
        case "xor": return a ^ b
        case "max": return z3.If(less(dtype, a, b), b, a)
        case "min": return z3.If(less(dtype, b, a), b, a)
        case "idiv" if signed:
            rest = z3.SRem(a, b)  # the quotient rounds to zero: one less where that was up
            rounded_up = z3.And(rest != 0, (rest < 0) != (b < 0))
            return z3.If(b == 0, zero, z3.If(rounded_up, a / b - 1, a / b))
        case "idiv": return z3.If(b == 0, zero, z3.UDiv(a, b))
        case "cdiv": return z3.If(b == 0, zero, a / b if signed else z3.UDiv(a, b))
        case "mod": return z3.If(b == 0, a, a % b if signed else z3.URem(a, b))
        case "cmod": return z3.If(b == 0, a, z3.SRem(a, b) if signed else z3.URem(a, b))
        case "shl": return z3.If(z3.UGE(b, dtype.bits), zero, a << b)
        case "shr": return z3.If(z3.UGE(b, dtype.bits), zero, a >> b if signed else z3.LShR(a, b))
        case "trunc" | "floor" | "ceil" | "round": return a
    raise NoModel(f"{op} on {dtype}")


def bool_op(op: str, dtype: DType, a: Term, b: Term = None) -> Term:
    match op:
        case "add" | "max" | "or": return z3.Or(a, b)
        case "mul" | "min" | "and": return z3.And(a, b)
        case "xor": return z3.Xor(a, b)
        case "not": return z3.Not(a)
    raise NoModel(f"{op} on {dtype}")


def float_op(op: str, dtype: DType, a: Term, b: Term = None, c: Term = None) -> Term:
    if op in ("add", "sub") and dtype.exponent > dtype.bits - dtype.exponent:
        # Z3 cannot add in a format of so few digits. float16 has more than twice as many, so rounding
        # its sum once more gives the right one.
        wide = DTYPES["float16"]
        return cast(wide, dtype, float_op(op, wide, cast(dtype, wide, a), cast(dtype, wide, b)))
    match op:
        case "add": return z3.fpAdd(NEAREST, a, b)
        case "sub": return z3.fpSub(NEAREST, a, b)
        case "mul": return z3.fpMul(NEAREST, a, b)
        case "mulacc": return z3.fpFMA(NEAREST, a, b, c)
        case "fdiv": return z3.fpDiv(NEAREST, a, b)
        case "recip": return z3.fpDiv(NEAREST, literal(dtype, 1), a)
        case "neg": return z3.fpNeg(a)
        case "sqrt": return z3.fpSqrt(NEAREST, a)
        case "trunc": return z3.fpRoundToIntegral(z3.RTZ(), a)
        case "floor": return z3.fpRoundToIntegral(z3.RTN(), a)
        case "ceil": return z3.fpRoundToIntegral(z3.RTP(), a)
        case "round": return z3.fpRoundToIntegral(NEAREST, a)
        case "max" | "min":  # NaN wins, then the order with -0 below +0
            first_is_less = z3.Or(z3.fpLT(a, b), z3.And(z3.fpEQ(a, b), z3.fpIsNegative(a)))
            chosen = z3.If(first_is_less, b, a) if op == "max" else z3.If(first_is_less, a, b)
            return z3.If(z3.fpIsNaN(a), a, z3.If(z3.fpIsNaN(b), b, chosen))
    raise NoModel(f"{op} on {dtype}")


def cast(source: DType, to: DType, a: Term) -> Term:
    if source == to:
        return a
    if source.kind == "bool":
        return z3.If(a, literal(to, 1), literal(to, 0))
    if to.kind == "bool":
        return z3.Not(z3.fpIsZero(a)) if source.kind == "float" else a != 0
    if source.kind == "float":
        return float_to(source, to, a)
    if to.kind == "float":
        if source.kind == "index":
            return cast(DTYPES["int64"], to, z3.Int2BV(a, 64))
        return z3.fpSignedToFP(NEAREST, a, to.sort) if source.kind == "int" else z3.fpUnsignedToFP(NEAREST, a, to.sort)
    if source.kind == "index":
        return z3.Int2BV(a, to.bits)
    if to.kind == "index":
        return z3.BV2Int(a, is_signed=source.kind == "int")  # exact; weft has no value past 64 bits
    if to.bits <= source.bits:
        return z3.Extract(to.bits - 1, 0, a)
    return (z3.SignExt if source.kind == "int" else z3.ZeroExt)(to.bits - source.bits, a)


def float_to(source: DType, to: DType, a: Term) -> Term:
    if to.kind == "float":
        return z3.fpFPToFP(NEAREST, a, to.sort)
    if to.kind == "index":
        return z3.BV2Int(float_to(source, DTYPES["int64"], a), is_signed=True)
    # Truncates and saturates; NaN is 0. The ends are compared in float64, where both are exact or
    # round outwards.
    wide = z3.fpFPToFP(NEAREST, a, z3.Float64())
    signed = to.kind == "int"
    low, high = (-2 ** (to.bits - 1), 2 ** (to.bits - 1) - 1) if signed else (0, 2 ** to.bits - 1)
    inside = z3.fpToSBV(z3.RTZ(), wide, z3.BitVecSort(to.bits)) if signed else z3.fpToUBV(z3.RTZ(), wide, z3.BitVecSort(to.bits))
    return z3.If(z3.fpIsNaN(a), literal(to, 0),
                 z3.If(z3.fpLEQ(wide, z3.FPVal(low, z3.Float64())), literal(to, low),
                       z3.If(z3.fpGEQ(wide, z3.FPVal(high, z3.Float64())), literal(to, high), inside)))
