"""Reads of versions in the middle of a loop of writes, realised one by one: each goes on from the one before."""

import numpy as np
import pytest

import weft
from weft import Tensor

N, PERIOD = 400, 10


@pytest.mark.parametrize("starts", ["realised", "lazy"])
def test_each_write_is_done_once(starts: str) -> None:
    c = Tensor(np.arange(N, dtype=np.float32)).realize()
    a, expected, sums = Tensor.zeros(N), np.zeros(N, np.float32), []
    if starts == "realised":
        a.realize()
    for i in range(N):
        a[i] = c[i] * 2
        expected[i] = i * 2
        if i % PERIOD == PERIOD - 1:
            sums.append((a.sum(), expected.sum()))
    flops, live = weft.counters.flops, weft.counters.live_bytes
    for got, total in sums:
        assert got.item() == total
    reductions = N * len(sums)
    assert weft.counters.flops - flops <= reductions + 2 * N
    assert weft.counters.live_bytes - live <= 2 * 4 * N + 64 * len(sums)
    np.testing.assert_array_equal(a.numpy(), expected)


def test_in_any_order_and_with_writes_behind() -> None:
    a, expected, kept = Tensor.zeros(N).realize(), np.zeros(N, np.float32), []
    view = a[5:20]
    for i in range(1, N):
        a[i] = a[i - 1] * 0.5 + i
        expected[i] = expected[i - 1] * np.float32(0.5) + np.float32(i)
        if i % 50 == 0:
            kept.append((a.max(), expected.max()))
            kept.append((a[i - 5:i + 5] * 2, expected[i - 5:i + 5] * 2))
        if i == 200:
            np.testing.assert_array_equal(kept[1][0].numpy(), kept[1][1])  # and the loop goes on
    for k in (3, 9, 0, 6, 2, 12, 5, 1):
        np.testing.assert_array_equal(kept[k][0].numpy(), kept[k][1])
        a[k] = -1.0
        expected[k] = -1.0
    for got, want in reversed(kept):
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(view.numpy(), expected[5:20])
    np.testing.assert_array_equal(a.numpy(), expected)
