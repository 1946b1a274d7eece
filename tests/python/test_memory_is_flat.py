"""Long programs hold no more memory than short ones; what is dropped is gone at once."""

from __future__ import annotations

import gc
import pathlib
import sys

import pytest

from weft import Tensor, counters

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import lazy_cost  # type: ignore[import-not-found]  # noqa: E402


@pytest.fixture(autouse=True)
def no_collector() -> object:
    gc.disable()
    yield
    gc.enable()


def test_a_long_loop_with_realises() -> None:
    grown = lazy_cost.loop(Tensor, 100_000)
    assert grown["values_grown"] == 0 and grown["bytes_grown"] == 0
    assert grown["grown"] < 2**20


def test_a_dropped_tensor_is_gone_at_once() -> None:
    assert lazy_cost.drop(Tensor, 0) == {"held": 4000, "values_left": 0, "bytes_left": 0}


def test_what_a_gradient_needed_is_gone_with_it() -> None:
    before = counters.live_values, counters.live_bytes
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = ((w * 2).exp() + 1).sum()
    loss.item()
    loss.backward()
    assert w.grad is not None
    w.grad.realize()
    del w, loss
    assert (counters.live_values, counters.live_bytes) == before
