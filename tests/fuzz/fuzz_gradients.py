#!/usr/bin/env python3
"""Random programs of views, writes and arithmetic, differentiated by weft and by PyTorch.

    fuzz_gradients.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                      [--known REGEX] [--case N] [--show]

PyTorch refuses to differentiate what was overwritten since; here it is given copies of all operands, so that it
keeps what each operation read. A program that fails is made as small as it gets and printed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from drive import Failed, Fuzzer

import weft

torch.set_num_threads(1)


@dataclasses.dataclass
class Step:
    text: str


class Eager:
    """The operations of programs on PyTorch's tensors, of which each reads copies."""

    def leaf(self, *shape: int) -> Any:
        return torch.tensor(numbers(shape), requires_grad=True)

    def constant(self, *shape: int) -> Any:
        return torch.tensor(numbers(shape))

    def copy(self, x: Any) -> Any:
        return x.clone() if isinstance(x, torch.Tensor) else x

    def apply(self, name: str, *xs: Any) -> Any:
        # Results are in row-major order here, which decides what is a view of them.
        return OPS[name][1](*[self.copy(x) for x in xs]).clone(memory_format=torch.contiguous_format)

    def write(self, view: Any, value: Any) -> None:
        view.copy_(self.copy(value)) if isinstance(value, torch.Tensor) else view.fill_(value)

    def update(self, name: str, view: Any, value: Any) -> None:
        view.copy_(OPS[name][1](view.clone(), self.copy(value)))

    def flip(self, x: Any, axis: int) -> Any:
        return x.clone().flip(axis).clone(memory_format=torch.contiguous_format)

    def cat(self, x: Any, y: Any, axis: int) -> Any:
        return torch.cat([x.clone(), y.clone()], axis)

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        return torch.no_grad()

    def realize(self, x: Any) -> None:
        pass

    def rows(self, x: Any, index: list[int]) -> Any:
        return x.clone()[torch.tensor(index)]

    def put_rows(self, x: Any, index: list[int], value: Any) -> None:
        x[torch.tensor(index)] = self.copy(value)

    def add_rows(self, x: Any, index: list[int], value: Any) -> Any:
        more = torch.as_tensor(self.copy(value), dtype=x.dtype).expand(len(index), *x.shape[1:])
        return x.clone().index_add(0, torch.tensor(index), more)

    def put_where(self, x: Any, value: float) -> None:
        x[x.detach() > 0.9] = value


class Lazy:
    """The same on weft's."""

    def leaf(self, *shape: int) -> Any:
        return weft.Tensor(numbers(shape), requires_grad=True)

    def constant(self, *shape: int) -> Any:
        return weft.Tensor(numbers(shape))

    def apply(self, name: str, *xs: Any) -> Any:
        return OPS[name][0](*xs)

    def write(self, view: Any, value: Any) -> None:
        view.assign(value)

    def update(self, name: str, view: Any, value: Any) -> None:
        view.assign(OPS[name][0](view, value))

    def flip(self, x: Any, axis: int) -> Any:
        return x.flip(axis).clone()

    def cat(self, x: Any, y: Any, axis: int) -> Any:
        return x.cat(y, dim=axis)

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        return weft.no_grad()

    def realize(self, x: Any) -> None:
        x.realize()

    def rows(self, x: Any, index: list[int]) -> Any:
        return x[index]

    def put_rows(self, x: Any, index: list[int], value: Any) -> None:
        x[index] = value

    def add_rows(self, x: Any, index: list[int], value: Any) -> Any:
        more = value if isinstance(value, weft.Tensor) else weft.Tensor(value, dtype="float64")
        return x.index_add(0, weft.Tensor(index), more.expand(len(index), *x.shape[1:]))

    def put_where(self, x: Any, value: float) -> None:
        x[x.detach() > 0.9] = value


def numbers(shape: tuple[int, ...]) -> Any:
    """Positive, and no two the same: the largest is one alone."""
    count = int(np.prod(shape, dtype=np.int64))
    order = np.random.default_rng(count).permutation(count)
    return (0.5 + (order + 0.5) / (count + 1)).reshape(shape).astype(np.float64)


