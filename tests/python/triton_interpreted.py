"""Kernels in Triton's interpreter, against the evaluator: run by test_triton.py."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import triton_kernels as kernels
from triton_kernels import Array, Place

from weft import Tensor, ir, triton
from weft.ir import DType, Ops, UOp, dtypes

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def assert_like_the_evaluator(kernel: triton.Kernel, memory: dict[int, Array], names: dict[int, str] | None = None,
                              variables: dict[str, int] | None = None) -> None:
    """Both run the same list."""
    expected = {number: array.copy() for number, array in memory.items()}
    kernel.program.evaluate(expected, variables)
    kernel.run(memory, variables)
    for number in memory:
        where = kernels.difference(memory[number], expected[number])
        what = (names or {}).get(number, f"argument {number}")
        assert len(where) == 0, (what, where[:3], memory[number][where[:3]], expected[number][where[:3]], kernel.source)


@pytest.mark.parametrize("dtype", kernels.TYPES, ids=str)
def test_every_op(dtype: DType) -> None:
    kernel, memory, names = kernels.all_ops(dtype, 1000)
    assert_like_the_evaluator(triton.Kernel(kernel, ""), memory, names)


@pytest.mark.parametrize("threads", [1, 3, 24, 32])
def test_workgroups_of_any_size(threads: int) -> None:
    place = Place(100, threads)
    value = place.load(dtypes.int32, 1) * place.at.cast(dtypes.int32)
    memory = {0: np.zeros(100, np.int32), 1: np.arange(100, dtype=np.int32)}
    kernel = triton.Kernel(UOp.sink(place.store(value, 0)), "")
    assert kernel.grid() == (-(-100 // threads), 1, 1) and kernel.warps == 1
    assert_like_the_evaluator(kernel, memory)
    assert (memory[0] == np.arange(100) ** 2).all()


def test_threads_in_three_dimensions() -> None:
    sizes = {"lidx0": 3, "lidx1": 2, "lidx2": 5, "gidx1": 2}
    at = UOp.const(dtypes.index, 0)
    for name, size in sizes.items():
        at = at * size + UOp.special(name, size)
    out = UOp.define_global(dtypes.int32, 60, 0)
    memory = {0: np.zeros(60, np.int32)}
    assert_like_the_evaluator(triton.Kernel(UOp.sink(out.index(at).assign(at.cast(dtypes.int32))), ""), memory)
    assert (memory[0] == np.arange(60)).all()


def test_loops_that_threads_leave_one_after_the_other() -> None:
    text = (GOLDEN / "render_triton/row_sums.txt").read_text().split("---\n")[0]
    random = np.random.default_rng(1)
    lengths = random.integers(-2, 12, 1000).astype(np.int32)
    memory = {0: random.random(1000, np.float32), 1: lengths, 2: random.normal(size=1000).astype(np.float16)}
    for groups in (1, 4):
        assert_like_the_evaluator(triton.Kernel(ir.parse(text)), memory, variables={"groups": groups})


def test_a_variable_and_gates() -> None:
    text = (GOLDEN / "render_triton/gated_sum.txt").read_text().split("---\n")[0]
    random = np.random.default_rng(2)
    for n in (1, 7, 10):
        memory = {0: np.zeros(100, np.float32), 1: random.random(100, np.float32),
                  2: random.integers(-9, 9, 100).astype(np.int32)}
        assert_like_the_evaluator(triton.Kernel(ir.parse(text)), memory, variables={"n": n})


def test_constants_keep_their_bits() -> None:
    values = [np.float32(-0.0), np.float32("inf"), np.float32("-inf"), np.float32(1e-45), np.float32(0.1)]
    place = Place(4, 4)
    stores = [place.store(UOp.const(dtypes.float32, float(v)), k) for k, v in enumerate(values)]
    nan = UOp.const(dtypes.uint32, 0xFFC01234).bitcast(dtypes.float32).simplify()
    kernel = triton.Kernel(UOp.sink(*stores, place.store(nan, len(values))), "")
    memory = {k: np.ones(4, np.float32) for k in range(len(values) + 1)}
    kernel.run(memory)
    for k, v in enumerate([*values, np.uint32(0xFFC01234).view(np.float32)]):
        assert (memory[k].view(np.uint32) == v.view(np.uint32)).all()


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "sum": lambda: Tensor.empty(300, 70).sum(axis=1),
    "sum_of_all": lambda: Tensor.empty(5000).sum(),
    "mean_of_columns": lambda: Tensor.empty(30, 40).mean(axis=0),
    "softmax": lambda: Tensor.empty(9, 33).softmax(axis=1),
    "product": lambda: Tensor.empty(17, 23) @ Tensor.empty(23, 9),
    "product_of_bfloat16": lambda: Tensor.empty(8, 16, dtype="bfloat16") @ Tensor.empty(16, 8, dtype="bfloat16"),
    "maximum": lambda: Tensor.empty(40, 5, dtype="float16").max(axis=0),
    "argmax": lambda: Tensor.empty(12, 31).argmax(axis=1),
    "all": lambda: (Tensor.empty(40, 9, dtype="int8") > 3).all(axis=1),
    "padded": lambda: Tensor.empty(7, 5).pad(((1, 2), (3, 0))).flip(0),
    "transposed": lambda: Tensor.empty(20, 30).T.contiguous() + 1,
    "joined": lambda: Tensor.empty(4, 5).cat(Tensor.empty(3, 5), dim=0),
    "chosen": lambda: Tensor.empty(50)[Tensor.empty(20, dtype="int32")],
    "cumulative": lambda: Tensor.empty(6, 40).cumsum(axis=1),
    "functions": lambda: (Tensor.empty(64).sin() + Tensor.empty(64).exp()).log(),
    "integers": lambda: Tensor.empty(64, dtype="int64") // Tensor.empty(64, dtype="int64") % 7,
    "variance": lambda: Tensor.empty(5, 64, dtype="float64").var(axis=1),
}


def random_memory(kernel: triton.Kernel, seed: int) -> dict[int, Array]:
    random = np.random.default_rng(seed)
    memory = {}
    for node in kernel.program.toposort():
        if node.op is not Ops.DEFINE_GLOBAL:
            continue
        size, dtype = node.src[0].arg, node.dtype.pointee
        kind = kernels.numpy_type(dtype)
        if dtype.is_float:
            memory[node.arg] = random.normal(size=size).astype(kind)
        else:
            memory[node.arg] = random.integers(0 if dtype.is_unsigned or dtype.is_bool else -3, 5, size).astype(kind)
    return memory


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_tensor_programs(name: str) -> None:
    scheduled = PROGRAMS[name]().schedule()
    assert scheduled
    for number, item in enumerate(scheduled):
        kernel = triton.Kernel(item)
        assert_like_the_evaluator(kernel, random_memory(kernel, number))
