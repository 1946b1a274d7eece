"""Arguments for the schemas of operators: plausible ones, and hostile ones made of them.

They are descriptions, from which a device's tensors are made: the same values on each.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
import random
from dataclasses import dataclass, replace
from typing import Any

import torch

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
DTYPES = (*FLOATS, *INTEGERS, "complex64", "complex128", "complex32", "uint16", "uint32", "uint64")
HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
HOSTILE_INTEGERS = (-1, 0, 1, 2, 5, 7, -2, -6, -2**31, -2**40, -2**63, *HUGE)
HOSTILE_NUMBERS = (0, -1, 0.5, -0.5, 2.5, 300, -300, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, True, 1j, complex(math.nan, 1),
                   2**31, 2**63 - 1, -2**63)


@dataclass(frozen=True)
class Spec:
    """A tensor: `low` to `high` are its values, of floats in quarters."""
    shape: tuple[int, ...]
    dtype: str = "float32"
    low: int = -3
    high: int = 3
    seed: int = 0
    layout: str = "plain"  # transposed, stepped, expanded

    def make(self, device: str) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        dtype = getattr(torch, self.dtype)
        shape = self.shape
        if self.layout == "transposed":
            shape = shape[::-1]
        elif self.layout == "stepped" and shape:
            shape = (*shape[:-1], shape[-1] * 2)
        elif self.layout == "expanded" and shape:
            shape = (1, *shape[1:])
        values = torch.randint(4 * self.low, 4 * self.high + 1, shape, generator=generator)
        values = values / 4 if dtype.is_floating_point or dtype.is_complex else values.div(4, rounding_mode="floor")
        if self.dtype == "bool":
            values = values > (self.low + self.high) // 2
        tensor = values.to(dtype).to(device)
        if self.layout == "transposed":
            tensor = tensor.permute(*range(tensor.dim())[::-1])
        elif self.layout == "stepped" and shape:
            tensor = tensor[..., ::2]
        elif self.layout == "expanded" and shape:
            tensor = tensor.expand(self.shape)
        return tensor


def made(x: Any, device: str) -> Any:
    """The description as an argument of an operator on this device."""
    if isinstance(x, Spec):
        return x.make(device)
    if isinstance(x, (list, tuple)):
        return [made(item, device) for item in x]
    if isinstance(x, str) and x.startswith("torch."):
        return getattr(torch, x.removeprefix("torch."))
    if isinstance(x, dict):
        return torch.device(device) if "device" in x else torch.Generator(device).manual_seed(7) if "generator" in x else (
            Spec((3,)).make(device).untyped_storage())
    return x


class Arguments:
    """Of one schema and one call."""

    def __init__(self, schema: Any, rng: random.Random) -> None:
        self.schema = schema
        self.rng = rng
        self.rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5))
        self.base = tuple(rng.choice((0, 1, 2, 2, 3, 3, 4, 4)) if rng.random() < 0.5 else rng.choice((2, 3, 4))
                          for _ in range(self.rank))
        self.dtype = "float32" if rng.random() < 0.6 else rng.choice(DTYPES)

    def plausible(self) -> dict[str, Any]:
        seeds = seeds_of(self.schema)
        if seeds and self.rng.random() < 0.8:
            known = self.rng.choice(seeds)
            if tensors := [x for x in known.values() if isinstance(x, Spec)]:
                self.base, self.dtype = tensors[0].shape, tensors[0].dtype
                self.rank = len(self.base)
            return {a.name: known[a.name] if a.name in known else self.of_type(a.name, str(a.real_type), a.is_out)
                    for a in self.schema.arguments}
        arguments = {}
        for a in self.schema.arguments:
            if a.has_default_value() and not a.is_out and self.rng.random() < 0.6:
                continue
            arguments[a.name] = self.of_type(a.name, str(a.real_type), a.is_out)
        return arguments

    def of_type(self, name: str, kind: str, is_out: bool = False) -> Any:
        rng = self.rng
        if kind.startswith("Optional["):
            return None if rng.random() < 0.5 else self.of_type(name, kind[9:-1])
        if kind.startswith("List[Tensor") or kind.startswith("List[Optional[Tensor"):
            return [self.of_type(name, kind[5:-1]) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        if kind == "Tensor":
            return self.tensor(name, is_out)
        if kind.startswith("List["):
            if "dim" in name and self.rank:
                return rng.sample(range(-self.rank, self.rank), rng.randint(0, self.rank))
            size = rng.choice((1, 2, 2, 3, self.rank))
            return [self.of_type(name, kind[5:-1]) for _ in range(size)]
        simple = {
            "int": lambda: (rng.randrange(-self.rank, self.rank) if self.rank else 0)
            if "dim" in name else rng.choice((0, 1, 1, 2, 2, 3)),
            "SymInt": lambda: rng.choice((0, 1, 2, 3)),
            "float": lambda: rng.choice((0.0, 0.25, 0.5, 1.0, 1.5)),
            "number": lambda: rng.choice((0, 1, 2, 3, 0.5, 1.5, -1, True)),
            "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice(("none", "mean", "sum", "tanh", "floor", "trunc", "ij", "amax", "prod", "left")),
            "ScalarType": lambda: "torch." + (self.dtype if rng.random() < 0.7 else rng.choice(DTYPES)),
            "Layout": lambda: "torch.strided",
            "MemoryFormat": lambda: "torch." + rng.choice(("contiguous_format", "channels_last", "preserve_format")),
            "Device": lambda: {"device": 0},
            "Generator": lambda: {"generator": 0},
            "Storage": lambda: {"storage": 0},
        }
        return simple[kind]() if kind in simple else None

    def tensor(self, name: str, is_out: bool) -> Spec:
        rng = self.rng
        if is_out and rng.random() < 0.6:
            return Spec((0,), self.dtype)
        shape = list(self.base)
        how = rng.random()
        if how < 0.1 and shape:
            shape[rng.randrange(len(shape))] = 1
        elif how < 0.2 and shape:
            del shape[rng.randrange(len(shape))]
        elif how < 0.3:
            shape = [rng.choice((0, 1, 2, 3, 4)) for _ in range(rng.randrange(6))]
        elif how < 0.4:
            shape = [shape[min(1, len(shape) - 1)]] if shape else []
        spec = Spec(tuple(shape), self.dtype, seed=rng.randrange(1000))
        if any(word in name for word in ("ind", "target", "offset", "sorter", "count", "maximum")) and rng.random() < 0.9:
            spec = replace(spec, dtype="int64", low=0, high=rng.choice((0, 1, 2)))
        elif any(word in name for word in ("mask", "condition", "found")) and rng.random() < 0.9:
            spec = replace(spec, dtype="bool")
        elif rng.random() < 0.15:
            spec = replace(spec, dtype=rng.choice(DTYPES))
        if rng.random() < 0.2:
            spec = replace(spec, layout=rng.choice(("transposed", "stepped", "expanded")))
        return spec

    def hostile(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """With one or two of them changed."""
        kinds = {a.name: str(a.real_type) for a in self.schema.arguments}
        changed = dict(arguments)
        for _ in range(self.rng.choice((1, 1, 2))):
            name = self.rng.choice(list(kinds)) if kinds else None
            if name is not None:
                changed[name] = self.changed(name, kinds[name], changed.get(name))
        return changed

    def changed(self, name: str, kind: str, x: Any) -> Any:
        rng = self.rng
        if kind.startswith("Optional["):
            return None if rng.random() < 0.3 else self.changed(name, kind[9:-1], x)
        if kind.startswith("List["):
            items = list(x) if isinstance(x, (list, tuple)) else [self.of_type(name, kind[5:-1])]
            how = rng.random()
            if how < 0.1:
                return []
            if how < 0.25 and items:
                del items[rng.randrange(len(items))]
            elif how < 0.45:
                items.insert(rng.randint(0, len(items)), rng.choice(items) if items else self.of_type(name, kind[5:-1]))
            elif how < 0.5:
                items = (items * 7)[:7]
            elif items:
                at = rng.randrange(len(items))
                items[at] = self.changed(name, kind[5:-1], items[at])
            return items
        if kind == "Tensor":
            return self.changed_tensor(x if isinstance(x, Spec) else self.tensor(name, False))
        hostile = {
            "int": lambda: rng.choice((*HOSTILE_INTEGERS, self.rank, -self.rank - 1, self.rank + 1)),
            "SymInt": lambda: rng.choice(HOSTILE_INTEGERS),
            "float": lambda: float(rng.choice([n for n in HOSTILE_NUMBERS if not isinstance(n, complex)])),
            "number": lambda: rng.choice(HOSTILE_NUMBERS),
            "bool": lambda: not x,
            "str": lambda: rng.choice(("", "nonsense", "mean")),
            "ScalarType": lambda: "torch." + rng.choice(DTYPES),
            "Layout": lambda: rng.choice(("torch.sparse_coo", "torch.strided")),
            "MemoryFormat": lambda: "torch." + rng.choice(("channels_last", "channels_last_3d", "preserve_format")),
        }
        return hostile[kind]() if kind in hostile else x

    def changed_tensor(self, spec: Spec) -> Spec:
        rng = self.rng
        how, shape = rng.random(), list(spec.shape)
        if how < 0.2:
            return replace(spec, shape=tuple(rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(6))))
        if how < 0.3:
            return replace(spec, shape=())
        if how < 0.5 and shape:
            shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 5))
            return replace(spec, shape=tuple(shape))
        if how < 0.55:
            return replace(spec, shape=(*shape, rng.choice((1, 2))))
        if how < 0.6 and shape:
            return replace(spec, shape=tuple(shape[1:]))
        if how < 0.8:
            return replace(spec, dtype=rng.choice(DTYPES))
        if how < 0.9:
            return replace(spec, low=rng.choice((-7, -1, 3)), high=rng.choice((3, 9)))
        return replace(spec, layout=rng.choice(("transposed", "stepped", "expanded")))


@functools.cache
def known_calls() -> dict[str, list[dict[str, Any]]]:
    """Calls that the CPU accepts, of operators whose arguments chance seldom finds."""
    file = pathlib.Path(__file__).with_name("hostile_seeds.json")
    return json.loads(file.read_text()) if file.exists() else {}  # type: ignore[no-any-return]


def seeds_of(schema: Any) -> list[dict[str, Any]]:
    """Those of the operator, by the names of its inputs: its out= and in-place forms have them too."""
    base = schema.name.removeprefix("aten::").rstrip("_")
    names = [a.name for a in schema.arguments if not a.is_out]
    return [{name: described(x) for name, x in seed.items()}
            for seed in known_calls().get(base, ()) if set(seed) <= set(names)]


def described(x: Any) -> Any:
    if isinstance(x, dict) and "shape" in x:
        return Spec(**{**x, "shape": tuple(x["shape"])})
    return [described(item) for item in x] if isinstance(x, list) else x
