"""The evaluator against NumPy: every elementwise op, on every dtype, wherever the two agree."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from weft.ir import DType, Ops, UOp, dtypes

Array = npt.NDArray[np.generic]
COUNT = 400
SIGNED, UNSIGNED = dtypes.signed_ints, dtypes.unsigned_ints
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def numpy_type(dtype: DType) -> np.dtype:
    return np.dtype(NUMPY.get(dtype.name, dtype.name))


def numbers(dtype: DType, seed: int) -> Array:
    """Random bits, random small numbers, and the ends."""
    choose = np.random.default_rng(seed)
    kind = numpy_type(dtype)
    if dtype.is_bool:
        return choose.integers(0, 2, COUNT).astype(bool)
    bits = choose.integers(0, 256, COUNT * kind.itemsize, dtype=np.uint8).view(kind)
    small = choose.integers(0 if dtype.is_unsigned else -9, 10, COUNT).astype(kind)
    out = np.where(choose.random(COUNT) < 0.5, bits, small).astype(kind)
    if dtype.is_int:
        out[:4] = [dtype.min, dtype.max, 0, 1]
        choose.shuffle(out)
    else:
        out[:5] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(kind)
        choose.shuffle(out)
    return out


def run(dtype: DType, op: Ops, *arrays: Array) -> Array:
    """The op on whole buffers, and in a loop over their elements."""
    buffers = [UOp.buffer(dtype, COUNT, "CPU", i) for i in range(len(arrays))]
    result = buffers[0].alu(op, *buffers[1:]).evaluate(dict(enumerate(arrays)))
    r = UOp.range(COUNT, 0)
    loads = [UOp.define_global(dtype, COUNT, i + 1).index(r).load() for i in range(len(arrays))]
    value = loads[0].alu(op, *loads[1:])
    memory = {i + 1: a for i, a in enumerate(arrays)}
    UOp.sink(UOp.define_global(value.dtype, COUNT, 0).index(r).assign(value).end(r)).evaluate(memory)
    assert memory[0].dtype == result.dtype and memory[0].tobytes() == result.tobytes()
    return result


def assert_same(got: Array, want: Array) -> None:
    """Bit for bit, but for the bits of NaN."""
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    same = got.view(f"u{got.dtype.itemsize}") == want.view(f"u{want.dtype.itemsize}")
    nan = (got != got) & (want != want)
    assert (same | nan).all(), (got[~(same | nan)][:5], want[~(same | nan)][:5])


BINARY = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}
COMPARE = {Ops.CMPLT: np.less, Ops.CMPEQ: np.equal, Ops.CMPNE: np.not_equal}
BITWISE = {Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor}


@pytest.mark.parametrize("op", [*BINARY, *COMPARE, *BITWISE])
@pytest.mark.parametrize("dtype", dtypes.ints)
def test_integers(dtype: DType, op: Ops) -> None:
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    assert_same(run(dtype, op, a, b), {**BINARY, **COMPARE, **BITWISE}[op](a, b))


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_division(dtype: DType) -> None:
    a, b = numbers(dtype, 3), numbers(dtype, 4)
    assert (b == 0).any()
    exact = [(int(x), int(y)) for x, y in zip(a, b)]

    def wrapped(values: list[int]) -> Array:
        return np.array([v & 0xFFFF_FFFF_FFFF_FFFF for v in values], np.uint64).astype(a.dtype)

    assert_same(run(dtype, Ops.IDIV, a, b), wrapped([x // y if y else 0 for x, y in exact]))
    assert_same(run(dtype, Ops.MOD, a, b), wrapped([x % y if y else x for x, y in exact]))
    truncated = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0 for x, y in exact]
    assert_same(run(dtype, Ops.CDIV, a, b), wrapped(truncated))
    assert_same(run(dtype, Ops.CMOD, a, b), wrapped([x - q * y for (x, y), q in zip(exact, truncated)]))
    by = b != 0
    assert_same(run(dtype, Ops.IDIV, a, b)[by], np.floor_divide(a, b)[by])
    assert_same(run(dtype, Ops.MOD, a, b)[by], np.remainder(a, b)[by])


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_shifts(dtype: DType) -> None:
    a = numbers(dtype, 5)
    b = np.random.default_rng(6).integers(0 if dtype.is_unsigned else -2, dtype.bits + 2, COUNT).astype(a.dtype)
    past = (b < 0) | (b >= dtype.bits)
    within = np.where(past, 0, b).astype(a.dtype)
    assert past.any()
    assert_same(run(dtype, Ops.SHL, a, b), np.where(past, 0, np.left_shift(a, within)).astype(a.dtype))
    assert_same(run(dtype, Ops.SHR, a, b), np.where(past, 0, np.right_shift(a, within)).astype(a.dtype))


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_one_integer(dtype: DType) -> None:
    a = numbers(dtype, 7)
    assert_same(run(dtype, Ops.NEG, a), np.negative(a))
    assert_same(run(dtype, Ops.NOT, a), np.invert(a))


def test_bools() -> None:
    a, b = numbers(dtypes.bool, 1), numbers(dtypes.bool, 2)
    for op in [*COMPARE, *BITWISE, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN]:
        assert_same(run(dtypes.bool, op, a, b), {**BINARY, **COMPARE, **BITWISE}[op](a, b))
    assert_same(run(dtypes.bool, Ops.NOT, a), ~a)


@pytest.mark.parametrize("dtype", dtypes.floats)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, *COMPARE])
def test_floats(dtype: DType, op: Ops) -> None:
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    assert_same(run(dtype, op, a, b), {**BINARY, **COMPARE, Ops.FDIV: np.divide}[op](a, b))


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_the_larger_and_the_smaller_float(dtype: DType) -> None:
    a, b = numbers(dtype, 8), numbers(dtype, 9)
    zeros = (a == 0) & (b == 0)  # NumPy takes either zero
    assert_same(run(dtype, Ops.MAX, a, b)[~zeros], np.maximum(a, b)[~zeros])
    assert_same(run(dtype, Ops.MIN, a, b)[~zeros], np.minimum(a, b)[~zeros])
    signs = np.zeros(COUNT, a.dtype)
    signs[::2] = -0.0
    assert not np.signbit(run(dtype, Ops.MAX, signs, signs[::-1].copy())).any()
    assert np.signbit(run(dtype, Ops.MIN, signs, signs[::-1].copy())).all()


EXACT = {Ops.SQRT: np.sqrt, Ops.RECIP: lambda a: (np.ones_like(a) / a), Ops.TRUNC: np.trunc, Ops.FLOOR: np.floor,
         Ops.CEIL: np.ceil, Ops.ROUND: np.rint, Ops.NEG: np.negative}
CLOSE = {Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.EXP: np.exp, Ops.LOG: np.log, Ops.SIN: np.sin, Ops.COS: np.cos}


@pytest.mark.parametrize("dtype", dtypes.floats)
@pytest.mark.parametrize("op", EXACT)
def test_one_float(dtype: DType, op: Ops) -> None:
    a = numbers(dtype, 1)
    assert_same(run(dtype, op, a), EXACT[op](a))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("op", CLOSE)
def test_one_float_within_rounding(dtype: DType, op: Ops) -> None:
    kind = numpy_type(dtype)
    a = np.random.default_rng(1).uniform(-8, 8, COUNT).astype(kind)
    got, want = run(dtype, op, a).astype(np.float64), CLOSE[op](a.astype(np.float64))
    step = float(ml_dtypes.finfo(kind).eps)
    np.testing.assert_allclose(got, want, rtol=step, atol=step)


def test_where_and_mulacc() -> None:
    condition = numbers(dtypes.bool, 1)
    a, b, c = (numbers(dtypes.int32, s) for s in (2, 3, 4))
    buffers = [UOp.buffer(t, COUNT, "CPU", i) for i, t in enumerate([dtypes.bool, *[dtypes.int32] * 3])]
    memory = dict(enumerate([condition, a, b, c]))
    assert_same(buffers[0].where(buffers[1], buffers[2]).evaluate(memory), np.where(condition, a, b))
    assert_same(buffers[0].where(7, buffers[2]).evaluate(memory), np.where(condition, np.int32(7), b))
    assert_same(buffers[1].mulacc(buffers[2], buffers[3]).evaluate(memory), a * b + c)


def test_mulacc_rounds_once() -> None:
    a = np.array([1 + 2**-12], np.float32)
    u = UOp.const(dtypes.float32, float(a[0]))
    assert u.mulacc(u, -1.0).evaluate() == np.float32(float(a[0]) ** 2 - 1) != a[0] * a[0] - np.float32(1)


@pytest.mark.parametrize("to", dtypes.ints)
@pytest.mark.parametrize("dtype", dtypes.ints)
def test_casts_between_integers_wrap(dtype: DType, to: DType) -> None:
    a = numbers(dtype, 1)
    assert_same(UOp.buffer(dtype, COUNT, "CPU", 0).cast(to).evaluate({0: a}), a.astype(numpy_type(to)))


@pytest.mark.parametrize("to", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("dtype", [t for t in dtypes.ints if t.bits <= 16])
def test_casts_of_integers_to_floats(dtype: DType, to: DType) -> None:
    a = numbers(dtype, 1)
    assert_same(UOp.buffer(dtype, COUNT, "CPU", 0).cast(to).evaluate({0: a}), a.astype(numpy_type(to)))


@pytest.mark.parametrize("dtype", [t for t in dtypes.ints if t.bits >= 32])
def test_casts_of_wide_integers_round_once(dtype: DType) -> None:
    a = numbers(dtype, 1)
    for to in [dtypes.float32, dtypes.float64]:
        assert_same(UOp.buffer(dtype, COUNT, "CPU", 0).cast(to).evaluate({0: a}), a.astype(numpy_type(to)))


@pytest.mark.parametrize("to", dtypes.floats)
@pytest.mark.parametrize("dtype", dtypes.floats)
def test_casts_between_floats(dtype: DType, to: DType) -> None:
    a = numbers(dtype, 1)
    got = UOp.buffer(dtype, COUNT, "CPU", 0).cast(to).evaluate({0: a})
    if to == dtypes.float8_e4m3 and dtype == dtypes.float64:
        a = np.where(np.isinf(a), np.nan, a)
    assert_same(got, a.astype(numpy_type(to)))


@pytest.mark.parametrize("to", dtypes.ints)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_casts_of_floats_to_integers_saturate(dtype: DType, to: DType) -> None:
    a = numbers(dtype, 1)
    want = [0 if x != x else to.max if x >= to.max else to.min if x <= to.min else int(x) for x in a.astype(float)]
    got = UOp.buffer(dtype, COUNT, "CPU", 0).cast(to).evaluate({0: a})
    assert got.tolist() == want


@pytest.mark.parametrize("dtype", [*dtypes.ints, *dtypes.floats])
def test_casts_to_bool_and_back(dtype: DType) -> None:
    a = numbers(dtype, 1)
    buffer = UOp.buffer(dtype, COUNT, "CPU", 0)
    assert_same(buffer.cast(dtypes.bool).evaluate({0: a}), a != 0)
    assert_same(buffer.cast(dtypes.bool).cast(dtype).evaluate({0: a}), (a != 0).astype(a.dtype))


@pytest.mark.parametrize(("dtype", "to"), [(dtypes.float32, dtypes.int32), (dtypes.uint16, dtypes.bfloat16),
                                           (dtypes.float64, dtypes.uint64), (dtypes.int8, dtypes.float8_e5m2)])
def test_bitcasts(dtype: DType, to: DType) -> None:
    a = numbers(dtype, 1)
    got = UOp.buffer(dtype, COUNT, "CPU", 0).bitcast(to).evaluate({0: a})
    assert got.tobytes() == a.tobytes() and got.dtype == numpy_type(to)


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8, dtypes.float8_e4m3])
def test_a_byte_as_bool_is_whether_it_is_not_zero(dtype: DType) -> None:
    a = np.arange(256, dtype=np.uint8).view(numpy_type(dtype))
    as_bool = UOp.buffer(dtype, 256, "CPU", 0).bitcast(dtypes.bool)
    assert_same(as_bool.evaluate({0: a}), np.arange(256) != 0)
    back = as_bool.bitcast(dtypes.uint8).evaluate({0: a})
    assert_same(back, (np.arange(256) != 0).astype(np.uint8))


def test_random_expressions() -> None:
    choose = np.random.default_rng(11)
    for dtype in [dtypes.int32, dtypes.uint8, dtypes.float32]:
        for _ in range(20):
            arrays = [numbers(dtype, int(choose.integers(1000))) for _ in range(3)]
            nodes = [(UOp.buffer(dtype, COUNT, "CPU", i), a) for i, a in enumerate(arrays)]
            for _ in range(10):
                op = list(BINARY)[choose.integers(3)]
                (u, a), (v, b) = (nodes[choose.integers(len(nodes))] for _ in range(2))
                nodes.append((u.alu(op, v), BINARY[op](a, b)))
            assert_same(nodes[-1][0].evaluate(dict(enumerate(arrays))), nodes[-1][1])
