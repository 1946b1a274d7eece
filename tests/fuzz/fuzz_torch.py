#!/usr/bin/env python3
"""Random programs of views and writes that share memory, by PyTorch on its CPU and on device weft.

    fuzz_torch.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                  [--known REGEX] [--case N] [--show]

Values, shapes, strides, offsets, version counters and the kinds of errors must be the same after each program, and
values now and then within it. A program that fails is made as small as it gets and printed.
"""

from __future__ import annotations

import dataclasses
import random
import warnings
from typing import Any

import torch
import weft.torch  # noqa: F401
from drive import Failed, Fuzzer

torch.set_num_threads(1)
warnings.simplefilter("ignore")  # of outputs that are resized

Tensors = list[torch.Tensor]
MOST_TENSORS = 12


@dataclasses.dataclass
class Step:
    """`name` of VIEWS, RESULTS or WRITES, on the tensors that two numbers choose, with further choices by a seed."""

    name: str
    first: int
    second: int
    seed: int


def axis_of(t: torch.Tensor, rng: random.Random) -> int:
    return rng.randrange(max(t.dim(), 1))


VIEWS: dict[str, Any] = {
    "t": lambda a, rng: a.t(),
    "select": lambda a, rng: a.select(axis_of(a, rng), 0),
    "narrow": lambda a, rng: a.narrow(axis_of(a, rng), 1, max(1, a.size(0) // 2)),
    "flatten": lambda a, rng: a.reshape(-1),
    "diagonal": lambda a, rng: a.diagonal(rng.randrange(2)),
    "as_strided": lambda a, rng: a.as_strided((2, 2), (rng.randrange(4), rng.randrange(4)), rng.randrange(3)),
    "expand": lambda a, rng: a.unsqueeze(0).expand(2, *a.shape),
    "every second": lambda a, rng: a[::2],
    "windows": lambda a, rng: a.unfold(axis_of(a, rng), 2, 1),
    "permute": lambda a, rng: a.permute(rng.sample(range(a.dim()), a.dim())),
    "detach": lambda a, rng: a.detach(),
    "data": lambda a, rng: a.data,
    "chunk": lambda a, rng: a.chunk(2, axis_of(a, rng))[-1],
    "view of pairs": lambda a, rng: torch.view_as_complex(a.view(-1, 2)).conj().imag,
    "squeeze": lambda a, rng: a.unsqueeze(axis_of(a, rng)).squeeze(),
    "set_": lambda a, rng: torch.empty(0, device=a.device).set_(a.untyped_storage(), rng.randrange(2), (2, 3), (3, 1)),
}
RESULTS: dict[str, Any] = {
    "add": lambda a, b, rng: a + b,
    "mul": lambda a, b, rng: a * 0.5,
    "flip": lambda a, b, rng: a.flip(axis_of(a, rng)),
    "where": lambda a, b, rng: torch.where(a > 3, a, b),
    "amax": lambda a, b, rng: a.amax(axis_of(a, rng)),
    "cat": lambda a, b, rng: torch.cat([a, b]),
    "index": lambda a, b, rng: a[torch.tensor([0, -1], device=a.device)],
    "gather": lambda a, b, rng: a.gather(0, torch.zeros([1] * a.dim(), dtype=torch.long, device=a.device)),
    "clone": lambda a, b, rng: a.clone(),
    "int": lambda a, b, rng: a.int().float(),
}
WRITES: dict[str, Any] = {
    "add_": lambda a, b, rng: a.add_(b),
    "mul_": lambda a, b, rng: a.mul_(0.5),
    "copy_": lambda a, b, rng: a.copy_(b),
    "zero_": lambda a, b, rng: a.zero_(),
    "fill_": lambda a, b, rng: a.fill_(rng.randrange(9)),
    "relu_": lambda a, b, rng: a.relu_(),
    "clamp_": lambda a, b, rng: a.clamp_(-64, 64),
    "index_fill_": lambda a, b, rng: a.index_fill_(axis_of(a, rng), torch.tensor([0], device=a.device), 5),
    "masked_fill_": lambda a, b, rng: a.masked_fill_(a > 4, -1),
    "setitem": lambda a, b, rng: a.__setitem__(torch.tensor([0, 1], device=a.device), 3),
    "foreach": lambda a, b, rng: torch._foreach_add_([a, b], 1),
    "bits": lambda a, b, rng: a.view(torch.int32).bitwise_and_(-256),
    "copy from the CPU": lambda a, b, rng: a.copy_(torch.full(a.shape, 2.0)),
    "out": lambda a, b, rng: torch.mul(a, 2, out=b),
    "resize_": lambda a, b, rng: a.resize_(a.shape[:-1]),
}
FREE_OF_OVERLAPS = {"zero_", "fill_"}  # what writes one value


def addresses(t: torch.Tensor) -> torch.Tensor:
    """The elements of the storage that each element of the tensor is."""
    places = torch.full((1,), t.storage_offset())
    for size, stride in zip(t.shape, t.stride()):
        places = (places[:, None] + torch.arange(size) * stride).reshape(-1)
    return places


def overlaps(t: torch.Tensor) -> bool:
    """Whether two elements of what is written are one; PyTorch leaves it undefined, but for strides of 0."""
    if t.numel() == 0 or any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape)):
        return False
    places = addresses(t)
    return places.unique().numel() != places.numel()


