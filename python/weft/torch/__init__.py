"""PyTorch on weft: `import weft.torch`, then `device="weft"`.

Tensors of the device are PyTorch's own, with its views, autograd and errors; their values are weft's: lazy, fused, and
computed on the device that WEFT_DEVICE names. `torch.weft` is the module of the device: `counters()`, `synchronize()`,
random states and the rest of what PyTorch asks for.
"""

import torch

from . import _device
from ._device import counters, reset_counters

__all__ = ["counters", "reset_counters"]

_device.register()

from . import _decompositions, _modules  # noqa: E402  (they need the device)

_modules.register()
_decompositions.register()
