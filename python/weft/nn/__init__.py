"""Layers, optimisers and files of weights."""

from weft.nn import lr_scheduler, optim, state

__all__ = ["lr_scheduler", "optim", "state"]
