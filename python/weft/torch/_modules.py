"""Modules that move to the device keep their parameters: tied weights stay tied, and optimisers that were made before
see them move."""
from __future__ import annotations

import torch


def register() -> None:
    # A parameter's tensor cannot be exchanged in place between devices of different kinds; swapping keeps its identity.
    torch.__future__.set_swap_module_params_on_conversion(True)
