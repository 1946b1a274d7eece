"""Graphs are built with checks, and walked."""

import numpy as np
import pytest

import weft
from weft.ir import AddrSpace, AxisType, DType, Ops, Stage, UOp, dtypes


def x() -> UOp:
    return UOp.variable("x", 0, 99)


def test_ops_come_from_the_table() -> None:
    assert len(Ops) > 60
    assert Ops.ADD.name == "ADD" and repr(Ops.ADD) == "Ops.ADD"
    assert Ops.ADD.group == "binary" and Ops.ADD.arity == (2, 2) and Ops.ADD.commutes
    assert Ops.SINK.arity == (0, None) and Ops.SINK.is_effect
    assert Ops.RESHAPE.stages == (Stage.TENSOR,) and Ops.RESHAPE.is_movement
    assert Ops.CMPLT.yields_bool and not Ops.CMPLT.commutes
    assert Ops.SIN.doc == "The sine." and Ops.SIN.__doc__ == Ops.SIN.doc
    assert Ops["MUL"] is Ops.MUL and all(op.doc for op in Ops)
    assert not hasattr(Ops, "ASSIGN")


def test_dtypes() -> None:
    t = dtypes.float32.vec(4).ptr(AddrSpace.LOCAL)
    assert (t.name, t.lanes, t.space, t.bits, t.itemsize) == ("ptr<float32x4, local>", 4, AddrSpace.LOCAL, 32, 4)
    assert t.is_pointer and t.is_vector and t.is_float and not t.is_int
    assert t.pointee == dtypes.float32.vec(4) and t.element == dtypes.float32
    assert eval(repr(t)) == t and DType(t.name) == t and hash(DType(t.name)) == hash(t)
    assert dtypes.index.is_int and dtypes.index.is_signed and not dtypes.bool.is_int
    assert (dtypes.int64.min, dtypes.uint64.max) == (-2**63, 2**64 - 1)
    assert dtypes.float32 != dtypes.float64 and dtypes.float32 != "float32"
    for wrong in ["int7", "int8x", "ptr<int8>", ""]:
        with pytest.raises(weft.DTypeError, match="no dtype"):
            DType(wrong)
    for lanes in [0, -1, 65536]:
        with pytest.raises(weft.DTypeError):
            dtypes.int8.vec(lanes)
    with pytest.raises(weft.DTypeError, match="has no numbers"):
        dtypes.void.max
    assert len(set(dtypes.all)) == len(dtypes.all) == 16


def test_parts_of_a_node() -> None:
    r = UOp.range(8, 3, AxisType.REDUCE)
    u = r * 4 + 1
    assert u.op is Ops.ADD and u.dtype == dtypes.index and u.arg is None
    assert u.src[0].src == (r, UOp.const(dtypes.index, 4))
    assert r.arg == (3, AxisType.REDUCE)
    assert (u.vmin, u.vmax) == (1, 29)
    assert u.ranges == (r,) and u.shape == ()
    assert [n.op for n in u.toposort()] == [Ops.CONST, Ops.RANGE, Ops.CONST, Ops.MUL, Ops.CONST, Ops.ADD]


def test_a_node_does_not_change() -> None:
    u = x()
    for name in ["op", "dtype", "src", "arg", "anything"]:
        with pytest.raises(AttributeError):
            setattr(u, name, None)


def test_arguments_of_every_kind() -> None:
    buffer = UOp.buffer(dtypes.float32, 6, "CPU", 7)
    assert buffer.arg == 7 and buffer.src[1].arg == "CPU"
    assert buffer.reshape(2, 3).permute(1, 0).arg == (1, 0)
    assert buffer.reduce_axis(Ops.MAX, 0).arg == (Ops.MAX, (0,))
    r = UOp.range(4, 0)
    assert r.cast(dtypes.int32).reduce(Ops.ADD, r).arg is Ops.ADD
    assert r.cast(dtypes.int32).bufferize(r, space=AddrSpace.LOCAL).arg is AddrSpace.LOCAL
    assert UOp.const(dtypes.bool, True).arg is True
    assert UOp.variable("größe", 1, 2).arg == "größe"


def test_equality_is_structure() -> None:
    assert x() + 1 == x() + 1 and x() + 1 != x() + 2 and not x() == 3
    assert hash(x() + 1) == hash(x() + 1) and (x() + 1).key == (x() + 1).key
    assert {x(): "here"}[x()] == "here" and x() in [x() + 1, x()]
    assert (x() + 1).hash != (x() + 2).hash and len((x() + 1).key) == 32


def test_equality_makes_no_node() -> None:
    assert (x().eq(3)).op is Ops.CMPEQ and (x().ne(3)).op is Ops.CMPNE
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(x() < 3)
    with pytest.raises(TypeError):
        0 < x() < 3  # noqa: B015