# name: on weft, on PyTorch. They keep values of about 1 so.
OPS: dict[str, tuple[Any, Any]] = {
    "add": (lambda x, y: (x + y) * 0.5, lambda x, y: (x + y) * 0.5),
    "sub": (lambda x, y: x - y * 0.25, lambda x, y: x - y * 0.25),
    "mul": (lambda x, y: x * y, lambda x, y: x * y),
    "div": (lambda x, y: x / (y * y + 1), lambda x, y: x / (y * y + 1)),
    "max": (lambda x, y: x.maximum(y), lambda x, y: torch.maximum(x, torch.as_tensor(y, dtype=x.dtype))),
    "where": (lambda x, y: (x > 0.9).where(x, y), lambda x, y: torch.where(x > 0.9, x, y)),
    "sin": (lambda x: x.sin(), lambda x: x.sin()),
    "exp": (lambda x: (x * -0.5).exp(), lambda x: (x * -0.5).exp()),
    "log": (lambda x: (x * x + 1).log(), lambda x: (x * x + 1).log()),
    "sqrt": (lambda x: (x * x + 0.1).sqrt(), lambda x: (x * x + 0.1).sqrt()),
    "sum": (lambda x: x.sum(-1) * 0.3, lambda x: x.sum(-1) * 0.3),
    "mean": (lambda x: x.mean(0, keepdim=True), lambda x: x.mean(0, keepdim=True)),
    "largest": (lambda x: x.max(0), lambda x: x.amax(0)),
    "matmul": (lambda x, y: (x @ y) * 0.2, lambda x, y: (x @ y) * 0.2),
    "detach": (lambda x: x.detach() * 0.5, lambda x: x.detach() * 0.5),
    "clone": (lambda x: x.clone(), lambda x: x.clone()),
}
UNARY = ("sin", "exp", "log", "sqrt", "clone", "detach")
BINARY = ("add", "sub", "mul", "div", "max", "where")
REDUCED = ("sum", "mean", "largest")


class Maker:
    """Makes a program step by step, run on PyTorch as it goes, which says what shapes there are."""

    def __init__(self, text: str) -> None:
        self.random = random.Random(text)
        self.names: dict[str, Any] = {"t": Eager()}
        self.steps: list[Step] = []
        self.tensors: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        exec(text, self.names)
        self.steps.append(Step(text))

    def define(self, expression: str) -> None:
        name = f"x{self.count}"
        self.count += 1
        self.add(f"{name} = {expression}")
        self.tensors.append(name)

    def pick(self, least_rank: int = 0) -> str:
        fitting = [n for n in self.tensors if self.names[n].dim() >= least_rank and self.names[n].numel() > 0]
        return self.random.choice(fitting[-6:] if self.random.random() < 0.7 else fitting)

    def run(self) -> list[Step]:
        r = self.random
        for _ in range(r.randint(1, 2)):
            self.define(f"t.leaf({', '.join(str(r.randint(1, 4)) for _ in range(r.randint(1, 3)))})")
            self.define(f"t.apply('mul', {self.tensors[-1]}, 1.5)")  # PyTorch's leaves cannot be written
        self.define(f"t.constant({r.randint(1, 4)}, {r.randint(1, 4)})")
        for _ in range(r.randint(3, 14)):
            with contextlib.suppress(IndexError):
                r.choice([self.view, self.view, self.compute, self.compute, self.combine, self.reduce, self.write,
                          self.write, self.update, self.update, self.hidden, self.realize, self.rows, self.rows,
                          self.put])()
        return self.steps

    # ---- steps

    def slice_of(self, name: str) -> str:
        r, parts = self.random, []
        for size in self.names[name].shape:
            start = r.randint(0, size - 1)
            stop = r.randint(start + 1, size)
            kind = r.random()
            parts.append(str(start) if kind < 0.2 else ":" if kind < 0.4 else
                         f"{start}:{stop}" if kind < 0.8 else f"::{r.randint(1, 2)}")
        return f"{name}[{', '.join(parts)}]" if parts else name

    def view_of(self, name: str) -> str:
        r, shape = self.random, tuple(self.names[name].shape)
        kind = r.randint(0, 5)
        if kind == 1 and len(shape) >= 2:
            return f"{name}.transpose(0, {r.randint(0, len(shape) - 1)})"
        if kind == 2 and len(shape) >= 2:
            return f"{name}.flatten()"
        if kind == 3 and shape and shape[0] >= 2:
            size = r.randint(1, shape[0])
            return f"{name}.unfold(0, {size}, {r.randint(1, 2)})"
        if kind == 4 and len(shape) < 4:
            return f"{name}.unsqueeze({r.randint(0, len(shape))})"
        return self.slice_of(name)

    def view(self) -> None:
        name = self.pick(1)
        kind = self.random.random()
        if kind < 0.1:
            self.define(f"t.flip({name}, {self.random.randrange(self.names[name].dim())})")
        elif kind < 0.2:
            shape = [size if size > 1 else self.random.randint(1, 3) for size in self.names[name].shape]
            self.define(f"{name}.expand({', '.join(map(str, shape))})")
        else:
            self.define(self.view_of(name))

    def partner(self, name: str) -> str:
        """A name that broadcasts with this one, or a number."""
        shape = self.names[name].shape
        fitting = [n for n in self.tensors if fits(self.names[n].shape, shape)]
        return self.random.choice([*fitting[-8:], "0.75", "1.25"])

    def compute(self) -> None:
        self.define(f"t.apply({self.random.choice(UNARY)!r}, {self.pick()})")

    def combine(self) -> None:
        name = self.pick()
        kind = self.random.random()
        if kind < 0.15:
            x = self.pick(2)
            fitting = [n for n in self.tensors if self.names[n].dim() == 2
                       and self.names[n].shape[0] == self.names[x].shape[-1]]
            self.define(f"t.apply('matmul', {x}, {self.random.choice(fitting)})")
        elif kind < 0.3:
            fitting = [n for n in self.tensors if self.names[n].dim() == self.names[name].dim() > 0
                       and self.names[n].shape[1:] == self.names[name].shape[1:]]
            self.define(f"t.cat({name}, {self.random.choice(fitting)}, 0)")
        else:
            self.define(f"t.apply({self.random.choice(BINARY)!r}, {name}, {self.partner(name)})")

    def reduce(self) -> None:
        self.define(f"t.apply({self.random.choice(REDUCED)!r}, {self.pick(1)})")

    def target(self) -> str:
        """A view that can be written: no leaf, nothing expanded, elements apart."""
        for _ in range(8):
            name = self.pick()
            text = self.slice_of(name)
            view = eval(text, self.names)
            if not name_is_leaf(self.names[name]) and is_plain(view):
                return text
        raise IndexError

    def value_for(self, text: str) -> str:
        shape = eval(text, self.names).shape
        fitting = [n for n in self.tensors if fits(self.names[n].shape, shape)]
        return self.random.choice([*fitting[-8:], "0.75", "1.25"])

    def write(self) -> None:
        target = self.target()
        self.add(f"t.write({target}, {self.value_for(target)})")

    def update(self) -> None:
        target = self.target()
        self.add(f"t.update({self.random.choice(('add', 'mul', 'sub'))!r}, {target}, {self.value_for(target)})")

    def hidden(self) -> None:
        target = self.target()
        self.add(f"with t.no_grad(): t.write({target}, {self.value_for(target)})")

    def rows(self) -> None:
        name = self.pick(1)
        size = self.names[name].shape[0]
        index = [self.random.randrange(-size, size) for _ in range(self.random.randint(1, 5))]
        if self.random.random() < 0.6:
            self.define(f"t.rows({name}, {index})")
        else:
            shape = (len(index), *self.names[name].shape[1:])
            fitting = [n for n in self.tensors if fits(self.names[n].shape, shape)]
            index = [i % size for i in index]  # PyTorch takes no negative ones here
            self.define(f"t.add_rows({name}, {index}, {self.random.choice([*fitting[-8:], '0.75'])})")

    def put(self) -> None:
        """Each row once: which of two writes to one place counts is not said in PyTorch."""
        target = self.target()
        view = eval(target, self.names)
        if view.dim() == 0:
            raise IndexError
        if self.random.random() < 0.3:
            self.add(f"t.put_where({target}, 0.6)")
            return
        size = view.shape[0]
        index = self.random.sample(range(size), self.random.randint(1, size))
        index = [i - size if self.random.random() < 0.3 else i for i in index]
        shape = (len(index), *view.shape[1:])
        fitting = [n for n in self.tensors if fits(self.names[n].shape, shape)]
        self.add(f"t.put_rows({target}, {index}, {self.random.choice([*fitting[-8:], '0.75'])})")

    def realize(self) -> None:
        self.add(f"t.realize({self.pick()})")


