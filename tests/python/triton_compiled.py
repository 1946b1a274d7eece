"""Kernels that Triton compiles for sm_90 without a GPU: run by test_triton.py."""

from __future__ import annotations

import pytest
import triton_kernels as kernels

from weft import Tensor, triton
from weft.ir import DType, dtypes


def machine_code(kernel: triton.Kernel) -> str:
    compiled = kernel.compile(90)
    assert len(compiled["cubin"]) > 1000
    ptx = compiled["ptx"]
    assert isinstance(ptx, str) and ".target sm_90" in ptx
    for inexact in (".ftz", ".approx", "div.full", "fma."):
        assert inexact not in ptx, [line for line in ptx.splitlines() if inexact in line]
    return ptx


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.int64, dtypes.uint32, dtypes.float16, dtypes.bfloat16,
                                   dtypes.float32, dtypes.float64], ids=str)
def test_every_op(dtype: DType) -> None:
    kernel, _, _ = kernels.all_ops(dtype, 128)
    machine_code(triton.Kernel(kernel, ""))


def test_kernels_of_tensor_programs() -> None:
    for scheduled in (Tensor.empty(9, 33).softmax(axis=1) @ Tensor.empty(33, 5)).schedule():
        kernel = triton.Kernel(scheduled)
        ptx = machine_code(kernel)
        assert f".reqntid {32 * kernel.warps}" in ptx
