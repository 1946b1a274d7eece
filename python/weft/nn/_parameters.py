"""How layers and optimisers make and write the tensors that they own."""

from __future__ import annotations

import contextlib
from typing import Any

from weft import _core
from weft._core import Tensor

no_grad: Any = getattr(_core, "no_grad", contextlib.nullcontext)


def write(tensor: Tensor, value: Tensor) -> Tensor:
    """The value in the memory of the tensor, lazily; no gradient sees it."""
    with no_grad():
        here: Any = value
        if value.device != tensor.device:
            here = here.to(tensor.device)
        return tensor.assign(here.reshape(tensor.shape))