def fits(shape: Any, target: Any) -> bool:
    """Broadcasts to the target."""
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))


def name_is_leaf(x: Any) -> bool:
    while x._base is not None:
        x = x._base
    return bool(x.is_leaf and x.requires_grad)


def is_plain(view: Any) -> bool:
    """Elements do not share memory."""
    places = torch.arange(view.untyped_storage().nbytes() // 8).as_strided(view.shape, view.stride(), view.storage_offset())
    return len(set(places.flatten().tolist())) == view.numel()


def make(text: str) -> list[Step]:
    return Maker(text).run()


def results(steps: list[Step], world: Any) -> Iterator[tuple[str, Any]]:
    """Values, then gradients of the leaves."""
    names: dict[str, Any] = {"t": world}
    for step in steps:
        exec(step.text, names)
    tensors = {n: x for n, x in names.items() if n[0] == "x" and n[1:].isdigit()}
    leaves = [n for n in tensors if any(s.text.startswith(f"{n} = t.leaf") for s in steps)]
    total = world.constant(1).sum()
    for n, x in tensors.items():
        total = total + world.apply("mul", x, 1.0 + 0.1 * int(n[1:])).sum()
    if total.requires_grad:
        total.backward()
    for n, x in tensors.items():
        yield n, x.detach().numpy()
    for n in leaves:  # None and zeros mean the same
        yield f"{n}.grad", (tensors[n] * 0 if tensors[n].grad is None else tensors[n].grad).detach().numpy()


def run(steps: list[Step]) -> None:
    try:
        expected = dict(results(steps, Eager()))
    except RuntimeError:
        return  # PyTorch refuses, for example to write through a view that was made without gradients
    try:
        ours = dict(results(steps, Lazy()))
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    for name, value in expected.items():
        if not np.allclose(ours[name], value, rtol=1e-9, atol=1e-10):
            raise Failed(f"{name} is\n{ours[name]}\nnot\n{value}")


def script_of(steps: list[Step]) -> str:
    return "from fuzz_gradients import *\nt = Lazy()  # or Eager()\n" + "".join(f"{s.text}\n" for s in steps)


FUZZER = Fuzzer("fuzz_gradients", make, run, script_of)

if __name__ == "__main__":
    FUZZER.main(__doc__ or "")
