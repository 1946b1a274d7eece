"""Rates that change with time. A schedule counts its steps in a Tensor, and writes the rate of an optimiser
by a formula of it: in a jit as outside of one.

>>> from weft import nn
>>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
>>> schedule = nn.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
>>> rates = []
>>> for _ in range(5):
...     rates.append(optimizer.lr.item())
...     schedule.step()
>>> rates
[1.0, 1.0, 0.5, 0.5, 0.25]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from weft import dtypes
from weft._core import Tensor
from weft._grad import no_grad
from weft.nn.optim import Optimizer

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "MultiStepLR", "StepLR"]


class LRScheduler:
    """The rate of an optimiser as a function of the number of steps: a subclass has get_lr."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.base_lr = optimizer.lr.clone()
        self.epoch = Tensor(0, dtype=dtypes.int32, device=optimizer.lr.device)
        self.base_lr.realize(self.epoch)

    def get_lr(self) -> Tensor:
        """The rate now."""
        raise NotImplementedError

    def step(self) -> None:
        """Counts a step and writes the rate, lazily."""
        with no_grad():
            self.epoch += 1
            self.optimizer.lr.assign(self.get_lr())


class LambdaLR(LRScheduler):
    """The first rate times a function of the number of steps, which is a Tensor of the rate's dtype.

    >>> from weft import nn
    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=2.0)
    >>> warm_up = nn.lr_scheduler.LambdaLR(optimizer, lambda epoch: ((epoch + 1) / 4).minimum(1.0))
    >>> warm_up.step()
    >>> optimizer.lr.item()
    1.0
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[Tensor], Tensor]) -> None:
        super().__init__(optimizer)
        self.lr_lambda = lr_lambda

    def get_lr(self) -> Tensor:
        """The rate now."""
        return self.base_lr * self.lr_lambda(self.epoch.cast(self.base_lr.dtype))


class StepLR(LRScheduler):
    """Times gamma every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer)
        self.step_size, self.gamma = step_size, gamma

    def get_lr(self) -> Tensor:
        """The rate now."""
        return self.base_lr * self.gamma ** (self.epoch // self.step_size).cast(self.base_lr.dtype)


class MultiStepLR(LRScheduler):
    """Times gamma at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1) -> None:
        super().__init__(optimizer)
        self.milestones, self.gamma = tuple(milestones), gamma

    def get_lr(self) -> Tensor:
        """The rate now."""
        rate = self.base_lr
        for milestone in self.milestones:
            rate = (self.epoch >= milestone).where(rate * self.gamma, rate)
        return rate


class CosineAnnealingLR(LRScheduler):
    """Down to eta_min along half a wave of T_max steps, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        super().__init__(optimizer)
        self.T_max, self.eta_min = T_max, eta_min

    def get_lr(self) -> Tensor:
        """The rate now."""
        wave = (self.epoch.cast(self.base_lr.dtype) * (math.pi / self.T_max)).cos() + 1
        return self.eta_min + (self.base_lr - self.eta_min) * 0.5 * wave
