"""Rows that are longer than a core's cache, or made of products: one pass, the values of the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes

Array = np.ndarray[Any, Any]
ROWS, LENGTH, WIDE = 70, 600, 16


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(scores: Array) -> Array:
    with np.errstate(all="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True))


Q, K, V = numbers(1, 2, ROWS, WIDE), numbers(2, 2, LENGTH, WIDE), numbers(3, 2, LENGTH, WIDE)
SCORES = Q.astype(np.float64) @ K.astype(np.float64).transpose(0, 2, 1) / 4
q, k, v = (Tensor(x, device="CPU").realize() for x in (Q, K, V))


def on_cpu(x: Array) -> Tensor:
    return Tensor(x, device="CPU").realize()


def scores() -> Tensor:
    return q @ k.transpose(-1, -2) / 4


def check(result: Tensor, expected: Array, tolerance: float = 2e-6, kernels: int = 1) -> None:
    weft.counters.reset()
    result.realize()
    assert weft.counters.kernels == kernels
    np.testing.assert_allclose(result.cast(dtypes.float64).numpy(), expected, rtol=tolerance, atol=tolerance)


def test_formula_and_operator() -> None:
    expected = softmax(SCORES) @ V.astype(np.float64)
    check(scores().softmax(-1) @ v, expected)
    check(q.scaled_dot_product_attention(k, v), expected)
    check(divided_later(), expected)


def divided_later() -> Tensor:
    powers = (scores() - scores().max(-1, keepdim=True)).exp()
    return (powers @ v) / powers.sum(-1, keepdim=True)


def test_sums_of_exponentials_need_no_maximum() -> None:
    check((scores().exp() @ v) / scores().exp().sum(-1, keepdim=True), softmax(SCORES) @ V.astype(np.float64))


def test_masks() -> None:
    seen = np.random.default_rng(4).random((ROWS, LENGTH)) < 0.5
    seen[3] = False
    seen[5, :400] = False
    masked = np.where(seen, SCORES, -np.inf)
    mask = on_cpu(seen)
    check(Tensor.where(mask, scores(), -np.inf).softmax(-1) @ v, softmax(masked) @ V)  # NaN in row 3
    weights = np.nan_to_num(softmax(masked))
    check(q.scaled_dot_product_attention(k, v, attn_mask=mask), weights @ V)  # 0 in row 3


def test_causal() -> None:
    rows = numbers(5, 2, LENGTH, WIDE)
    expected = rows.astype(np.float64) @ K.astype(np.float64).transpose(0, 2, 1) / 4
    expected = softmax(np.where(np.tril(np.ones((LENGTH, LENGTH), bool)), expected, -np.inf)) @ V
    check(on_cpu(rows).scaled_dot_product_attention(k, v, is_causal=True), expected)


def test_grouped_heads() -> None:
    heads = numbers(6, 1, 4, LENGTH, WIDE)
    keys, values = K[None].repeat(2, 1).astype(np.float64), V[None].repeat(2, 1).astype(np.float64)
    expected = softmax(heads.astype(np.float64) @ keys.transpose(0, 1, 3, 2) / 4) @ values
    result = on_cpu(heads).scaled_dot_product_attention(k.reshape(1, 2, LENGTH, WIDE), v.reshape(1, 2, LENGTH, WIDE),
                                                        enable_gqa=True)
    check(result, expected)


def test_biases_with_infinities_and_nan() -> None:
    bias = numbers(7, ROWS, LENGTH)
    bias[2, 7], bias[4], bias[6, 100], bias[8, 599], bias[9, :300] = -np.inf, -np.inf, np.inf, np.nan, -np.inf
    check((scores() + on_cpu(bias)).softmax(-1) @ v, softmax(SCORES + bias) @ V.astype(np.float64))


def test_scores_far_from_zero() -> None:
    bias = numbers(8, ROWS, LENGTH) * 1000
    bias[1] -= 5000
    check((scores() + on_cpu(bias)).softmax(-1) @ v, softmax(SCORES + bias) @ V.astype(np.float64), 1e-3)


@pytest.mark.parametrize(("dtype", "tolerance"), [(dtypes.bfloat16, 2e-2), (dtypes.float16, 2e-3), (dtypes.float64, 1e-12)])
def test_dtypes(dtype: weft.DType, tolerance: float) -> None:
    inputs = [x.cast(dtype).realize() for x in (q, k, v)]
    exact = [x.cast(dtypes.float64).numpy() for x in inputs]
    expected = softmax(exact[0] @ exact[1].transpose(0, 2, 1) / 4) @ exact[2]
    check(inputs[0].scaled_dot_product_attention(inputs[1], inputs[2]), expected, tolerance)


def test_rows_of_products_without_weights() -> None:
    expected = np.log(np.exp(SCORES).sum(-1))
    check(scores().logsumexp(-1), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_long_rows(axis: int) -> None:
    x = numbers(9, 32, 300_000) * 3 + 7
    exact = x.astype(np.float64)
    moved = on_cpu(np.ascontiguousarray(x.T)) if axis == 0 else on_cpu(x)
    check(moved.var(axis), exact.var(1, ddof=1), 1e-5)
    most = exact.max(1)
    check(moved.logsumexp(axis), np.log(np.exp(exact - most[:, None]).sum(1)) + most, 1e-6)


def test_the_spread_of_what_is_far_from_zero() -> None:
    x = (np.random.default_rng(10).random((32, 300_000)) + 1000).astype(np.float32)
    check(on_cpu(x).var(1), x.astype(np.float64).var(1, ddof=1), 1e-4)
