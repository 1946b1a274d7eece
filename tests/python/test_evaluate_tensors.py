"""The evaluator against NumPy: movement, reductions, writes."""

import numpy as np
import numpy.typing as npt
import pytest

import weft
from weft.ir import Ops, Stage, UOp, dtypes

Array = npt.NDArray[np.generic]


def buffer(array: Array, number: int = 0) -> UOp:
    return UOp.buffer(weft.ir.DType(array.dtype.name), array.size, "CPU", number).reshape(*array.shape)


def counted(*shape: int) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


def check(u: UOp, want: Array, *arrays: Array) -> None:
    UOp.sink(u).verify(Stage.TENSOR)
    assert u.shape == want.shape
    np.testing.assert_array_equal(u.evaluate(dict(enumerate(arrays))), want)


def test_movement() -> None:
    a = counted(2, 3, 4)
    u = buffer(a)
    check(u.reshape(4, 6), a.reshape(4, 6), a)
    check(u.permute(2, 0, 1), a.transpose(2, 0, 1), a)
    check(u.reshape(2, 1, 3, 4).expand(2, 5, 3, 4), np.broadcast_to(a.reshape(2, 1, 3, 4), (2, 5, 3, 4)), a)
    check(u.pad([(0, 1), (2, 0), (1, 1)]), np.pad(a, [(0, 1), (2, 0), (1, 1)]), a)
    check(u.shrink([(0, 2), (1, 3), (2, 2)]), a[0:2, 1:3, 2:2], a)
    check(u.flip(0, 2), a[::-1, :, ::-1], a)
    check(u.view((3, 2), (1, 5), 4), np.lib.stride_tricks.as_strided(a.reshape(-1)[4:], (3, 2), (4, 20)), a)
    check(u.contiguous().detach().copy_to("CUDA"), a, a)


def random_step(choose: np.random.Generator, u: UOp, a: Array) -> tuple[UOp, Array]:
    """A movement op on both."""
    kind = choose.integers(6)
    if kind == 0 and a.size > 0:
        factors, rest = [], a.size
        while rest > 1 and len(factors) < 3:
            factor = int(choose.choice([f for f in range(1, rest + 1) if rest % f == 0]))
            factors.append(factor)
            rest //= factor
        shape = (*factors, rest)
        return u.reshape(shape), a.reshape(shape)
    if kind == 1:
        order = tuple(int(i) for i in choose.permutation(a.ndim))
        return u.permute(order), a.transpose(order)
    if kind == 2:
        shape = tuple(int(choose.integers(1, 4)) if s == 1 else s for s in a.shape)
        return u.expand(shape), np.broadcast_to(a, shape)
    if kind == 3:
        pairs = [(int(choose.integers(3)), int(choose.integers(3))) for _ in a.shape]
        return (u.pad(pairs), np.pad(a, pairs)) if a.size < 400 and a.ndim else (u, a)
    if kind == 4:
        pairs = [tuple(sorted(int(i) for i in choose.integers(0, s + 1, 2))) for s in a.shape]
        pairs = [(b, max(e, min(b + 1, s))) for (b, e), s in zip(pairs, a.shape)]
        return u.shrink(pairs), a[tuple(slice(b, e) for b, e in pairs)]
    axes = tuple(i for i in range(a.ndim) if choose.integers(2))
    return u.flip(axes), np.flip(a, axes)


@pytest.mark.parametrize("seed", range(60))
def test_random_movement(seed: int) -> None:
    choose = np.random.default_rng(seed)
    start = counted(*(int(i) for i in choose.integers(1, 5, choose.integers(1, 4))))
    u, a = buffer(start), start
    for _ in range(6):
        u, a = random_step(choose, u, a)
        check(u, a, start)


@pytest.mark.parametrize(("op", "function"), [(Ops.ADD, np.sum), (Ops.MUL, np.prod), (Ops.MAX, np.max),
                                              (Ops.MIN, np.min)])
def test_reductions(op: Ops, function) -> None:
    a = np.random.default_rng(1).integers(-5, 6, (2, 3, 4)).astype(np.int64)
    for axes in [(0,), (1, 2), (0, 1, 2), ()]:
        check(buffer(a).reduce_axis(op, axes), function(a, axis=axes, keepdims=True), a)
    f = a.astype(np.float64)
    check(buffer(f).reduce_axis(op, 1), function(f, axis=1, keepdims=True), f)


def test_reductions_of_nothing() -> None:
    empty = np.zeros((0,), np.float32)
    u = UOp.buffer(dtypes.float32, 0, "CPU", 0)
    assert u.reduce_axis(Ops.ADD, 0).evaluate({0: empty}).tolist() == [0]
    assert u.reduce_axis(Ops.MAX, 0).evaluate({0: empty}).tolist() == [-np.inf]


def test_matmul() -> None:
    a, b = counted(3, 4).astype(np.float32), counted(4, 5).astype(np.float32)
    x = buffer(a, 0).reshape(3, 4, 1).expand(3, 4, 5)
    y = buffer(b, 1).reshape(1, 4, 5).expand(3, 4, 5)
    check((x * y).reduce_axis(Ops.ADD, 1).reshape(3, 5), a @ b, a, b)


def test_a_write_replaces_a_region() -> None:
    a, b = counted(4, 4), -counted(2, 2)
    old = UOp.buffer(dtypes.int32, 16, "CPU", 0)
    store = old.reshape(4, 4).shrink([(1, 3), (1, 3)]).assign(buffer(b, 1))
    want = a.copy()
    want[1:3, 1:3] = b
    new = old.after(store)
    check(new.reshape(4, 4), want, a, b)
    check((new - old).reshape(4, 4), want - a, a, b)
    assert a[1, 1] == 5  # tensor graphs change no memory


def test_symbolic_sizes() -> None:
    n = UOp.variable("n", 1, 8)
    u = UOp.buffer(dtypes.int32, n * 2, "CPU", 0).reshape(n, 2).reduce_axis(Ops.ADD, 0)
    for size in (1, 3, 8):
        a = counted(size, 2)
        np.testing.assert_array_equal(u.evaluate({0: a}, {"n": size}), a.sum(0, keepdims=True))
    with pytest.raises(weft.IndexError, match="outside of its bounds"):
        u.evaluate({0: counted(9, 2)}, {"n": 9})
    assert (n.bind(5) + 1).evaluate() == 6


def test_what_comes_back() -> None:
    a = counted(4)
    u = UOp.buffer(dtypes.int32, 4, "CPU", 0)
    both = UOp.sink(u + 1, (u < 2).cast(dtypes.float16)).evaluate({0: a})
    assert isinstance(both, tuple) and [b.dtype for b in both] == [np.int32, np.float16]
    assert UOp.sink().evaluate() == ()
    scalar = UOp.const(dtypes.index, 2**62).evaluate()
    assert scalar.dtype == np.int64 and scalar.shape == () and scalar == 2**62


def test_buffers_must_fit() -> None:
    u = UOp.buffer(dtypes.int32, 4, "CPU", 0)
    with pytest.raises(weft.DTypeError, match="buffer 0 has dtype int64; int32 is needed"):
        u.evaluate({0: np.zeros(4, np.int64)})
    with pytest.raises(TypeError, match="must be a NumPy array"):
        u.evaluate({0: [1, 2, 3, 4]})
    with pytest.raises(weft.Error):
        u.evaluate({0: np.zeros(3, np.int32)})
    with pytest.raises(weft.Error):
        u.evaluate()
    strided = np.arange(8, dtype=np.int32)[::2]
    assert u.evaluate({0: strided}).tolist() == [0, 2, 4, 6]
