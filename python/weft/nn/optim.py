"""Optimisers: they change parameters by their gradients.

>>> from weft import nn
>>> x = Tensor([3.0], requires_grad=True)
>>> optimizer = nn.optim.SGD([x], lr=0.25)
>>> for _ in range(3):
...     optimizer.zero_grad()
...     loss = (x * x).sum().backward()
...     optimizer.step()
>>> x.tolist()
[0.375]

The rate `lr` is a Tensor: `optimizer.lr.assign(0.01)` changes it, and nothing is compiled anew. All that an
optimiser holds is in nn.state.get_state_dict(optimizer).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Union

from weft import dtypes
from weft._core import DType, Tensor, is_capturing
from weft.errors import DTypeError, ShapeError
from weft._grad import no_grad

Rate = Union[float, Tensor]

__all__ = ["LAMB", "LARS", "SGD", "Adam", "AdamW", "Muon", "Optimizer", "OptimizerGroup"]


class Optimizer:
    """The parameters to change, and how they are changed: a subclass has _step. Parameters without a
    gradient are left as they are; tensors that need none are `buffers`, which step() computes too."""

    def __init__(self, params: Iterable[Tensor], lr: Rate) -> None:
        all_params = list({id(tensor): tensor for tensor in params}.values())
        self._not_negative(rate=lr)
        for tensor in all_params:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"[{type(self).__name__}] a parameter is a Tensor, not a {type(tensor).__name__}")
        for tensor in all_params:
            if tensor.requires_grad is None:
                tensor.requires_grad = True
        self.params = [tensor for tensor in all_params if tensor.requires_grad]
        self.buffers = [tensor for tensor in all_params if not tensor.requires_grad]
        if not self.params:
            raise ValueError(f"[{type(self).__name__}] no tensor with requires_grad=True")
        for tensor in self.params:
            if not tensor.dtype.is_float:
                raise DTypeError(f"[{type(self).__name__}] a parameter of {tensor.dtype.name}; floats are allowed")
        self.device = self.params[0].device
        wide = any(tensor.dtype == dtypes.float64 for tensor in self.params)
        self.lr = lr if isinstance(lr, Tensor) else self._number(lr, dtypes.float64 if wide else dtypes.float32)

    def zero_grad(self) -> None:
        """Forgets the gradients of all parameters."""
        for tensor in self.params:
            tensor.grad = None

    def step(self) -> None:
        """Changes the parameters, and computes them and all that the optimiser holds together."""
        self._compute(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """Changes the parameters lazily; the tensors that step() computes."""
        self._compute(self.lr)  # a number that is written to it would be one in the kernels
        with no_grad():
            pairs = [(i, t, t.grad.detach()) for i, t in enumerate(self.params) if t.grad is not None]
            written = self._step(pairs) if pairs else []
        return [*written, *self.params, *self.buffers]

    def _step(self, pairs: list[tuple[int, Tensor, Tensor]]) -> list[Tensor]:
        """Writes to the parameters, given with their numbers and gradients; what else was written."""
        raise NotImplementedError

    def _not_negative(self, **numbers: Rate) -> None:
        for name, number in numbers.items():
            if isinstance(number, (int, float)) and not number >= 0:
                what = name.replace("_", " ")
                raise ValueError(f"[{type(self).__name__}] a {what} of {number}; 0 or more is allowed")

    def _number(self, value: float, dtype: DType = dtypes.float32) -> Tensor:
        number = Tensor(float(value), dtype=dtype, device=self.device)
        self._compute(number)
        return number

    def _states(self) -> list[Tensor]:
        """Zeros like the parameters, in float32 at least: small changes to narrow floats are lost."""
        states = [Tensor.zeros(*t.shape, dtype=_wide(t.dtype), device=t.device) for t in self.params]
        self._compute(*states)  # the first step is as all others
        return states

    @staticmethod
    def _compute(first: Tensor, *others: Tensor) -> None:
        if not is_capturing():  # a jit computes what is written
            first.realize(*others)


class OptimizerGroup(Optimizer):
    """Several optimisers as one.

    >>> from weft import nn
    >>> a, b = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([a], lr=1.0), nn.optim.SGD([b], lr=0.5))
    >>> _ = (a + b).sum().backward()
    >>> group.step()
    >>> a.tolist(), b.tolist()
    ([0.0], [0.5])
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        self.optimizers = optimizers
        self.params = [tensor for optimizer in optimizers for tensor in optimizer.params]
        self.buffers = [tensor for optimizer in optimizers for tensor in optimizer.buffers]

    def schedule_step(self) -> list[Tensor]:
        """Changes the parameters of all lazily; the tensors that step() computes."""
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]


