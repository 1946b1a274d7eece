"""torch.weft: what PyTorch expects of the module of a device."""
from __future__ import annotations

import os
import sys
import types
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import _C

_module = types.ModuleType("torch.weft", __doc__)


def _public(function: Any) -> Any:
    setattr(_module, function.__name__, function)
    return function


@_public
def counters() -> dict[str, Any]:
    """How often each operator was done by weft (`native`), and by PyTorch's CPU kernels instead (`fallback`)."""
    return {"native": _C.native_counts(), "fallback": _C.fallback_counts()}


@_public
def reset_counters() -> None:
    _C.reset_counts()


@_public
def allow_fallbacks(allowed: bool = True) -> None:
    """Whether an operator that weft has no kernel for is done by PyTorch's CPU kernel, or raises NotImplementedError."""
    _C.set_fallbacks(allowed)


@_public
def is_pending(tensor: torch.Tensor) -> bool:
    """Whether the values of a tensor are still to be computed."""
    return _C.is_pending(tensor)


@_public
def realize(*tensors: torch.Tensor) -> None:
    """Computes these tensors."""
    for tensor in tensors:
        _C.realize(tensor)


@_public
def synchronize(device: Any = None) -> None:
    """Computes all that is pending, and waits for it. A value that cannot be computed is left to whoever reads it."""
    _C.synchronize()


@_public
def is_available() -> bool:
    return True


@_public
def is_initialized() -> bool:
    return True


@_public
def init() -> None:
    pass


@_public
def _lazy_init() -> None:
    pass


@_public
def _is_in_bad_fork() -> bool:
    return False


@_public
def device_count() -> int:
    return 1


@_public
def current_device() -> int:
    return 0


@_public
def set_device(device: Any) -> None:
    index = torch.device(device).index if not isinstance(device, int) else device
    if index not in (None, -1, 0):
        raise RuntimeError(f"weft: invalid device ordinal {index}; there is one device")


@_public
def get_device_name(device: Any = None) -> str:
    import weft
    return f"weft on {weft.Device.DEFAULT}"


@_public
def get_device_capability(device: Any = None) -> tuple[int, int]:
    return (0, 0)


@_public
def get_device_properties(device: Any = None) -> types.SimpleNamespace:
    return types.SimpleNamespace(name=get_device_name(), total_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@_public
def current_stream(device: Any = None) -> torch.Stream:
    return torch.Stream(device="weft:0")


@_public
def empty_cache() -> None:
    pass


def _default_generator() -> torch.Generator:
    generator: torch.Generator = _module.default_generators[0]
    return generator


@_public
def manual_seed(seed: int) -> None:
    _default_generator().manual_seed(seed)


@_public
def manual_seed_all(seed: int) -> None:
    manual_seed(seed)


@_public
def seed() -> int:
    return _default_generator().seed()


@_public
def seed_all() -> None:
    seed()


@_public
def initial_seed() -> int:
    return _default_generator().initial_seed()


@_public
def get_rng_state(device: Any = 0) -> torch.Tensor:
    return _default_generator().get_state()


@_public
def set_rng_state(state: torch.Tensor, device: Any = 0) -> None:
    _default_generator().set_state(state)


@_public
def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


@_public
def is_bf16_supported() -> bool:
    return True


@_public
class device:
    """`with torch.weft.device(0):`, as other devices have it; there is one."""

    def __init__(self, device: Any = None) -> None:
        set_device(device if device is not None else 0)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


def _end_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """An optimiser's step ends a step of training: what is pending is computed, in a loop that never looks at it too.
    Steps are then cut at the same place, and their kernels are found once."""
    group = optimizer.param_groups[0]["params"]
    if group and group[0].device.type == "weft":
        _C.realize_all()


def register() -> None:
    """Makes `weft` the name of the device, and `torch.weft` its module. Other devices stay as they are."""
    if not _C.yield_accelerator():
        raise ImportError("PyTorch was built with an accelerator, whose gradients fail beside a second one here")
    setattr(_module, "_initialized", True)  # of devices that are not, checkpoints keep no random states
    _module.default_generators = (_C.default_generator(),)  # type: ignore[attr-defined]
    torch.utils.rename_privateuse1_backend("weft")  # type: ignore[attr-defined]
    torch._register_device_module("weft", _module)  # type: ignore[no-untyped-call]
    sys.modules["torch.weft"] = _module
    torch.utils.generate_methods_for_privateuse1_backend(  # type: ignore[attr-defined]
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True)
    register_optimizer_step_post_hook(_end_step)
    _C.set_fallback_warnings(os.environ.get("WEFT_TORCH_WARN_FALLBACK", "0") not in ("", "0"))
