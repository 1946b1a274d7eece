"""Writes through indices that repeat: in order, bit for bit, on every device that the machine has."""

import numpy as np
import pytest

from weft import Device, Tensor

WRITES, ROWS = 3000, 70
DEVICES = [name for name in Device.names() if name != "REF" and not name.startswith("NULL")]
rng = np.random.default_rng(5)
places = rng.integers(-ROWS, ROWS, WRITES)


def numbers(columns: int) -> np.ndarray:
    """Whose sums tell in which order they were added."""
    return (rng.standard_normal((WRITES, columns)) * 10.0 ** rng.integers(-4, 4, (WRITES, 1))).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 3, 16, 300])
@pytest.mark.parametrize("device", DEVICES)
def test_sums(device: str, columns: int) -> None:
    values = numbers(columns)
    expected = np.zeros((ROWS, columns), np.float32)
    np.add.at(expected, places, values)
    found = Tensor.zeros(ROWS, columns, device=device).index_add(0, Tensor(places, device=device),
                                                                 Tensor(values, device=device))
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_the_last_write_wins(device: str) -> None:
    values = numbers(16)
    expected = np.zeros((ROWS, 16), np.float32)
    for place, row in zip(places, values):
        expected[place] = row
    x = Tensor.zeros(ROWS, 16, device=device).contiguous().realize()
    x[Tensor(places, device=device)] = Tensor(values, device=device)
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_the_largest(device: str) -> None:
    values = numbers(1)[:, 0]
    expected = np.full(ROWS, -1, np.float32)
    np.maximum.at(expected, places % ROWS, values)
    x = Tensor.full((ROWS,), -1.0, device=device)
    found = x.scatter_reduce(0, Tensor(places % ROWS, device=device), Tensor(values, device=device), "amax")
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_rows_that_are_read_often(device: str) -> None:
    values = numbers(8)
    table = Tensor.ones(ROWS, 8, device=device).contiguous().realize()
    table.requires_grad = True
    (table[Tensor(places, device=device)] * Tensor(values, device=device)).sum().backward()
    expected = np.zeros((ROWS, 8), np.float64)
    np.add.at(expected, places, values.astype(np.float64))
    assert table.grad is not None
    np.testing.assert_allclose(table.grad.numpy(), expected, rtol=1e-4, atol=np.abs(values).max() * 1e-4)