class LARS(Optimizer):
    """Steps as long as a part (tcoef) of the length of each parameter; of momentum, with the rate in it when
    `classic`. tcoef=0 is SGD.

    https://arxiv.org/abs/1708.03888
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
                 nesterov: bool = False, classic: bool = True, tcoef: float = 0.001, dampening: float = 0.0) -> None:
        self._not_negative(momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, lr)
        if nesterov and (momentum == 0 or dampening != 0):
            raise ValueError(f"[{type(self).__name__}] nesterov needs a momentum, and no dampening")
        self.momentum, self.wd, self.nesterov, self.classic = momentum, weight_decay, nesterov, classic
        self.tcoef, self.dampening = tcoef, dampening
        self.b = self._states() if momentum else []
        # 0 before the first gradient, which dampening leaves as it is; then 1.
        self.begun = self._number(0, self.lr.dtype) if momentum and dampening else None

    def _step(self, pairs: list[tuple[int, Tensor, Tensor]]) -> list[Tensor]:
        damped = 1 - self.dampening if self.begun is None else 1 - self.dampening * self.begun
        for i, t, grad in pairs:
            value = t.cast(_wide(t.dtype))
            rate = self.lr * self._trust(value, grad) if self.tcoef != 0 else self.lr
            g = grad.cast(value.dtype) if self.wd == 0 else grad + value * self.wd
            g = g * rate if self.classic else g
            if self.momentum:
                self.b[i].assign(self.b[i] * self.momentum + g * damped)
                g = g + self.b[i] * self.momentum if self.nesterov else self.b[i]
            t.assign(value - (g if self.classic else g * rate))
        if self.begun is not None:
            self.begun.assign(1.0)
        return [*self.b, *([] if self.begun is None else [self.begun])]

    def _trust(self, value: Tensor, grad: Tensor) -> Tensor:
        length, slope = _length(value), _length(grad)
        ratio = length * self.tcoef / (slope + length * self.wd)
        return ((length > 0) & (slope > 0)).where(ratio, 1.0)


class SGD(LARS):
    """Against the gradient, at a rate; with momentum, against a running sum of gradients.

    >>> from weft import nn
    >>> nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.1, momentum=0.9, nesterov=True).lr.item() < 0.11
    True
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, classic: bool = False, dampening: float = 0.0) -> None:
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic, 0.0, dampening)


class LAMB(Optimizer):
    """Adam's step, as long as each parameter (not so with `adam`); weight_decay is not part of the gradient.

    https://arxiv.org/abs/1904.00962
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-6, weight_decay: float = 0.0, adam: bool = False) -> None:
        self._not_negative(weight_decay=weight_decay, eps=eps)
        super().__init__(params, lr)
        self.b1, self.b2, self.eps, self.wd, self.adam = b1, b2, eps, weight_decay, adam
        # What the running means would be of ones: 1 - b**steps, without its cancellation.
        self.b1_sum, self.b2_sum = self._number(0, self.lr.dtype), self._number(0, self.lr.dtype)
        self.m, self.v = self._states(), self._states()

    def _step(self, pairs: list[tuple[int, Tensor, Tensor]]) -> list[Tensor]:
        # The sums of this step, by another formula than what is stored: then no kernel waits for them.
        m_scale = 1 / (self.b1_sum + (1 - self.b1_sum) * (1 - self.b1))
        v_scale = 1 / (self.b2_sum + (1 - self.b2_sum) * (1 - self.b2)).sqrt()
        self.b1_sum.assign(self.b1_sum * self.b1 + (1 - self.b1))
        self.b2_sum.assign(self.b2_sum * self.b2 + (1 - self.b2))
        for i, t, grad in pairs:
            value, m, v = t.cast(_wide(t.dtype)), self.m[i], self.v[i]
            m.assign(m * self.b1 + grad * (1 - self.b1))
            v.assign(v * self.b2 + (grad.cast(v.dtype) * grad) * (1 - self.b2))
            step = m * m_scale / (v.sqrt() * v_scale + self.eps)
            step = step if self.wd == 0 else step + value * self.wd
            t.assign(value - step * (self.lr if self.adam else self.lr * self._trust(value, step)))
        return [*self.m, *self.v, self.b1_sum, self.b2_sum]

    def _trust(self, value: Tensor, step: Tensor) -> Tensor:
        length, made = _length(value), _length(step)
        return ((length > 0) & (made > 0)).where(length / made, 1.0)


class AdamW(LAMB):
    """Running means of gradients over the roots of those of their squares; weight_decay apart.

    https://arxiv.org/abs/1711.05101
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-8, weight_decay: float = 0.01) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, adam=True)


