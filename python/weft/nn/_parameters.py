"""How layers and optimisers make and write the tensors that they own."""

from __future__ import annotations

from weft._core import Tensor
from weft._grad import no_grad


def uniform(shape: tuple[int, ...], bound: float) -> Tensor:
    """A parameter of numbers from -bound to bound."""
    return Tensor.uniform(*shape, low=-bound, high=bound).requires_grad_()


def write(tensor: Tensor, value: Tensor) -> Tensor:
    """The value in the memory of the tensor, lazily; no gradient sees it."""
    with no_grad():
        return tensor.assign(value.to(tensor.device).reshape(tensor.shape))
