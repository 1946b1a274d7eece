"""A loop whose numbers change is compiled twice at most: as it is first, then for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from weft import Tensor, _core, counters, jit


@pytest.fixture(autouse=True)
def no_schedules() -> Iterator[None]:
    _core.clear_schedule_cache()
    yield


class Kernels:
    """The distinct kernels that ran."""

    def __init__(self) -> None:
        self.graphs: set[str] = set()

    def run(self, x: Tensor) -> Tensor:
        self.graphs.update(k.graph for k in x.schedule())
        return x.realize()


def memory(*shape: int) -> tuple[Tensor, np.ndarray]:
    values = (np.arange(np.prod(shape)) * 7 % 11 - 5).astype(np.float32).reshape(shape)
    return Tensor(values).realize(), values.copy()


def test_an_element_after_the_other() -> None:
    kernels = Kernels()
    p, values = memory(100)
    for i in range(100):
        assert p[i].item() == values[i]
        assert kernels.run(p[i] * 2).item() == values[i] * 2
    assert len(kernels.graphs) <= 2


def test_writes_that_are_realised_one_by_one() -> None:
    kernels = Kernels()
    a, values = memory(50)
    for i in range(1, 50):
        a[i] = i * 2.5
        kernels.run(a)
        values[i] = i * 2.5
    assert (a.numpy() == values).all() and len(kernels.graphs) <= 2


def test_writes_that_read_their_neighbours() -> None:
    kernels = Kernels()
    a, values = memory(30)
    for i in range(1, 30):
        a[i] = a[i - 1] + 1
        kernels.run(a)
        values[i] = values[i - 1] + 1
    assert (a.numpy() == values).all() and len(kernels.graphs) <= 2


def test_sums_of_growing_prefixes() -> None:
    kernels = Kernels()
    x, values = memory(200)
    for n in range(2, 100):
        assert kernels.run(x[:n].sum()).item() == values[:n].sum()
    assert len(kernels.graphs) <= 2


def test_a_sequence_that_grows_by_one() -> None:
    kernels = Kernels()
    x, values = memory(2)
    for i in range(50):
        x = kernels.run(Tensor.cat(x, Tensor([float(i)])))
        values = np.append(values, np.float32(i))
        assert (x.numpy() == values).all()
    assert len(kernels.graphs) <= 2


def test_attention_over_a_growing_cache() -> None:
    kernels = Kernels()
    cache, values = memory(64, 4)
    q, query = memory(1, 4)
    for n in range(2, 40):
        scores = kernels.run(q.matmul(cache[:n].transpose(0, 1)).softmax(-1).matmul(cache[:n]))
        weights = query @ values[:n].T
        weights = np.exp(weights - weights.max())
        expected = (weights / weights.sum()) @ values[:n]
        np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert len(kernels.graphs) <= 6  # of two schedules


def test_a_learning_rate_that_falls() -> None:
    kernels = Kernels()
    w, values = memory(20)
    for i in range(20):
        rate = 0.5**i
        w.assign(w - w * rate)
        kernels.run(w)
        values = values - values * np.float32(rate)
    np.testing.assert_allclose(w.numpy(), values, rtol=1e-6)
    assert len(kernels.graphs) <= 2


@pytest.mark.parametrize("sum_up", [False, True])
def test_operations_are_those_of_the_sizes_at_hand(sum_up: bool) -> None:
    symbolic = 0
    for n in [1000, 60, 7, 2, 2, 300]:
        x = memory(n)[0] + 1
        if sum_up:
            x = x.sum()
        said = x.schedule()
        symbolic += any("VARIABLE" in k.graph for k in said)
        counters.reset()
        x.realize()
        assert sum(k.flops for k in said) == counters.flops == (2 * n if sum_up else n)
        assert sum(k.bytes for k in said) == counters.bytes == 4 * (n + (1 if sum_up else n))
    assert symbolic > 0


def test_operations_of_captured_calls() -> None:
    step = jit(lambda x: x * 2 + 1)
    for n in [16, 5, 9]:
        (memory(n)[0] * 2 + 1).realize()
    x = memory(3)[0]
    for _ in range(4):
        counters.reset()
        step(x).realize()
        assert counters.flops == 6
