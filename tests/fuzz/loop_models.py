"""What the text of a random loop means to NumPy, to weft and to PyTorch: each gives it the same names.

`check(text)` runs a text by two of them and compares all tensors that it makes, and what it keeps of them on the way.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from drive import Failed

import weft
from weft import Tensor

# Of sums, whose order is nobody's, by the dtype that they are made in; of gradients, and of sines.
SUM_TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}
GRADIENT_TOLERANCE, ROUGH_TOLERANCE = 1e-9, 1e-4


class Invalid(Exception):
    """The text has no meaning: the model refuses it."""


class Total(NamedTuple):
    """A sum as NumPy has it, and that of the absolute values."""

    value: Any
    size: float
    dtype: str


def array_of(dtype: str, shape: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype == "uint8":
        return random.integers(0, 256, shape).astype(dtype)
    if dtype.startswith("int"):
        return random.integers(-50, 50, shape).astype(dtype)
    return (random.standard_normal(shape) * 2).astype(dtype)


class NumPy:
    """Arrays are tensors, its scalars those of no axes."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.kept: list[Any] = []

    def names(self) -> dict[str, Any]:
        own = [name for name in dir(type(self)) if not name.startswith("_") and name not in ("names", "results", "gradients")]
        return {**{name: getattr(self, name) for name in own}, "product": itertools.product}

    def data(self, dtype: str, shape: Any, seed: int, leaf: bool = False) -> Any:
        return self._made(array_of(dtype, shape, seed))

    lazy = data

    def zeros(self, dtype: str, shape: Any) -> Any:
        return self._made(np.zeros(shape, dtype))

    def _made(self, x: Any) -> Any:
        self.tensors.append(x)
        return x

    def permutation(self, count: int, seed: int) -> list[int]:
        return [int(i) for i in np.random.default_rng(seed).permutation(count)]

    def places(self, count: int, seed: int) -> list[int]:
        return [int(i) for i in np.random.default_rng(seed).integers(0, count, count)]

    def view(self, x: Any, step: int) -> Any:
        return x[::step]

    def copy(self, x: Any) -> Any:
        return np.array(x)[()]

    def mn(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y)

    def mx(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)[()]

    def absolute(self, x: Any) -> Any:
        return np.abs(x)

    def sin(self, x: Any) -> Any:
        return np.sin(x)

    def cos(self, x: Any) -> Any:
        return np.cos(x)

    def total(self, x: Any) -> Any:
        wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        return Total(wide.sum(), float(np.abs(wide).sum()), str(x.dtype))

    def keep(self, x: Any) -> None:
        self.kept.append(x if isinstance(x, Total) else np.array(x))

    def now(self, x: Any) -> None:
        pass

    def results(self) -> list[Any]:
        return [*self.tensors, *self.kept]


