"""What is chosen for a GPU that need not be there: device NULL:CUDA schedules and writes kernels, and runs none."""
import pytest

from weft import Tensor, _core, dtypes

DEVICE = "NULL:CUDA"


def memory(*shape, dtype=dtypes.bfloat16):
    return Tensor.empty(*shape, dtype=dtype, device=DEVICE).realize()


@pytest.fixture(autouse=True)
def no_schedules_of_other_sizes():
    _core.clear_schedule_cache()


def on_tensor_cores(kernel):
    return "wgmma.mma_async" in kernel.source


PRODUCTS = {
    "plain": lambda: memory(512, 256) @ memory(256, 512),
    "transposed": lambda: memory(512, 256) @ memory(512, 256).transpose(0, 1),
    "odd sizes": lambda: memory(301, 157) @ memory(157, 203),
    "odd sizes, transposed": lambda: memory(157, 301).transpose(0, 1) @ memory(203, 157).transpose(0, 1),
    "a cast before it": lambda: memory(512, 256, dtype=dtypes.float32).cast(dtypes.bfloat16) @ memory(256, 512),
    "a use of the product twice": lambda: (memory(512, 256) @ memory(256, 512)).gelu(),
    "bias and residual": lambda: memory(512, 256) @ memory(256, 512) + memory(512) + memory(512, 512),
    "batches": lambda: memory(6, 130, 64) @ memory(6, 64, 200),
    "few rows": lambda: memory(16, 1024) @ memory(1024, 1024),
    "a window over few channels": lambda: memory(4, 3, 64, 64).conv2d(memory(64, 3, 7, 7), padding=3, stride=2),
    "heads side by side": lambda: (memory(2, 8, 256, 128) @ memory(2, 8, 128, 64)).transpose(1, 2).reshape(2, 256, 512),
    "a convolution": lambda: memory(4, 64, 56, 56).conv2d(memory(128, 64, 3, 3), padding=1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_narrow_floats_are_on_tensor_cores(name):
    kernels = PRODUCTS[name]().schedule()
    assert sum(on_tensor_cores(k) for k in kernels) == 1
    assert all(on_tensor_cores(k) or k.buffers == 2 for k in kernels)  # of one input: casts, sums of parts


def test_outputs_of_one_product_are_one_kernel_on_tensor_cores():
    gradient = memory(512, 256).transpose(0, 1) @ memory(512, 384)
    momentum, weight = memory(256, 384), memory(256, 384)
    momentum.assign(momentum * 0.9 + gradient)
    weight.assign(weight - momentum * 0.1)
    kernels = momentum.schedule(weight)
    assert len(kernels) == 1 and on_tensor_cores(kernels[0])


def test_few_columns_are_summed_in_parts():
    first, second = memory(4096, 768, dtype=dtypes.float32).sum(0).schedule()
    assert first.name == "r_32_768"
    assert second.buffers == 2


@pytest.mark.parametrize("is_turned", [False, True])
def test_products_of_few_tiles_and_long_sums_are_done_in_parts(is_turned):
    weight = memory(8192, 8192)
    first, second = (memory(16, 8192) @ (weight.transpose(0, 1) if is_turned else weight)).schedule()
    assert first.name == "r_4_16_8192" and on_tensor_cores(first)
    assert second.buffers == 2
    assert len((memory(2048, 2048) @ memory(2048, 2048)).schedule()) == 1


def test_it_runs_nothing():
    assert (memory(4) + 1).tolist() == [0, 0, 0, 0]
