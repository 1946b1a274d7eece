"""Matrix products of narrow floats, of sizes that fill tiles and of others, against float64. On devices with tensor
cores most of these are products of tiles; everywhere they are within the rounding of their dtype. Kernels are what this
is about: where the reference device is the default they are the CPU's."""
import os

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes

SIZES = [(128, 128, 128), (256, 192, 320), (200, 136, 72), (1000, 104, 1000), (130, 70, 90), (64, 64, 64)]
DEVICE = "CPU" if os.environ.get("WEFT_DEVICE") == "REF" else None
BITS = {"bfloat16": 8, "float16": 11}


def numbers(name, *shape, seed=0):
    """A tensor, and what it holds."""
    x = Tensor(np.random.default_rng(sum(shape) + seed).random(shape, np.float32) * 2 - 1, device=DEVICE)
    x = x.cast(getattr(dtypes, name))
    return x.realize(), x.cast(dtypes.float32).numpy().astype(np.float64)


def check(got, want, name, terms):
    error = np.abs(got.cast(dtypes.float32).numpy() - want)
    rounding = 2.0 ** -BITS[name] * (np.abs(want) + terms)  # of the result, and of what it is made of
    assert got.dtype == getattr(dtypes, name)
    assert (error <= rounding + 1e-4 * np.sqrt(want.size)).all(), error.max()


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("m, n, k", SIZES)
def test_products(m, n, k, name):
    a, wide_a = numbers(name, m, k)
    b, wide_b = numbers(name, k, n)
    check(a @ b, wide_a @ wide_b, name, 0)


@pytest.mark.parametrize("m, n, k", SIZES[:4])
def test_transposed(m, n, k):
    a, wide_a = numbers("bfloat16", k, m)
    b, wide_b = numbers("bfloat16", n, k)
    check(a.transpose(0, 1) @ b.transpose(0, 1), wide_a.T @ wide_b.T, "bfloat16", 0)


@pytest.mark.parametrize("m, n, k", SIZES[:4])
def test_what_follows_is_fused(m, n, k):
    a, wide_a = numbers("bfloat16", m, k)
    b, wide_b = numbers("bfloat16", k, n)
    bias, wide_bias = numbers("bfloat16", n)
    residual, wide_residual = numbers("bfloat16", m, n)
    result = (a @ b + bias).relu() + residual
    assert len(result.schedule()) == 1
    product = wide_a @ wide_b
    check(result, np.maximum(product + wide_bias, 0) + wide_residual, "bfloat16", 3 * np.abs(product) + 3)


def test_batches():
    a, wide_a = numbers("bfloat16", 3, 2, 128, 128)
    b, wide_b = numbers("bfloat16", 3, 2, 128, 64)
    check(a @ b, wide_a @ wide_b, "bfloat16", 0)


def test_replayed_on_other_memory():
    product = weft.jit(lambda a, b: a @ b)
    kept = []
    for seed in range(6):  # the memory of each is another
        a, wide_a = numbers("bfloat16", 128, 192, seed=seed)
        b, wide_b = numbers("bfloat16", 192, 128, seed=seed + 100)
        kept.append((a, b, product(a, b), wide_a @ wide_b))
    for _, _, got, want in kept:
        check(got, want, "bfloat16", 0)


def test_slices_of_arrays():
    a, wide_a = numbers("bfloat16", 4, 256, 320)
    b, wide_b = numbers("bfloat16", 320, 256)
    check(a[2, 128:, 64:256] @ b[128:, :128], wide_a[2, 128:, 64:256] @ wide_b[128:, :128], "bfloat16", 0)
    heads = a.reshape(4, 256, 5, 64).permute(0, 2, 1, 3)
    wide_heads = wide_a.reshape(4, 256, 5, 64).transpose(0, 2, 1, 3)
    check(heads @ heads.transpose(-1, -2), wide_heads @ wide_heads.transpose(0, 1, 3, 2), "bfloat16", 0)