def meet(written: torch.Tensor, read: torch.Tensor) -> bool:
    """Whether they share elements in a way that PyTorch does not promise to notice."""
    if written.untyped_storage()._cdata != read.untyped_storage()._cdata:
        return False
    same = ("shape", "stride", "storage_offset")
    if all(a() == b() if callable(a := getattr(written, k)) and callable(b := getattr(read, k)) else
           getattr(written, k) == getattr(read, k) for k in same):
        return False
    return bool(set(addresses(written).tolist()) & set(addresses(read).tolist()))


def is_undefined(name: str, a: torch.Tensor, b: torch.Tensor) -> bool:
    if name in VIEWS or name in RESULTS or name in FREE_OF_OVERLAPS:
        return False
    written = b if name == "out" else a
    if name == "foreach":
        return overlaps(a) or overlaps(b) or meet(a, b)
    return overlaps(written) or meet(a, b)


def apply(step: Step, tensors: Tensors) -> str:
    """The kind of error, if any."""
    a, b = tensors[step.first % len(tensors)], tensors[step.second % len(tensors)]
    rng = random.Random(step.seed)
    try:
        if is_undefined(step.name, a, b):
            return "undefined"
        if step.name in VIEWS:
            tensors.append(VIEWS[step.name](a, rng))
        elif step.name in RESULTS:
            tensors.append(RESULTS[step.name](a, b, rng))
        else:
            WRITES[step.name](a, b, rng)
    except Exception as error:  # noqa: BLE001  the other device must raise it, too
        return type(error).__name__
    if len(tensors) > MOST_TENSORS:
        del tensors[2]
    return ""


def compare(step: Step, here: Tensors, there: Tensors) -> None:
    for number, (a, b) in enumerate(zip(here, there)):
        def told(t: torch.Tensor) -> tuple[Any, ...]:
            return tuple(t.shape), [s for s, n in zip(t.stride(), t.shape) if n > 1] if t.numel() else [], \
                t.storage_offset(), t._version, t.is_neg()

        if told(a) != told(b):
            raise Failed(f"after {step}: tensor {number} is {told(b)} instead of {told(a)}")
        values = b.cpu()
        if not torch.equal(values.nan_to_num(7), a.nan_to_num(7)):
            raise Failed(f"after {step}: tensor {number} is\n{values}\ninstead of\n{a}")


def start(device: str) -> Tensors:
    return [torch.arange(24.0).reshape(4, 6).clone().to(device), torch.arange(24.0).mul(-1).to(device)]


def run(steps: list[Step]) -> None:
    here, there = start("cpu"), start("weft")
    for number, step in enumerate(steps):
        told, tells = apply(step, here), apply(step, there)
        if told != tells:
            raise Failed(f"{step}: {tells or 'no error'} instead of {told or 'no error'}")
        if step.seed % 8 == 0 or number == len(steps) - 1:
            compare(step, here, there)


def make(text: str) -> list[Step]:
    rng = random.Random(text)
    names = [*VIEWS, *RESULTS, *WRITES, *WRITES]
    return [Step(rng.choice(names), rng.randrange(1 << 16), rng.randrange(1 << 16), rng.randrange(1 << 16))
            for _ in range(25)]


def script_of(steps: list[Step]) -> str:
    lines = "".join(f"    {step},\n" for step in steps)
    return f"from fuzz_torch import Step, run\nrun([\n{lines}])\n"


if __name__ == "__main__":
    Fuzzer("fuzz_torch", make, run, script_of).main(__doc__)
