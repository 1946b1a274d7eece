"""The evaluator against NumPy: loops, memory, accumulators, threads."""

import numpy as np
import pytest

import weft
from weft.ir import AddrSpace, AxisType, DType, Ops, Stage, UOp, dtypes


def pointer(number: int, size: int, dtype: DType = dtypes.float32) -> UOp:
    return UOp.define_global(dtype, size, number)


def accumulate(op: Ops, start: float, x: UOp, r: UOp, outer: tuple[UOp, ...] = (), number: int = 0) -> UOp:
    """The register with `op` of x over r, started anew in the loops `outer`."""
    acc = UOp.define_reg(x.dtype, number)
    inside = acc.after(acc.after(*outer).assign(start) if outer else acc.assign(start), r)
    return acc.after(inside.assign(inside.alu(op, x)).end(r))


def run(*effects: UOp, **memory: np.typing.NDArray[np.generic]) -> dict[int, np.typing.NDArray[np.generic]]:
    buffers = {int(name[1:]): array for name, array in memory.items()}
    root = UOp.sink(*effects)
    root.verify(Stage.KERNEL)
    root.evaluate(buffers)
    return buffers


def test_rows_are_summed() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    i, r = UOp.range(3, 0), UOp.range(4, 1, AxisType.REDUCE)
    total = accumulate(Ops.ADD, 0.0, pointer(1, 12).index(i * 4 + r).load(), r, (i,))
    assert run(pointer(0, 3).index(i).assign(total).end(i), b1=a)[0].tolist() == a.sum(1).tolist()


@pytest.mark.parametrize(("op", "start", "function"), [(Ops.MAX, -np.inf, np.max), (Ops.MIN, np.inf, np.min),
                                                       (Ops.MUL, 1.0, np.prod)])
def test_other_accumulators(op: Ops, start: float, function) -> None:
    a = np.random.default_rng(1).integers(-4, 5, 10).astype(np.float32)
    r = UOp.range(10, 0)
    value = accumulate(op, start, pointer(1, 10).index(r).load(), r)
    assert run(pointer(0, 1).index(0).assign(value), b1=a)[0][0] == function(a)


def test_matrix_product() -> None:
    choose = np.random.default_rng(2)
    a, b = choose.integers(-9, 9, (3, 5)).astype(np.float32), choose.integers(-9, 9, (5, 4)).astype(np.float32)
    i, j, k = UOp.range(3, 0), UOp.range(4, 1), UOp.range(5, 2)
    acc = UOp.define_reg(dtypes.float32, 0)
    inside = acc.after(acc.after(i, j).assign(0.0), k)
    step = inside.assign(pointer(1, 15).index(i * 5 + k).load().mulacc(pointer(2, 20).index(k * 4 + j).load(), inside))
    out = run(pointer(0, 12).index(i * 4 + j).assign(acc.after(step.end(k))).end(i, j), b1=a, b2=b)
    np.testing.assert_array_equal(out[0].reshape(3, 4), a @ b)


def test_reduce_is_an_accumulator() -> None:
    a = np.arange(6, dtype=np.int32)
    r = UOp.range(6, 0)
    assert pointer(0, 6, dtypes.int32).index(r).load().reduce(Ops.ADD, r).evaluate({0: a}) == 15
    i = UOp.range(3, 1)
    squares = (i * i).cast(dtypes.int32).bufferize(i, space=AddrSpace.LOCAL)
    assert squares.evaluate().tolist() == [0, 1, 4]


def test_memory_is_written_in_place() -> None:
    data = np.arange(8, dtype=np.float32)
    r, p = UOp.range(8, 0), pointer(0, 8)
    run(p.index(r).assign(p.index(r).load() * 2.0).end(r), b0=data)
    assert data.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    square = np.arange(4, dtype=np.float32).reshape(2, 2).T
    run(pointer(0, 4).index(UOp.range(4, 0)).assign(1.0).end(UOp.range(4, 0)), b0=square)
    assert square.tolist() == [[1, 1], [1, 1]]
    frozen = np.zeros(8, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(p.index(r).assign(1.0).end(r), b0=frozen)


def test_gates() -> None:
    r = UOp.range(6, 0)
    data = np.arange(4, dtype=np.float32)
    value = pointer(1, 4).index(r).load(r < 4, -1.0)
    out = np.full(6, 9, np.float32)
    run(pointer(0, 6).index(r).assign(value, r > 0).end(r), b0=out, b1=data)
    assert out.tolist() == [9, 1, 2, 3, -1, -1]


def test_threads_meet_at_a_barrier() -> None:
    group, lane = UOp.special("gidx0", 2), UOp.special("lidx0", 4)
    shared = UOp.define_local(dtypes.int32, 4, 0)
    put = shared.index(lane).assign((group * 10 + lane).cast(dtypes.int32))
    got = shared.after(put.barrier()).index(3 - lane).load()
    out = run(pointer(0, 8, dtypes.int32).index(group * 4 + lane).assign(got))
    assert out[0].tolist() == [3, 2, 1, 0, 13, 12, 11, 10]


def test_vectors() -> None:
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    r = UOp.range(2, 0)
    source, target = pointer(1, 2, dtypes.float32.vec(4)), pointer(0, 2, dtypes.float32.vec(4))
    value = source.index(r).load()
    reverse = value.gep(3, 2, 1, 0) + value
    out = np.zeros((2, 4), np.float32)
    UOp.sink(target.index(r).assign(reverse).end(r)).evaluate({0: out, 1: data})
    np.testing.assert_array_equal(out, data[:, ::-1] + data)
    assert UOp.const(dtypes.int8, 1).vectorize(2, 3).evaluate().tolist() == [1, 2, 3]


def test_single_elements_as_arguments() -> None:
    r = UOp.range(3, 0)
    scale = UOp.define_global(dtypes.float32, None, 1)
    value = r.cast(dtypes.float32) * scale
    memory = {0: np.zeros(3, np.float32), 1: np.array([2.5], np.float32)}
    UOp.sink(pointer(0, 3).index(r).assign(value).end(r)).evaluate(memory)
    assert memory[0].tolist() == [0, 2.5, 5]


def test_variables_bound_loops() -> None:
    n = UOp.variable("n", 1, 10)
    r = UOp.range(n, 0)
    out = np.zeros(10, np.int64)
    UOp.sink(pointer(0, 10, dtypes.int64).index(r).assign(r.cast(dtypes.int64) + 1).end(r)).evaluate({0: out}, {"n": 4})
    assert out.tolist() == [1, 2, 3, 4, 0, 0, 0, 0, 0, 0]


def test_kernels_run_on_their_arguments() -> None:
    r = UOp.range(3, 0)
    ast = UOp.sink(pointer(0, 3).index(r).assign(pointer(1, 3).index(r).load() + 1.0).end(r))
    buffers = [UOp.buffer(dtypes.float32, 3, "CPU", number) for number in (1, 7)]
    kernel = UOp.new(Ops.KERNEL, dtypes.void, (ast, *buffers), "adds_one")
    memory = {7: np.arange(3, dtype=np.float32)}
    assert UOp.sink(kernel).evaluate(memory) == (None,)
    assert memory[1].tolist() == [1, 2, 3] and memory[7].tolist() == [0, 1, 2]


def test_accesses_are_checked() -> None:
    r = UOp.range(5, 0)
    with pytest.raises(weft.IndexError):
        pointer(0, 4).index(r).load().reduce(Ops.ADD, r).evaluate({0: np.zeros(4, np.float32)})
    with pytest.raises(weft.Error):
        pointer(0, 5).index(r).load().reduce(Ops.ADD, r).evaluate()
