"""What a realise would run, what was run, and threads that share a tensor."""

from __future__ import annotations

import threading

import pytest

from weft import Tensor, counters, ir


def test_schedule_lists_the_kernels() -> None:
    a = Tensor([[1.0, 2.0], [3.0, 4.0]])
    b = (a * 2).sum(axis=1)
    counters.reset()
    kernels = b.schedule()
    assert counters.kernels == 0 and not b.is_realized()
    assert [k.buffers for k in kernels] == [2]
    assert repr(kernels[0]) == f"ScheduledKernel(name='{kernels[0].name}', buffers=2, bytes=24, flops=8)"
    assert ir.parse(kernels[0].graph).op is ir.Ops.SINK
    assert b.tolist() == [6, 14]
    assert (counters.kernels, counters.bytes, counters.flops) == (1, 24, 8)
    assert b.schedule() == []
    counters.reset()
    assert repr(counters) == "Counters(kernels=0, bytes=0, flops=0, schedules=0)"


def test_schedule_of_several() -> None:
    a = Tensor([1.0, 2.0])
    b, c = a + 1, a * 2
    assert len(b.schedule(c)) == 1
    assert len(b.schedule()) == b.kernel_count() == 1
    with pytest.raises(TypeError, match=r"\[schedule\] a Tensor is needed, not int"):
        b.schedule(3)  # type: ignore[arg-type]


def test_sizes_that_nobody_has_memory_for() -> None:
    a = Tensor.empty(2**60, dtype="float64")
    assert a.nbytes() == 2**63
    assert len((a + 1).schedule()) == 1


def test_threads_use_a_handle_that_is_realised() -> None:
    """A lone part gets memory of its own when it is realised: those who read it meanwhile see it before or after."""
    for _ in range(100):
        part = (Tensor.arange(64).reshape(2, 1, 2, 1, 2, 1, 2, 1, 4) + 1)[1]
        expected = list(range(33, 65))
        wrong: list[object] = []

        def use(part: Tensor = part, expected: list[int] = expected, wrong: list[object] = wrong) -> None:
            for _ in range(3):
                if part.shape != (1, 2, 1, 2, 1, 2, 1, 4) or part.flatten().tolist() != expected:
                    wrong.append(part.numpy())
                if part.kernel_count() > 1:
                    wrong.append(part.schedule())

        threads = [threading.Thread(target=use), threading.Thread(target=part.realize), threading.Thread(target=use)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong


def test_what_is_stored_is_as_narrow_as_what_it_was_made_as() -> None:
    """A product reads bfloat16 as float32: what lies in memory between two of them is bfloat16."""
    a, b, c = (Tensor.ones(64, 64, dtype="bfloat16").realize() for _ in range(3))
    first, second = ((a @ b).gelu() @ c).schedule()
    assert first.bytes == second.bytes == 3 * 64 * 64 * 2
