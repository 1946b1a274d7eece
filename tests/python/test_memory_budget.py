"""Schedules, families and compiled kernels stay within one bound in bytes, however many programs come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import Tensor, counters

BOUND = 1 << 18


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    before = counters.set_most_cached_bytes(BOUND)
    yield
    counters.set_most_cached_bytes(before)


def program(n: int) -> None:
    """A graph that no other n has."""
    x = Tensor(np.ones(4, np.float32))
    for bit in range(10):
        x = (x + 1).sqrt() if n >> bit & 1 else x * 0.5
    x.realize()


def test_ever_new_programs_stay_within_the_bound() -> None:
    for n in range(40):
        program(n)
        assert sum(counters.cached_bytes.values()) <= BOUND
    assert counters.cached_bytes["schedules"] > 0


def test_what_is_used_stays_known() -> None:
    program(5)
    for n in range(40, 60):
        program(n)
        program(5)
    before = counters.schedules
    program(5)
    assert counters.schedules == before


def test_a_bound_of_zero_keeps_what_was_made_last() -> None:
    counters.set_most_cached_bytes(0)
    program(3)
    program(4)
    before = counters.schedules
    program(3)
    assert counters.schedules == before + 1


def test_a_bound_below_zero() -> None:
    with pytest.raises(weft.Error, match=r"\[set_most_cached_bytes\] the bound is -1 bytes; it must be at least 0"):
        counters.set_most_cached_bytes(-1)
