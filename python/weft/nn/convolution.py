"""Convolutions of any number of axes, and their transposes."""

from __future__ import annotations

import math
from typing import Union

from weft._core import Tensor
from weft.errors import ShapeError
from weft.nn._parameters import uniform

Sizes = Union[int, tuple[int, ...]]


class Conv2d:
    """A convolution of (batch, channels, height, width); of as many axes as kernel_size has numbers. padding
    is one number, one per axis, two per axis from the last axis on, "same" or "valid".

    >>> from weft import nn
    >>> nn.Conv2d(3, 8, 3, padding="same")(Tensor.ones(1, 3, 10, 10)).shape
    (1, 8, 10, 10)
    """

    _axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True) -> None:
        self.kernel_size = (kernel_size,) * self._axes if isinstance(kernel_size, int) else tuple(kernel_size)
        if groups < 1 or in_channels % groups != 0 or out_channels % groups != 0:
            raise ShapeError(f"[{type(self).__name__}] {in_channels} channels to {out_channels} do not divide into "
                             f"{groups} groups")
        self.stride, self.dilation, self.groups = stride, dilation, groups
        self.padding = self._padding(padding)
        self.weight, self.bias = self._parameters(in_channels, out_channels, bias)

    def _parameters(self, inputs: int, outputs: int, bias: bool) -> tuple[Tensor, Tensor | None]:
        bound = 1 / math.sqrt(inputs // self.groups * math.prod(self.kernel_size))
        weight = uniform((outputs, inputs // self.groups, *self.kernel_size), bound)
        return weight, uniform((outputs,), bound) if bias else None

    def _padding(self, padding: Sizes | str) -> Sizes:
        if not isinstance(padding, str):
            return padding
        if padding == "valid":
            return 0
        if padding != "same" or not (self.stride == 1 or set(_per_axis(self.stride, 1)) == {1}):
            raise ValueError(f"[{type(self).__name__}] padding {padding!r} of stride {self.stride}; "
                             f"'same' of stride 1, 'valid' and numbers are allowed")
        totals = [d * (k - 1) for d, k in zip(_per_axis(self.dilation, len(self.kernel_size)), self.kernel_size)]
        return tuple(size for total in reversed(totals) for size in (total // 2, total - total // 2))

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class Conv1d(Conv2d):
    """A convolution of (batch, channels, length).

    >>> from weft import nn
    >>> nn.Conv1d(2, 4, 3, stride=2)(Tensor.ones(1, 2, 9)).shape
    (1, 4, 4)
    """

    _axes = 1


class ConvTranspose2d(Conv2d):
    """The transpose of a convolution: from what Conv2d gives to a shape that it takes.

    >>> from weft import nn
    >>> nn.ConvTranspose2d(8, 3, 2, stride=2)(Tensor.ones(1, 8, 5, 5)).shape
    (1, 3, 10, 10)
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
                 output_padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True) -> None:
        if isinstance(padding, str):
            raise ValueError(f"[{type(self).__name__}] padding {padding!r}; numbers are allowed")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding = output_padding

    def _parameters(self, inputs: int, outputs: int, bias: bool) -> tuple[Tensor, Tensor | None]:
        bound = 1 / math.sqrt(outputs // self.groups * math.prod(self.kernel_size))
        weight = uniform((inputs, outputs // self.groups, *self.kernel_size), bound)
        return weight, uniform((outputs,), bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding,
                                  self.output_padding)


class ConvTranspose1d(ConvTranspose2d):
    """The transpose of a convolution of (batch, channels, length)."""

    _axes = 1


def _per_axis(value: Sizes, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)
