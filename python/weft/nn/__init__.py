"""Layers, optimisers and files of weights.

>>> from weft import nn
>>> layer = nn.Linear(3, 2)
>>> layer(Tensor.ones(4, 3)).shape
(4, 2)

A layer is an object with tensors as attributes, and is called with its input. A model is any object that
holds layers: nn.state finds their tensors, nn.optim changes those that have a gradient.
"""

from weft.nn import lr_scheduler, optim, state
from weft.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from weft.nn.layers import Dropout, Embedding, GRUCell, Linear, LSTMCell, MultiHeadAttention
from weft.nn.norms import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)

__all__ = [
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "GRUCell",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm2d",
    "Linear",
    "MultiHeadAttention",
    "RMSNorm",
    "lr_scheduler",
    "optim",
    "state",
]