class Weft(NumPy):
    """What is kept is lazy until all is read; `measure` sees what a realise takes before it runs."""

    def __init__(self, measure: Callable[[list[Tensor]], None] = lambda tensors: None) -> None:
        super().__init__()
        self._measure, self._leaves = measure, []  # type: ignore[var-annotated]

    def data(self, dtype: str, shape: Any, seed: int, leaf: bool = False) -> Any:
        x = Tensor(array_of(dtype, shape, seed)).realize()
        if not leaf:
            return self._made(x)
        self._leaves.append(x.requires_grad_())
        return self._made(x * 1)

    def lazy(self, dtype: str, shape: Any, seed: int, leaf: bool = False) -> Any:
        x = Tensor(array_of(dtype, shape, seed))
        return self._made(x | False if dtype == "bool" else x * 1)

    def zeros(self, dtype: str, shape: Any) -> Any:
        return self._made(Tensor.zeros(shape, dtype=dtype))

    def copy(self, x: Any) -> Any:
        return x.clone()

    def mn(self, x: Any, y: Any) -> Any:
        return x.minimum(y)

    def mx(self, x: Any, y: Any) -> Any:
        return x.maximum(y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return Tensor.where(condition, x, y)

    def absolute(self, x: Any) -> Any:
        return x.abs()

    def sin(self, x: Any) -> Any:
        return x.sin()

    def cos(self, x: Any) -> Any:
        return x.cos()

    def total(self, x: Any) -> Any:
        return x.sum()

    def keep(self, x: Any) -> None:
        self.kept.append(x.clone())

    def now(self, x: Any) -> None:
        self._measure([x])
        x.realize()

    def results(self) -> list[Any]:
        everything = [*self.tensors, *self.kept]
        self._measure(everything)
        everything[0].realize(*everything[1:])
        return [x.numpy() for x in everything]

    def gradients(self) -> list[Any]:
        loss = Tensor(0.0, dtype="float64")
        for number, x in enumerate([*self.tensors, *self.kept]):
            if x.requires_grad:
                loss = loss + (x * Tensor(array_of("float64", tuple(x.shape), number))).sum()
        found = loss.gradient(*self._leaves)
        if found:
            self._measure(found)
        return [g.numpy() for g in found]


def torch_model(device: str, copies: bool) -> Any:
    """PyTorch on a device. With `copies` an element that is read is one: no write behind it gets in the gradient's way."""
    import torch

    class Copied:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __getitem__(self, index: Any) -> Any:
            return self.tensor[index].clone()

        def __setitem__(self, index: Any, value: Any) -> None:
            self.tensor[index] = bare(value)

    def bare(x: Any) -> Any:
        return x.tensor if isinstance(x, Copied) else x

    class Torch(NumPy):
        def __init__(self) -> None:
            super().__init__()
            self._leaves: list[Any] = []

        def data(self, dtype: str, shape: Any, seed: int, leaf: bool = False) -> Any:
            x = torch.from_numpy(np.asarray(array_of(dtype, shape, seed))).to(device)
            if leaf:
                self._leaves.append(x.requires_grad_())
                x = x * 1
            return self._made(Copied(x) if copies else x)

        lazy = data

        def zeros(self, dtype: str, shape: Any) -> Any:
            x = torch.zeros(shape, dtype=getattr(torch, dtype), device=device)
            return self._made(Copied(x) if copies else x)

        def view(self, x: Any, step: int) -> Any:
            assert step == 1
            return Copied(x.tensor[:]) if isinstance(x, Copied) else x[:]

        def copy(self, x: Any) -> Any:
            return bare(x).clone()

        def mn(self, x: Any, y: Any) -> Any:
            return torch.minimum(x, y)

        def mx(self, x: Any, y: Any) -> Any:
            return torch.maximum(x, y)

        def where(self, condition: Any, x: Any, y: Any) -> Any:
            return torch.where(condition, x, y)

        def absolute(self, x: Any) -> Any:
            return x.abs()

        def sin(self, x: Any) -> Any:
            return x.sin()

        def cos(self, x: Any) -> Any:
            return x.cos()

        def total(self, x: Any) -> Any:
            wide = bare(x).detach().cpu().double()
            return Total(wide.sum().item(), wide.abs().sum().item(), str(bare(x).dtype)) if device == "cpu" and not copies \
                else bare(x).sum()

        def keep(self, x: Any) -> None:
            self.kept.append(x if isinstance(x, Total) else bare(x).clone())

        def now(self, x: Any) -> None:
            bare(x).cpu()

        def results(self) -> list[Any]:
            return [x if isinstance(x, Total) else bare(x).detach().cpu().numpy() for x in [*self.tensors, *self.kept]]

        def gradients(self) -> list[Any]:
            if not self._leaves:
                return []
            loss = torch.zeros((), dtype=torch.float64, device=device)
            for number, x in enumerate(map(bare, [*self.tensors, *self.kept])):
                if x.requires_grad:
                    weights = torch.from_numpy(np.asarray(array_of("float64", tuple(x.shape), number))).to(device)
                    loss = loss + (x * weights).sum()
            if not loss.requires_grad:
                return [np.zeros(x.shape) for x in self._leaves]
            found = torch.autograd.grad(loss, self._leaves, allow_unused=True)
            return [np.zeros(x.shape) if g is None else g.cpu().numpy() for g, x in zip(found, self._leaves)]

    return Torch()


def compare(what: str, got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, Total):
        if expected.dtype.split(".")[-1] in SUM_TOLERANCE:
            most = 6e4 if "16" in expected.dtype else 1e30
            close = not expected.size < most or \
                abs(float(got) - expected.value) <= SUM_TOLERANCE[expected.dtype.split(".")[-1]] * (expected.size + 1e-6)
        else:
            close = (int(got) - int(expected.value)) % 2 ** (8 * got.dtype.itemsize) == 0
        if not close:
            raise Failed(f"{what}: a sum is {got} instead of {expected.value}")
        return
    expected = np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise Failed(f"{what} is {got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}")
    equal = (got == expected) | ((got != got) & (expected != expected))
    if tolerance and not equal.all():
        finite = np.abs(expected[np.isfinite(expected)])
        with np.errstate(all="ignore"):
            equal |= np.abs(got - expected) <= tolerance * (1 + (finite.max() if finite.size else 0))
    if not equal.all():
        first = tuple(int(i) for i in np.argwhere(~equal)[0])
        raise Failed(f"{what} at {list(first)} is {got[first]!r} instead of {expected[first]!r}, "
                     f"and {np.count_nonzero(~equal)} of {equal.size} elements differ")


def names_of(text: str) -> list[str]:
    """What the results are called, as far as lines tell."""
    return re.findall(r"^(\w+) = (?:data|lazy|zeros)\(", text, re.MULTILINE)


def execute(text: str, model: NumPy) -> None:
    with np.errstate(all="ignore"):
        exec(text, model.names())


def check(text: str, kind: str = "numpy", measure: Callable[[list[Tensor]], None] = lambda tensors: None) -> None:
    """numpy: by weft and NumPy. gradients: by weft and PyTorch, gradients too. device: by PyTorch on device weft and on the
    CPU. Raises Failed, or Invalid for a text that means nothing."""
    expected: Any = NumPy() if kind == "numpy" else torch_model("cpu", copies=kind == "gradients")
    try:
        execute(text, expected)
        right = expected.results()
        right_gradients = expected.gradients() if kind == "gradients" else []
    except Exception as error:
        raise Invalid(f"{type(error).__name__}: {error}") from error
    model: Any = torch_model("weft", copies=False) if kind == "device" else Weft(measure)
    try:
        execute(text, model)
        got = model.results()
        gradients = model.gradients() if kind == "gradients" else []
    except NameError as error:
        raise Invalid(str(error)) from error
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    tolerance = ROUGH_TOLERANCE if "sin(" in text or "cos(" in text else 0.0
    names = names_of(text)
    for number, (x, y) in enumerate(zip(got, right, strict=True)):
        what = names[number] if number < len(names) else f"kept {number - len(expected.tensors)}"
        is_sum = kind == "gradients" and "total(" in text and number >= len(expected.tensors)
        compare(what, x, y, GRADIENT_TOLERANCE if is_sum else tolerance)
    for number, (x, y) in enumerate(zip(gradients, right_gradients, strict=True)):
        compare(f"gradient {number}", x, y, GRADIENT_TOLERANCE)
