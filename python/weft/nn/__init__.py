"""Layers, optimisers and files of weights."""

from weft.nn import optim, state

__all__ = ["optim", "state"]
