"""Layers, optimisers and files of weights."""

from weft.nn import state

__all__ = ["state"]
