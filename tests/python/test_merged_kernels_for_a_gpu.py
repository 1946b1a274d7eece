"""Reductions that depend on products, and products of their results, are one kernel on tensor cores, however they are written."""
import pytest

from weft import Tensor, _core, dtypes


def memory(*shape, dtype=dtypes.bfloat16):
    return Tensor.empty(*shape, dtype=dtype, device="NULL:CUDA").realize()


def three(*shape, dtype=dtypes.bfloat16):
    return memory(*shape, dtype=dtype), memory(*shape, dtype=dtype), memory(*shape, dtype=dtype)


def by_hand(between=lambda s: s):
    q, k, v = three(4, 256, 64)
    return between(q @ k.transpose(-1, -2) / 8).softmax(-1) @ v


def in_float32():
    q, k, v = three(4, 256, 64)
    return (q @ k.transpose(-1, -2)).cast(dtypes.float32).softmax(-1).cast(dtypes.bfloat16) @ v


def attention(q, k, v, **options):
    return q.scaled_dot_product_attention(k, v, **options)


def grouped():
    q = memory(2, 8, 256, 64)
    k, v = (memory(2, 2, 1, 256, 64).expand(2, 2, 4, 256, 64).reshape(2, 8, 256, 64) for _ in range(2))
    return attention(q, k, v)


def of_one_memory():
    x = memory(2, 256, 3 * 512)
    q, k, v = (x[:, :, i * 512:(i + 1) * 512].reshape(2, 256, 8, 64).transpose(1, 2) for i in range(3))
    return attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 256, 512)


def window():
    places = Tensor.arange(256, device="NULL:CUDA")
    i, j = places.reshape(256, 1), places.reshape(1, 256)
    return by_hand(lambda s: ((j <= i) & (i - j < 64)).where(s, float("-inf")))


PROGRAMS = {
    "by hand": by_hand,
    "in float32": in_float32,
    "the operator": lambda: attention(*three(2, 4, 256, 128, dtype=dtypes.float16)),
    "causal, odd sizes": lambda: attention(*three(4, 300, 80), is_causal=True),
    "few rows": lambda: attention(memory(64, 100, 64), memory(64, 512, 64), memory(64, 512, 64)),
    "a mask of bools": lambda: attention(*three(2, 4, 256, 64), attn_mask=memory(256, 256, dtype=dtypes.bool)),
    "a mask that is added": lambda: attention(*three(2, 4, 256, 64), attn_mask=memory(2, 1, 256, 256)),
    "dropout": lambda: attention(*three(2, 4, 256, 64), dropout_p=0.1),
    "grouped heads": grouped,
    "heads side by side": of_one_memory,
    "a window": window,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_one_kernel_on_tensor_cores(name):
    _core.clear_schedule_cache()
    kernels = PROGRAMS[name]().schedule()
    assert len(kernels) == 1
    assert "wgmma.mma_async" in kernels[0].source
