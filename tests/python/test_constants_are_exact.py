"""Constants keep every bit, through building, text, hashing and evaluation."""

import math
import struct

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.ir import DType, UOp, dtypes, parse

INTEGERS = [t for t in dtypes.all if t.is_int]
EXTREMES = [(t, v) for t in INTEGERS for v in (t.min, t.min + 1, 0, 1, t.max - 1, t.max)]


def round_trip(u: UOp) -> UOp:
    again = parse(u.print())
    assert again == u and again.key == u.key and hash(again) == hash(u)
    return again


@pytest.mark.parametrize(("dtype", "value"), EXTREMES)
def test_integers(dtype: DType, value: int) -> None:
    u = UOp.const(dtype, value)
    assert type(u.arg) is int and u.arg == value
    assert round_trip(u).arg == value
    assert int(u.evaluate()) == value
    assert UOp.const_bits(dtype, u.bits) == u


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_past_the_ends(dtype: DType) -> None:
    for value in (dtype.min - 1, dtype.max + 1, 2**64, -2**64, 10**40):
        with pytest.raises(weft.DTypeError, match="is not a value of"):
            UOp.const(dtype, value)
    for fraction in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(weft.DTypeError, match="is a float"):
            UOp.const(dtype, fraction)


def test_no_integer_passes_through_a_double() -> None:
    for value in (2**53 + 1, 2**63 - 1, -2**63 + 1):
        assert UOp.const(dtypes.int64, value).arg == value
        assert (UOp.const(dtypes.int64, 0) + value).src[1].arg == value
    assert (UOp.const(dtypes.int64, 2**62 + 1) + (2**62 - 2)).simplify().arg == 2**63 - 1
    assert (UOp.const(dtypes.uint64, 2**64 - 2) + 1).simplify().arg == 2**64 - 1


def test_floats() -> None:
    for value in (0.1, 5e-324, 1.7976931348623157e308, -2.5):
        assert UOp.const(dtypes.float64, value).arg == value
        assert round_trip(UOp.const(dtypes.float64, value)).arg == value
    assert UOp.const(dtypes.float32, 0.1).arg == float(np.float32(0.1))
    assert UOp.const(dtypes.float32, 2**24 + 1).arg == 2.0**24
    assert UOp.const(dtypes.float64, 10**30).arg == 1e30


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_special_floats(dtype: DType) -> None:
    zero = round_trip(UOp.const(dtype, -0.0))
    assert math.copysign(1, zero.arg) == -1 and zero != UOp.const(dtype, 0.0)
    assert math.isnan(round_trip(UOp.const(dtype, math.nan)).arg)
    if dtype != dtypes.float8_e4m3:
        assert round_trip(UOp.const(dtype, -math.inf)).arg == -math.inf
    with pytest.raises(weft.DTypeError):
        UOp.const(dtype, 10**400)


@pytest.mark.parametrize("dtype", [t for t in dtypes.floats if t != dtypes.float64])
def test_finite_numbers_stay_finite(dtype: DType) -> None:
    with pytest.raises(weft.DTypeError, match="is not a value of"):
        UOp.const(dtype, 1e300)
    with pytest.raises(weft.DTypeError, match="is not a value of"):
        UOp.const(dtype, 10**100)


def test_payloads_of_nan() -> None:
    for bits in (0x7FC00001, 0xFFC12345, 0x7F800001):
        u = round_trip(UOp.const_bits(dtypes.float32, bits))
        assert u.bits == bits and math.isnan(u.arg)
        assert u.evaluate().tobytes() == struct.pack("<I", bits)
    quiet = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_BEEF))[0]
    assert UOp.const(dtypes.float64, quiet).bits == 0x7FF8_0000_0000_BEEF
    assert UOp.const_bits(dtypes.float32, 0x7FC00001) != UOp.const_bits(dtypes.float32, 0x7FC00002)


def test_every_narrow_float() -> None:
    for dtype, kind in [(dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn), (dtypes.float8_e5m2, ml_dtypes.float8_e5m2)]:
        for bits in range(256):
            want = float(np.array([bits], np.uint8).view(kind)[0])
            u = round_trip(UOp.const_bits(dtype, bits))
            assert u.bits == bits and (u.arg == want or math.isnan(u.arg) and math.isnan(want))
    for bits in range(0, 65536, 7):
        for dtype, wide in [(dtypes.float16, np.array([bits], np.uint16).view(np.float16)),
                            (dtypes.bfloat16, np.array([bits], np.uint16).view(ml_dtypes.bfloat16))]:
            u = UOp.const_bits(dtype, bits)
            assert u.bits == bits and (u.arg == float(wide[0]) or math.isnan(u.arg) and math.isnan(wide[0]))


def test_bits_have_the_width_of_the_dtype() -> None:
    assert UOp.const(dtypes.int8, -1).bits == 0xFF and UOp.const(dtypes.int64, -1).bits == 2**64 - 1
    assert UOp.const_bits(dtypes.int8, 0x80).arg == -128 and UOp.const(dtypes.bool, True).bits == 1
    with pytest.raises(weft.DTypeError, match="more bits"):
        UOp.const_bits(dtypes.int8, 0x100)
    with pytest.raises(weft.SpecError, match="only a CONST"):
        UOp.range(4, 0).bits


def test_what_has_no_constants() -> None:
    for dtype in (dtypes.void, dtypes.float32.ptr()):
        with pytest.raises(weft.DTypeError):
            UOp.const(dtype, 0)
    with pytest.raises(TypeError, match="a number is needed"):
        UOp.const(dtypes.int32, "1")


def test_vectors_repeat_a_constant() -> None:
    u = round_trip(UOp.const(dtypes.int16.vec(3), -7))
    assert u.arg == -7 and u.evaluate().tolist() == [-7, -7, -7]
