"""Kernels are optimised by hand, lowered and rendered, step by step."""

from __future__ import annotations

import re

import numpy as np
import pytest

from weft import Tensor, errors, ir
from weft.ir import AxisType, Ops, Stage, UOp, dtypes


def twice(size: int = 100) -> UOp:
    i = UOp.range(size, 0)
    x, y = (UOp.define_global(dtypes.float32, size, n) for n in (1, 0))
    return UOp.sink(y.index(i).assign(x.index(i).load() * 2).end(i))


def test_lower_gives_a_program() -> None:
    for target in ("LLVM", "C"):
        program = ir.lower(twice(), "VECTOR(0, 16)", target)
        program.verify(Stage.PROGRAM)
        assert program.op is Ops.LINEAR
        assert any(n.dtype == dtypes.float32.vec(16) for n in program.src)
    assert ir.lower(twice(), "").toposort() != ir.lower(twice(), "UPCAST(0, 4)").toposort()


def test_what_is_chosen_is_what_is_lowered() -> None:
    kernel = twice()
    assert ir.lower(kernel) == ir.lower(kernel, ir.choose_opts(kernel))


def test_programs_compute_what_kernels_do() -> None:
    numbers = np.arange(100, dtype=np.float32)
    for opts in ("", "VECTOR(0, 16)", "UPCAST(0, 7)", "TILE(0, 9) UPCAST(0, 2)", "PAD(0, 64) VECTOR(0, 8)"):
        program = ir.lower(twice(), opts)
        memory = {0: np.zeros(100, np.float32), 1: numbers}
        program.evaluate(memory)
        assert (memory[0] == 2 * numbers).all(), opts


def test_passes_are_traced() -> None:
    trace = ir.Trace()
    program = ir.lower(twice(), "VECTOR(0, 16)", trace=trace)
    names = [p.name for p in trace.passes]
    assert names[0] == "canonical" and names[-1] == "insert barriers" and "vectorize" in names
    assert trace.passes[-1].after == program


def test_apply_opts_changes_loops() -> None:
    kernel = ir.apply_opts(twice(), "TILE(0, 10) VECTOR(1, 2)")
    kernel.verify(Stage.KERNEL)
    loops = {(*r.arg, r.src[0].arg) for r in kernel.toposort() if r.op is Ops.RANGE}
    assert loops == {(0, AxisType.GLOBAL, 10), (1, AxisType.GLOBAL, 5), (2, AxisType.LANE, 2)}


def test_what_does_not_apply() -> None:
    assert ir.why_not(twice(), "VECTOR(0, 16)") == ""
    assert ir.why_not(twice(), "GROUP(0, 4)") == "it is no reduction"
    with pytest.raises(errors.CompileError, match="does not apply: there is no loop 3"):
        ir.apply_opts(twice(), "TILE(3, 4)")
    with pytest.raises(errors.CompileError, match="GROUP"):
        ir.lower(twice(), "GROUP(0, 4)")
    with pytest.raises(errors.ParseError, match=r"expected ',' at position 6"):
        ir.apply_opts(twice(), "TILE(3)")
    with pytest.raises(ValueError, match="one optimisation is needed, not 2"):
        ir.why_not(twice(), "TILE(0, 2) TILE(0, 2)")


def test_what_is_no_kernel() -> None:
    with pytest.raises(errors.SpecError):
        ir.lower(UOp.sink(UOp.const(dtypes.float32, 1.0)))
    with pytest.raises(ValueError, match="a target is LLVM, C, PTX, TRITON, CUDA, OPENCL, WGSL, METAL or HIP, not VAX"):
        ir.lower(twice(), target="VAX")
    with pytest.raises(ValueError, match="a language is llvm, c, ptx, triton, cuda, opencl, wgsl, metal or hip, not rust"):
        ir.render(ir.lower(twice()), "rust")
    with pytest.raises((ValueError, errors.SpecError)):
        ir.render(twice(), "c")


def test_render() -> None:
    program = ir.lower(twice(), "VECTOR(0, 16)", "C")
    text = ir.render(program, "c", "double_it")
    assert "void double_it(void* const* buffers" in text and "f32x16" in text
    text = ir.render(ir.lower(twice(), "VECTOR(0, 16)"), "llvm", "double_it")
    assert "define void @double_it(" in text and "<16 x float>" in text


@pytest.mark.parametrize("device", ["CPU:LLVM", "CPU:C"])
def test_schedules_have_source(device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device)
    [kernel] = (x * 2).schedule()
    name = kernel.name
    if name not in kernel.source:  # one for kernels that differ in numbers
        name = re.findall(r"\w+_any\b", kernel.source)[0]
    assert ("define void" if device == "CPU:LLVM" else "typedef float f32") in kernel.source
    language = "llvm" if device == "CPU:LLVM" else "c"
    program = ir.lower(ir.parse(kernel.graph), target=device[4:])
    assert ir.render(program, language, name) == kernel.source
