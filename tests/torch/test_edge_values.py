"""Functions at infinities and zeros: as on the CPU."""

import pytest
import torch
from on_both_devices import DEVICES, same_on_both

INFINITY = float("inf")
EDGES = [INFINITY, -INFINITY, float("nan"), 0.0, -0.0, 4.0, -4.0]
BEFORE_2_12 = pytest.mark.skipif(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12),
                                 reason="PyTorch 2.11: the CPU's inf is taken to be another, docs/targets.md")


def same(function, dtype):
    expected, actual = (function(torch.tensor(EDGES, dtype=dtype).to(device)).cpu() for device in DEVICES)
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert torch.equal(actual.signbit() & (actual == 0), expected.signbit() & (expected == 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("power", [0.5, -0.5])
def test_roots(power, dtype):
    """PyTorch takes roots, but of float16 powers: of -inf they are inf and 0."""
    same(lambda x: x ** power, dtype)


@pytest.mark.parametrize("dtype, kind", [
    (torch.float32, "tanh"), (torch.float64, "none"), (torch.float64, "tanh"), (torch.bfloat16, "tanh"),
    pytest.param(torch.float16, "none", marks=BEFORE_2_12),
])
def test_gelu(dtype, kind):
    same(lambda x: torch.nn.functional.gelu(x, approximate=kind), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gelu_of_infinity(dtype):
    """Where the CPU's vectors give NaN (float32, by erf), as in float64."""
    x = torch.tensor([INFINITY, -INFINITY], dtype=dtype, device="weft")
    values = torch.nn.functional.gelu(x).tolist()
    assert values[0] == INFINITY and values[1] != values[1]


@same_on_both
def test_nan_is_the_mode_of_rows_without_numbers(d):
    nan = torch.nan
    rows = torch.tensor([[1, nan, 1, 2], [nan, nan, nan, nan], [nan, 2, 2, 1], [nan, nan, torch.inf, torch.inf]], device=d)
    return rows.mode(1).values


PRODUCTS = {
    "mm": lambda a, b: a.mm(b),
    "addmm": lambda a, b: torch.addmm(torch.zeros(0, 2, dtype=a.dtype, device=a.device), a, b),
    "mv": lambda a, b: a.mv(b[:, 0]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_without_elements_are_of_one_type(name):
    for d in DEVICES:
        with pytest.raises(RuntimeError, match="same dtype"):
            PRODUCTS[name](torch.zeros(0, 3, dtype=torch.int32, device=d), torch.zeros(3, 2, dtype=torch.int64, device=d))
