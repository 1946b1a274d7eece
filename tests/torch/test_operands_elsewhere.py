"""What PyTorch says of operands that are elsewhere, of masks of bytes, and of windows that cannot be, holds on device weft."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F

import weft.torch  # noqa: F401


def test_an_output_on_another_device() -> None:
    x = torch.tensor([1.0, 0.0, 2.0])
    for function, dtype in ((torch.nonzero, torch.int64), (torch.neg, torch.float32), (torch.masked_select, torch.float32)):
        operands = [x.to("weft"), x.to("weft") > 0][: 2 if function is torch.masked_select else 1]
        with pytest.raises(RuntimeError, match="on the same device"):
            function(*operands, out=torch.empty(0, dtype=dtype))


def test_masks_of_bytes_warn() -> None:
    x, mask = torch.arange(3.0, device="weft"), torch.tensor([1, 0, 1], dtype=torch.uint8, device="weft")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert x[mask].tolist() == [0.0, 2.0]
        x[mask] = torch.tensor([5.0, 6.0], device="weft")
    assert x.tolist() == [5.0, 1.0, 6.0]
    assert [str(w.message)[:34] for w in said] == ["indexing with dtype torch.uint8 is"] * 2


def test_an_index_of_an_axis_without_elements() -> None:
    x = torch.empty(10, 0, device="weft")
    assert x[:, torch.empty(0, dtype=torch.int64, device="weft")].shape == (10, 0)
    with pytest.raises(IndexError, match="for dimension with size 0"):
        x[:, [0, 1]]


def test_windows_that_cannot_be() -> None:
    gradient = torch.ones(2, 3, device="weft")
    with pytest.raises(ValueError, match="step is 0 but must be > 0"):
        torch.ops.aten.unfold_backward(gradient, [6], 0, 3, 0)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        torch.ops.aten.unfold_backward(gradient, [6], 0, -1, 1)


def test_attention_with_a_mask_that_is_causal_too() -> None:
    q = torch.randn(1, 2, 8, 16, generator=torch.Generator().manual_seed(1))
    mask = torch.rand(8, 8, generator=torch.Generator().manual_seed(2)) > 0.3
    mask[:, 0] = True
    results = [F.scaled_dot_product_attention(x, x, x, attn_mask=m, is_causal=True).cpu()
               for x, m in ((q, mask), (q.to("weft"), mask.to("weft")))]
    torch.testing.assert_close(results[1], results[0])


def test_kernels_of_pytorch_that_read_addresses() -> None:
    x, grid = torch.arange(16.0).reshape(1, 1, 4, 4), torch.zeros(1, 2, 2, 2)
    results = [torch.ops.aten._grid_sampler_2d_cpu_fallback(x.to(d), grid.to(d), 0, 0, False).cpu() for d in ("cpu", "weft")]
    torch.testing.assert_close(results[1], results[0])
