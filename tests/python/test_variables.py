"""Sizes and offsets that change from call to call."""

import copy
import pickle

import pytest

import weft
from weft import Tensor, Variable, jit


def test_bound_ones_are_ints() -> None:
    n = Variable("n", 1, 8).bind(3)
    x = Tensor.arange(24).reshape(8, n)
    assert x.shape == (8, 3) and x[n].tolist() == [9, 10, 11] and x[:n, n - 1].tolist() == [2, 5, 8]
    assert Tensor.zeros(n, 2).shape == (3, 2)
    assert n.unbind() == (Variable("n", 1, 8), 3) and n.val == 3
    assert copy.deepcopy(n).variable == pickle.loads(pickle.dumps(n)).variable == n.variable


def test_bounds() -> None:
    n = Variable("n", 2, 4)
    for value in (1, 5, -1):
        with pytest.raises(weft.ShapeError, match=f"n is between 2 and 4; given is {value}"):
            n.bind(value)
    with pytest.raises(TypeError, match="is an int"):
        n.bind(2.0)  # type: ignore[arg-type]
    with pytest.raises(weft.ShapeError, match="in order"):
        Variable("n", 3, 2)
    with pytest.raises(weft.ShapeError, match="name"):
        Variable("", 1, 2)


def test_kernels_serve_every_value() -> None:
    n = Variable("n", 1, 64)
    x = Tensor([float(i) for i in range(64)]).realize()
    weft._core.clear_schedule_cache()
    graphs = set()
    for k in range(3, 33):
        size = n.bind(k)
        y = x[:size] * 2 + x[size:2 * size]
        graphs.update(kernel.graph for kernel in y.schedule())
        assert y.tolist() == [3 * i + k for i in range(k)]
    assert len(graphs) <= 2


def test_in_a_jit() -> None:
    n = Variable("n", 1, 16)
    x = Tensor.arange(16)

    @jit
    def total(size: int) -> Tensor:
        return x[:size].sum() * size

    for k in (3, 3, 3, 5, 5, 5, 3, 16, 1):
        assert total(n.bind(k)).item() == k * k * (k - 1) // 2
