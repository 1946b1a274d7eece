"""Modules that move to or from the device keep their parameters: tied weights stay tied, and optimisers that were made
before see them move.

PyTorch moves a parameter in place between the devices that it knows to hold alike tensors, and replaces it for others
unless torch.__future__.set_swap_module_params_on_conversion says otherwise. That setting is on while a module moves to
or from the device, and as the user left it for all else.
"""
from __future__ import annotations

import functools
from typing import Any, Callable

import torch


def _concerns_device(module: torch.nn.Module, function: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether the function moves parameters of this module, or buffers, to or from the device."""
    own = [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None]
    if not own:
        return False
    if any(t.device.type == "weft" for t in own):
        return True
    try:
        return function(torch.empty(0, dtype=own[0].dtype)).device.type == "weft"
    except Exception:  # it says so itself when it is applied
        return False


def register() -> None:
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def keeping_identity(self: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], *args: Any,
                         **kwargs: Any) -> torch.nn.Module:
        if not _concerns_device(self, fn):
            return apply(self, fn, *args, **kwargs)
        before = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return apply(self, fn, *args, **kwargs)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    torch.nn.Module._apply = keeping_identity  # type: ignore[method-assign]
