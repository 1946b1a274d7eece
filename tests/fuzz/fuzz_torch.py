#!/usr/bin/env python3
"""Random programs of views, copies and writes that share memory, by PyTorch on its CPU and on device weft.

    fuzz_torch.py [--seed 1] [--count 1000] [--first 0] [--processes 1] [--failures 1]
                  [--known REGEX] [--case N] [--show]

Values, dtypes, shapes, strides, offsets, version counters, gradients and the kinds of errors must be the same after each
program, and now and then within it. A program that fails is made as small as it gets and printed.
"""

from __future__ import annotations

import dataclasses
import random
import warnings
from typing import Any

import torch
import weft.torch  # noqa: F401
from drive import Failed, Fuzzer
from torch_statements import RESULTS, VIEWS, WRITES, Tensors, gradients, is_undefined, start

torch.set_num_threads(1)
warnings.simplefilter("ignore")  # of outputs that are resized, and of writes to expanded tensors

MOST_TENSORS = 16
FIRST_THAT_GOES = 7  # those that a program begins with stay
STATEMENTS = 30
NOT_IMPLEMENTED = NotImplementedError.__name__


@dataclasses.dataclass
class Step:
    """`name` of VIEWS, RESULTS or WRITES, on the tensors that two numbers choose, with further choices by a seed."""

    name: str
    first: int
    second: int
    seed: int


def operands(step: Step, tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """Most times two that fit together."""
    a = tensors[step.first % len(tensors)]
    fitting = tensors if step.seed % 4 == 0 else [t for t in tensors if fits(t.shape, a.shape)]
    return a, fitting[step.second % len(fitting)]


def fits(shape: torch.Size, to: torch.Size) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))


def apply(step: Step, tensors: Tensors) -> str:
    """The kind of error, if any."""
    a, b = operands(step, tensors)
    rng = random.Random(step.seed)
    try:
        if is_undefined(step.name, a, b):
            return "undefined"
        if step.name in VIEWS:
            tensors.append(VIEWS[step.name](a, rng))
        elif step.name in RESULTS:
            result = RESULTS[step.name](a, b, rng)
            tensors.extend(result if isinstance(result, list) else [result])
        elif step.name == "gradients":
            tensors.extend(gradients(tensors, step.first))
        else:
            WRITES[step.name](a, b, rng)
    except Exception as error:  # noqa: BLE001  the other device must raise it, too
        return type(error).__name__
    del tensors[FIRST_THAT_GOES:FIRST_THAT_GOES + max(0, len(tensors) - MOST_TENSORS)]
    return ""


def told(t: torch.Tensor) -> tuple[Any, ...]:
    strides = [stride for stride, size in zip(t.stride(), t.shape) if size > 1] if t.numel() else []
    return t.dtype, tuple(t.shape), strides, t.storage_offset(), t._version, t.is_neg(), t.is_conj(), t.requires_grad


def plain(t: torch.Tensor) -> torch.Tensor:
    """Its values, as reals of which none is NaN."""
    t = t.detach().cpu().resolve_conj().resolve_neg()
    return (torch.view_as_real(t) if t.is_complex() else t).nan_to_num(7)


def compare(step: Step, here: Tensors, there: Tensors) -> None:
    if len(here) != len(there):
        raise Failed(f"after {step}: {len(there)} tensors instead of {len(here)}")
    for number, (a, b) in enumerate(zip(here, there)):
        if told(a) != told(b):
            raise Failed(f"after {step}: tensor {number} is {told(b)} instead of {told(a)}")
        if not torch.equal(plain(b), plain(a)):
            raise Failed(f"after {step}: tensor {number} is\n{b.cpu()}\ninstead of\n{a}")


def run(steps: list[Step]) -> None:
    here, there = start("cpu"), start("weft")
    for number, step in enumerate(steps):
        told_here = apply(step, here)
        if told_here == NOT_IMPLEMENTED:
            continue  # the CPU has no kernel for the dtype; weft may have one
        told_there = apply(step, there)
        if told_here != told_there:
            raise Failed(f"{step}: {told_there or 'no error'} instead of {told_here or 'no error'}")
        if step.seed % 8 == 0 or number == len(steps) - 1:
            try:
                compare(step, here, there)
            except RuntimeError as error:
                raise Failed(f"after {step}: {error}") from error


def make(text: str) -> list[Step]:
    rng = random.Random(text)
    names = [*VIEWS, *RESULTS, *WRITES, *WRITES, "gradients", "leaf", "leaf"]
    return [Step(rng.choice(names), rng.randrange(1 << 16), rng.randrange(1 << 16), rng.randrange(1 << 16))
            for _ in range(STATEMENTS)]


def script_of(steps: list[Step]) -> str:
    lines = "".join(f"    {step},\n" for step in steps)
    return f"from fuzz_torch import Step, run\nrun([\n{lines}])\n"


if __name__ == "__main__":
    Fuzzer("fuzz_torch", make, run, script_of).main(__doc__)