@pytest.mark.parametrize(("build", "text"), [
    (lambda a: a + 1, "x + 1"), (lambda a: 1 + a, "1 + x"), (lambda a: a - 1, "x - 1"),
    (lambda a: 1 - a, "1 - x"), (lambda a: a * 2, "x*2"), (lambda a: 2 * a, "2*x"),
    (lambda a: a // 2, "x//2"), (lambda a: 2 // a, "2//x"), (lambda a: a % 2, "x%2"),
    (lambda a: 2 % a, "2%x"), (lambda a: a & 2, "x & 2"), (lambda a: 2 | a, "2 | x"),
    (lambda a: a ^ 2, "x ^ 2"), (lambda a: a << 2, "x << 2"), (lambda a: 2 >> a, "2 >> x"),
    (lambda a: a < 2, "x < 2"), (lambda a: a > 2, "2 < x"), (lambda a: a <= 2, "not(2 < x)"),
    (lambda a: a >= 2, "not(x < 2)"), (lambda a: 2 < a, "2 < x"), (lambda a: -a, "neg(x)"),
    (lambda a: ~(a < 2), "not(x < 2)"), (lambda a: a.max(3).min(4), "min(max(x, 3), 4)"),
    (lambda a: (a < 3).where(a, 3), "where(x < 3, x, 3)"), (lambda a: a.cdiv(2) + a.cmod(2), "cdiv(x, 2) + cmod(x, 2)"),
    (lambda a: a.alu(Ops.ADD, 5), "x + 5"), (lambda a: (a < 3).alu(Ops.WHERE, 1, a), "where(x < 3, 1, x)"),
    (lambda a: a.mulacc(2, 3), "mulacc(x, 2, 3)"),
])
def test_operators(build, text: str) -> None:
    assert str(build(x())) == text


def test_comparisons_of_floats_see_nan() -> None:
    f = UOp.const(dtypes.float32, float("nan"))
    for node in [f <= f, f >= f, f < f, f > f, f.eq(f)]:
        assert not node.evaluate()
    assert f.ne(f).evaluate() and str(f / 2.0) == "nan/2.0"


def test_numbers_take_the_dtype_of_the_other_operand() -> None:
    f = UOp.const(dtypes.float16, 1)
    assert (f + 1).src[1].dtype == dtypes.float16 and (2.5 * f).src[0].arg == 2.5
    assert (UOp.const(dtypes.uint8, 1) + 255).src[1].arg == 255
    assert (UOp.const(dtypes.bool, True) & False).src[1].arg is False
    assert (UOp.const(dtypes.float32.vec(4), 1) + 1).src[1].dtype == dtypes.float32.vec(4)
    assert (UOp.const(dtypes.bool, True) & np.True_).src[1].arg is True
    assert (np.int64(3) + x()).src[0].arg == 3 and (f * np.float32(0.5)).src[1].arg == 0.5
    for wrong in [lambda: UOp.const(dtypes.uint8, 1) + 256, lambda: UOp.const(dtypes.uint8, 1) - (-1),
                  lambda: x() + 1.0, lambda: f * 1e9, lambda: UOp.const(dtypes.bool, True) & 2,
                  lambda: x() + 2**63, lambda: (x() < 1).where(1, 2)]:
        with pytest.raises(weft.DTypeError):
            wrong()
    with pytest.raises(TypeError, match="unsupported operand"):
        x() + "1"


def test_operands_must_fit() -> None:
    a, b = UOp.buffer(dtypes.int32, 6, "CPU", 0), UOp.buffer(dtypes.int32, 4, "CPU", 1)
    with pytest.raises(weft.ShapeError, match=r"\(6\) and \(4\)"):
        a + b
    with pytest.raises(weft.DTypeError, match="int32 and float32"):
        a + UOp.const(dtypes.float32, 1)
    with pytest.raises(weft.DTypeError):
        a / 2
    with pytest.raises(weft.ShapeError, match="6 elements against 8"):
        a.reshape(4, 2)
    with pytest.raises(weft.SpecError):
        x().alu(Ops.SINK)
    with pytest.raises(weft.SpecError):
        x().alu(Ops.CAST)
    with pytest.raises(TypeError, match="must be a UOp"):
        UOp.sink(3)
    with pytest.raises(weft.DTypeError, match="a size has dtype index"):
        a.reshape(UOp.const(dtypes.float32, 6))
    with pytest.raises(weft.ShapeError, match="63 bits"):
        a.reshape(2**63)


def test_shapes_may_be_symbolic() -> None:
    n = UOp.variable("n", 1, 10)
    t = UOp.buffer(dtypes.float32, n * 4, "CPU", 0).reshape(n, 4)
    assert t.shape == (n, 4) and t.permute(1, 0).shape == (4, n) and t.reshape([n * 4]).shape == (n * 4,)
    assert t.pad(((0, 0), (1, 2))).shape == (n, 7) and t.shrink([(0, n), (1, 3)]).shape == (n, 2)
    assert t.reduce_axis(Ops.ADD, 0).shape == (1, 4) and t.flip(0).shape == (n, 4)
    assert t.reshape((n, 1, 4)).expand(n, 5, 4).shape == (n, 5, 4)
    assert UOp.buffer(dtypes.int8, 9, "CPU", 1).view((2, 2), (3, 1), 4).shape == (2, 2)


def test_writes_have_three_forms() -> None:
    view = UOp.buffer(dtypes.float32, 6, "CPU", 0).reshape(2, 3)
    assert view.assign(view + 1).dtype == dtypes.void
    out, r, gate = UOp.define_global(dtypes.int32, 8, 0), UOp.range(8, 0), UOp.range(8, 0) < 5
    store = out.index(r).assign(3, gate)
    assert store.op is Ops.STORE and store.dtype == dtypes.void and store.src[2] == gate
    reg = UOp.define_reg(dtypes.float32, 0)
    assert reg.assign(0.0).dtype == dtypes.float32
    assert UOp.define_global(dtypes.int32, None, 4).assign(1).dtype == dtypes.int32
    assert UOp.define_global(dtypes.int32, 1, 4).index(0).assign(1).dtype == dtypes.void
    with pytest.raises(weft.SpecError, match="define it without a size"):
        UOp.define_global(dtypes.int32, 1, 4).assign(1)
    assert reg.assign(0.0, gate).src[2] == gate
    with pytest.raises(weft.SpecError, match="gate"):
        view.assign(view + 1, gate)
    with pytest.raises(weft.SpecError):
        r.assign(2)
    with pytest.raises(weft.SpecError, match="the target is an ADD"):
        UOp.sink((r + 1).assign(2).end(r)).verify(Stage.KERNEL)
    with pytest.raises(weft.DTypeError):
        out.index(r).assign(UOp.const(dtypes.float32, 1))


def test_kernel_ops() -> None:
    data, local = UOp.define_global(dtypes.float32, 16, 1), UOp.define_local(dtypes.float32, 4, 0)
    g, lane = UOp.special("gidx0", 4), UOp.special("lidx0", 4)
    put = local.index(lane).assign(data.index(g * 4 + lane).load())
    got = local.after(put.barrier()).index(lane).load(lane < 3, 0.0)
    assert str(put) == "store(local0[lidx0], load(data1[gidx0*4 + lidx0]))"
    assert str(got) == f"load(after(local0, barrier({put}))[lidx0], lidx0 < 3, 0.0)"
    with pytest.raises(weft.SpecError, match="otherwise"):
        local.index(lane).load(lane < 3)
    vector = UOp.const(dtypes.int32, 1).vectorize(2, 3)
    assert vector.dtype == dtypes.int32.vec(3) and vector.gep(2, 0).arg == (2, 0)
    n = UOp.variable("n", 1, 9)
    assert n.bind(4).op is Ops.BIND and UOp.device("CUDA").arg == "CUDA"
    assert data.index(0).src[1] == UOp.const(dtypes.index, 0)


def test_new_builds_anything() -> None:
    odd = UOp.new(Ops.ADD, dtypes.void, [x()])
    assert odd.src == (x(),) and str(odd) == "add(x)"
    with pytest.raises(weft.SpecError, match="number of sources"):
        odd.verify(Stage.KERNEL)
    for op, arg in [(Ops.ADD, 1), (Ops.CONST, "a"), (Ops.RANGE, 1), (Ops.RANGE, (1, 2)), (Ops.VARIABLE, 3),
                    (Ops.PERMUTE, 3), (Ops.REDUCE, "ADD"), (Ops.REDUCE_AXIS, (Ops.ADD,)), (Ops.BUFFER, 1.5)]:
        with pytest.raises(TypeError, match=f"the argument of {op.name}"):
            UOp.new(op, dtypes.int32, (), arg)
    with pytest.raises(weft.SpecError, match="ids are from 0"):
        UOp.new(Ops.RANGE, dtypes.index, (), (-1, AxisType.LOOP))


def test_replace() -> None:
    u = x() + 1
    assert u.replace(op=Ops.MUL) == x() * 1
    assert u.replace(src=(x(), x())) == x() + x()
    assert UOp.range(4, 0).replace(arg=(9, AxisType.GLOBAL)) == UOp.range(4, 9, AxisType.GLOBAL)
    assert u.replace(dtype=dtypes.int32).dtype == dtypes.int32 and u.replace() == u
    nan = UOp.const_bits(dtypes.float32, 0x7FC12345)
    assert nan.replace() == nan
    with pytest.raises(TypeError, match="op, dtype, src and arg"):
        u.replace(source=())


def test_substitute() -> None:
    a, b = x(), UOp.variable("y", 0, 9)
    u = (a + b) * a
    assert u.substitute({a: b, b: a}) == (b + a) * b
    assert u.substitute({a: 3}) == (3 + b) * UOp.const(dtypes.index, 3)
    assert u.substitute({}) == u
