"""Layers that bring values to mean 0 and variance 1."""

from __future__ import annotations

import math

from weft import dtypes
from weft._core import Tensor
from weft._grad import no_grad
from weft.errors import ShapeError


def _affine(shape: tuple[int, ...], is_affine: bool) -> tuple[Tensor | None, Tensor | None]:
    """A weight of ones and a bias of zeros."""
    if not is_affine:
        return None, None
    return Tensor.ones(*shape).requires_grad_(), Tensor.zeros(*shape).requires_grad_()


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


class BatchNorm:
    """Mean 0 and variance 1 of every channel (axis 1), over all else. While training (Tensor.training) these
    are the mean and variance of the batch, of which running ones are kept; else the running ones.

    momentum is the part of a batch in running values; None weighs all batches alike.

    >>> from weft import nn
    >>> nn.BatchNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
                 momentum: float | None = 0.1) -> None:
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight, self.bias = _affine((sz,), affine)
        if track_running_stats:
            self.running_mean = Tensor.zeros(sz, requires_grad=False)
            self.running_var = Tensor.ones(sz, requires_grad=False)
            self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and variance of every channel to use now."""
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        wide = x.cast(dtypes.float32) if x.dtype.bits < 32 else x
        mean = wide.mean(axis=axes)
        distance = wide - mean.reshape(-1, *[1] * (x.ndim - 2))
        return mean, (distance * distance).mean(axis=axes)

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 2:
            raise ShapeError(f"[BatchNorm] a tensor of {x.ndim} axes; (batch, channels, ...) is needed")
        mean, var = self.calc_stats(x)
        if self.track_running_stats and Tensor.training:
            self._track(x, mean, var)
        return x.batchnorm(self.weight, self.bias, mean, (var + self.eps).rsqrt()).cast(x.dtype)

    def _track(self, x: Tensor, mean: Tensor, var: Tensor) -> None:
        count = x.numel() // x.shape[1]
        if count < 2:
            raise ShapeError(f"[BatchNorm] {count} value per channel has no variance to track, shape {x.shape}")
        with no_grad():
            self.num_batches_tracked += 1
            part = self.momentum if self.momentum is not None else 1 / self.num_batches_tracked.cast(dtypes.float32)
            self.running_mean.assign(self.running_mean * (1 - part) + mean.detach() * part)
            self.running_var.assign(self.running_var * (1 - part) + var.detach() * (part * (count / (count - 1))))


BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm:
    """Mean 0 and variance 1 of every group of channels (axis 1) of every example.

    >>> from weft import nn
    >>> nn.GroupNorm(2, 4)(Tensor.ones(1, 4, 3)).tolist()[0][0]
    [0.0, 0.0, 0.0]
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if num_groups < 1 or num_channels % num_groups != 0:
            raise ShapeError(f"[GroupNorm] {num_channels} channels do not divide into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight, self.bias = _affine((num_channels,), affine)

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(f"[GroupNorm] shape {x.shape}; {self.num_channels} channels along axis 1 are needed")
        sizes = [-1, *[1] * (x.ndim - 2)]
        size = math.prod(x.shape[1:]) // self.num_groups
        grouped = x.reshape(x.shape[0], self.num_groups, size)
        weight, bias = (None if t is None else t.reshape(sizes) for t in (self.weight, self.bias))
        return _scaled(_normalized(grouped, (-1,), self.eps).reshape(x.shape), weight, bias).cast(x.dtype)


class InstanceNorm(GroupNorm):
    """Mean 0 and variance 1 of every channel (axis 1) of every example.

    >>> from weft import nn
    >>> nn.InstanceNorm(2, affine=False)(Tensor([[[1.0, 3.0], [5.0, 5.0]]])).round().tolist()
    [[[-1.0, 1.0], [0.0, 0.0]]]
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class LayerNorm:
    """Mean 0 and variance 1 along the last axes, which have normalized_shape.

    >>> from weft import nn
    >>> nn.LayerNorm(2)(Tensor([[1.0, 3.0], [9.0, 5.0]])).round().tolist()
    [[-1.0, 1.0], [1.0, -1.0]]
    """

    def __init__(self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5,
                 elementwise_affine: bool = True) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.axis = tuple(-1 - i for i in range(len(self.normalized_shape)))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight, self.bias = _affine(self.normalized_shape, elementwise_affine)

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
            raise ShapeError(f"[LayerNorm] shape {x.shape}; the last axes must be {self.normalized_shape}")
        return _scaled(_normalized(x, self.axis, self.eps), self.weight, self.bias).cast(x.dtype)


class LayerNorm2d(LayerNorm):
    """LayerNorm of the channels of (batch, channels, height, width)."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """Over the root of the mean square along the last axis.

    >>> from weft import nn
    >>> nn.RMSNorm(2)(Tensor([[3.0, 3.0], [0.0, 0.0]])).round().tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Tensor.ones(dim).requires_grad_() if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.cast(dtypes.float32) if x.dtype.bits < 32 else x
        normal = wide * ((wide * wide).mean(axis=-1, keepdim=True) + self.eps).rsqrt()
        return _scaled(normal, self.weight, None).cast(x.dtype)


def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """In float32 at least: squares of narrow floats are out of their range soon."""
    return (x.cast(dtypes.float32) if x.dtype.bits < 32 else x).layernorm(axes, eps)
