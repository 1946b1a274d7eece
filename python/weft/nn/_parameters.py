"""How layers and optimisers make and write the tensors that they own."""

from __future__ import annotations

from typing import Any

from weft._core import Tensor
from weft._grad import no_grad


def write(tensor: Tensor, value: Tensor) -> Tensor:
    """The value in the memory of the tensor, lazily; no gradient sees it."""
    with no_grad():
        here: Any = value
        if value.device != tensor.device:
            here = here.to(tensor.device)
        return tensor.assign(here.reshape(tensor.shape))