class Adam(LAMB):
    """Running means of gradients over the roots of those of their squares.

    https://arxiv.org/abs/1412.6980
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, b1: float = 0.9, b2: float = 0.999,
                 eps: float = 1e-8) -> None:
        super().__init__(params, lr, b1, b2, eps, 0.0, adam=True)


class Muon(Optimizer):
    """Momentum made orthogonal by Newton and Schulz's iteration, for weights of two axes and more (the first
    against all others); weight_decay apart. Parameters of one shape go through the iteration together.

    https://kellerjordan.github.io/posts/muon/
    """

    def __init__(self, params: Iterable[Tensor], lr: Rate = 0.001, momentum: float = 0.95, weight_decay: float = 0.1,
                 ns_steps: int = 5, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 nesterov: bool = True) -> None:
        self._not_negative(momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, lr)
        for t in self.params:
            if t.ndim < 2:
                raise ShapeError(f"[Muon] a parameter of shape {t.shape}; two axes or more are needed")
        self.momentum, self.wd, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.b = self._states()

    def _step(self, pairs: list[tuple[int, Tensor, Tensor]]) -> list[Tensor]:
        alike: dict[tuple[int, int, DType], list[tuple[Tensor, Tensor]]] = {}
        for i, t, grad in pairs:
            self.b[i].assign(self.b[i] * self.momentum + grad * (1 - self.momentum))
            step = grad * (1 - self.momentum) + self.b[i] * self.momentum if self.nesterov else self.b[i]
            rows, columns = t.shape[0], math.prod(t.shape[1:])
            alike.setdefault((rows, columns, self.b[i].dtype), []).append((t, step.reshape(rows, columns)))
        for (rows, columns, _), members in alike.items():
            steps = [step for _, step in members]
            together = steps[0].stack(*steps[1:])
            made = newton_schulz(together, self.ns_steps, self.ns_coefficients)
            for number, (t, _) in enumerate(members):
                change = made[number].reshape(t.shape) * (self.lr * math.sqrt(max(1, rows / columns)))
                t.assign(t.cast(change.dtype) * (1 - self.lr * self.wd) - change)
        return self.b


def newton_schulz(x: Tensor, steps: int, coefficients: tuple[float, float, float], eps: float = 1e-7) -> Tensor:
    """Matrices (..., rows, columns) with their singular values brought near 1.

    >>> from weft.nn.optim import newton_schulz
    >>> newton_schulz(Tensor([[[5.0, 0.0], [0.0, 3.0]]]), 8, (2.0, -1.5, 0.5)).round().tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    a, b, c = coefficients
    is_tall = x.shape[-2] > x.shape[-1]
    g = x.transpose(-2, -1) if is_tall else x
    g = g / (_length(g, (-2, -1)) + eps)
    for _ in range(steps):
        square = g @ g.transpose(-2, -1)
        g = g * a + (square * b + (square @ square) * c) @ g
    return g.transpose(-2, -1) if is_tall else g


def _wide(dtype: DType) -> DType:
    return dtype if dtype.bits >= 32 else dtypes.float32


def _length(x: Tensor, axes: tuple[int, ...] | None = None) -> Tensor:
    wide = x.cast(_wide(x.dtype))
    return (wide * wide).sum(axis=axes, keepdim=axes is not None).sqrt()
