"""The statements of fuzz_torch.py: views, results, copies and writes, each by one function of one or two tensors and a
generator of choices. What a statement may not do, and what PyTorch leaves undefined, is said at the end.
"""

from __future__ import annotations

import copy
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import torch

Tensors = list[torch.Tensor]
DTYPES = (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32, torch.complex64)


def start(device: str) -> Tensors:
    count = torch.arange(24)
    first = [count.float().reshape(4, 6), -count.float(), count[:12].reshape(3, 4) % 3 == 0, count[:6] - 3,
             count[:12].int().reshape(2, 6), count[:8].to(torch.uint8), torch.complex(count[:6].float(), -count[:6].float())]
    return [t.clone().to(device) for t in first]


def axis_of(t: torch.Tensor, rng: random.Random) -> int:
    return rng.randrange(max(t.dim(), 1))


def dtype_of(rng: random.Random) -> torch.dtype:
    return rng.choice(DTYPES)


def first_along(a: torch.Tensor, rng: random.Random) -> tuple[int, torch.Tensor]:
    """An axis and its first place."""
    axis = axis_of(a, rng)
    if a.dim() and a.size(axis) == 0:
        raise ValueError("an axis of size 0")
    return axis, torch.tensor([0], device=a.device)


def number_for(t: torch.Tensor, rng: random.Random) -> Any:
    """A number that most tensors of the dtype hold."""
    small = rng.randrange(-2, 6)
    return rng.choice((small, abs(small), rng.random() < 0.5, small / 2, complex(small, 1) if t.is_complex() else small))


def places(t: torch.Tensor, rng: random.Random, axis: int = 0) -> torch.Tensor:
    """Integers for this axis, most within its bounds, some twice."""
    size = t.size(axis) if t.dim() else 1
    chosen = [rng.randrange(-1, max(size, 1)) for _ in range(rng.randrange(4))]
    return torch.tensor(chosen, dtype=torch.long, device=t.device)


def along(t: torch.Tensor, rng: random.Random) -> tuple[int, torch.Tensor]:
    """An axis and different places on it."""
    axis = axis_of(t, rng)
    size = t.size(axis) if t.dim() else 1
    chosen = rng.sample(range(max(size, 1)), min(size, rng.randrange(1, 4)))
    return axis, torch.tensor(chosen, dtype=torch.long, device=t.device)


def ones_along(t: torch.Tensor, rng: random.Random) -> tuple[int, torch.Tensor, torch.Tensor]:
    axis, at = along(t, rng)
    return axis, at, torch.ones_like(t).index_select(axis, at)


def mask_for(t: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """Bools in the shape of the tensor, or of its first axes or its last one."""
    shape = rng.choice((t.shape, t.shape, t.shape[:1], t.shape[-1:]))
    step = rng.randrange(1, 4)
    return (torch.arange(shape.numel()).reshape(shape) % step == 0).to(t.device)


def set_to_part(a: torch.Tensor, offset: int) -> torch.Tensor:
    if a.untyped_storage().nbytes() < a.itemsize * (offset + 6):
        raise ValueError("it would grow, and what is there then is anything")
    return torch.empty(0, dtype=a.dtype, device=a.device).set_(a.untyped_storage(), offset, (2, 3), (3, 1))


def one_made_wide(a: torch.Tensor, rng: random.Random) -> torch.Tensor:
    axis = axis_of(a, rng)
    return a.narrow(axis, 0, 1).expand([2 if k == axis else n for k, n in enumerate(a.shape)])


def saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def bits_of(a: torch.Tensor) -> torch.Tensor:
    """Its elements as integers, bools as bytes; what is complex has none."""
    types = {1: torch.uint8, 4: torch.int32, 8: torch.int64}
    if a.is_complex():
        raise ValueError("pairs are no integers")
    return a.view(types[a.itemsize])


def gradients(tensors: Tensors, number: int) -> Tensors:
    """Of all that asks for them, by a sum over one of the tensors that depend on it."""
    dependent = [t for t in tensors if t.requires_grad]
    a = dependent[number % len(dependent)]
    leaves = [t for t in tensors if t.is_leaf and t.requires_grad]
    total = (torch.view_as_real(a.resolve_conj()) if a.is_complex() else a).sum()
    return [g for g in torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True) if g is not None]


View = Callable[[torch.Tensor, random.Random], torch.Tensor]
Result = Callable[[torch.Tensor, torch.Tensor, random.Random], Any]
VIEWS: dict[str, View] = {
    "t": lambda a, rng: a.t(),
    "select": lambda a, rng: a.select(axis_of(a, rng), 0),
    "narrow": lambda a, rng: a.narrow(axis_of(a, rng), 1, max(1, a.size(0) // 2)),
    "flatten": lambda a, rng: a.reshape(-1),
    "diagonal": lambda a, rng: a.diagonal(rng.randrange(2)),
    "as_strided": lambda a, rng: a.as_strided((2, 2), (rng.randrange(4), rng.randrange(4)), rng.randrange(3)),
    "expand": lambda a, rng: a.unsqueeze(0).expand(2, *a.shape),
    "expand the last axis": lambda a, rng: a.unsqueeze(-1).expand(*a.shape, 2),
    "one made wide": one_made_wide,
    "every second": lambda a, rng: a[::2],
    "windows": lambda a, rng: a.unfold(axis_of(a, rng), 2, 1),
    "permute": lambda a, rng: a.permute(rng.sample(range(a.dim()), a.dim())),
    "detach": lambda a, rng: a.detach(),
    "data": lambda a, rng: a.data,
    "chunk": lambda a, rng: a.chunk(2, axis_of(a, rng))[-1],
    "view of pairs": lambda a, rng: torch.view_as_complex(a.view(-1, 2)).conj().imag,
    "complex": lambda a, rng: torch.view_as_complex(a.view(-1, 2)),
    "real": lambda a, rng: a.real,
    "imag": lambda a, rng: a.imag,
    "conj": lambda a, rng: a.conj(),
    "parts": lambda a, rng: torch.view_as_real(a),
    "squeeze": lambda a, rng: a.unsqueeze(axis_of(a, rng)).squeeze(),
    "set_": lambda a, rng: set_to_part(a, rng.randrange(2)),
}
RESULTS: dict[str, Result] = {
    "add": lambda a, b, rng: a + b,
    "mul": lambda a, b, rng: a * 0.5,
    "mul by a number": lambda a, b, rng: a * number_for(a, rng),
    "flip": lambda a, b, rng: a.flip(axis_of(a, rng)),
    "where": lambda a, b, rng: torch.where(a > 3, a, b),
    "amax": lambda a, b, rng: a.amax(axis_of(a, rng)),
    "any": lambda a, b, rng: a.any(axis_of(a, rng)),
    "cat": lambda a, b, rng: torch.cat([a, b]),
    "index": lambda a, b, rng: a[torch.tensor([0, -1], device=a.device)],
    "index twice": lambda a, b, rng: a[places(a, rng)][0:2].flatten(),
    "index by a mask": lambda a, b, rng: a[mask_for(a, rng)],
    "index_select": lambda a, b, rng: a.index_select(*along(a, rng)),
    "masked_select": lambda a, b, rng: a.masked_select(mask_for(a, rng)),
    "gather": lambda a, b, rng: a.gather(0, torch.zeros([1] * a.dim(), dtype=torch.long, device=a.device)),
    "clone": lambda a, b, rng: a.clone(),
    "int": lambda a, b, rng: a.int().float(),
    "to": lambda a, b, rng: a.to(dtype_of(rng)) if a.abs().amax() < 128 and a.ge(0).all() else a.bool(),
    "compare": lambda a, b, rng: rng.choice((torch.lt, torch.eq, torch.ne))(a, b),
    "and": lambda a, b, rng: rng.choice((torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor))(a, b),
    "not": lambda a, b, rng: ~a,
    "logical": lambda a, b, rng: torch.logical_xor(a, b),
    "abs": lambda a, b, rng: a.abs() if not a.is_complex() else a.real.abs(),
    "sum": lambda a, b, rng: a.sum(axis_of(a, rng)),
    "bytes": lambda a, b, rng: bits_of(a) + 1 if a.dtype == torch.bool else a + 1,
    "deepcopy": lambda a, b, rng: copy.deepcopy([a])[0],
    "deepcopy of two": lambda a, b, rng: copy.deepcopy([a, b]),
    "pickle": lambda a, b, rng: pickle.loads(pickle.dumps(a)),
    "save": lambda a, b, rng: saved([a])[0],
    "save two": lambda a, b, rng: saved([a, b]),
    "into an empty one": lambda a, b, rng: torch.add(a, b, out=torch.empty(0, dtype=dtype_of(rng), device=a.device)),
    "and into an empty one": lambda a, b, rng: torch.bitwise_or(a, b, out=torch.empty(0, dtype=a.dtype, device=a.device)),
    "leaf": lambda a, b, rng: a.detach().clone().requires_grad_(),
}
WRITES: dict[str, Result] = {
    "add_": lambda a, b, rng: a.add_(b),
    "mul_": lambda a, b, rng: a.mul_(0.5),
    "mul_ by a number": lambda a, b, rng: a.mul_(number_for(a, rng)),
    "sub_": lambda a, b, rng: a.sub_(number_for(a, rng)),
    "copy_": lambda a, b, rng: a.copy_(held_by(a, b)),
    "zero_": lambda a, b, rng: a.zero_(),
    "fill_": lambda a, b, rng: a.fill_(number_for(a, rng)),
    "fill_ by a tensor": lambda a, b, rng: a.fill_(held_by(a, b).flatten()[0]),
    "relu_": lambda a, b, rng: a.relu_(),
    "clamp_": lambda a, b, rng: a.clamp_(-64, 64),
    "index_fill_": lambda a, b, rng: a.index_fill_(*first_along(a, rng), 5),
    "index_fill_ twice": lambda a, b, rng: a.index_fill_(*along(a, rng), number_for(a, rng)),
    "index_add_": lambda a, b, rng: a.index_add_(*ones_along(a, rng)),
    "index_copy_": lambda a, b, rng: a.index_copy_(*ones_along(a, rng)),
    "scatter_": lambda a, b, rng: a.scatter_(0, torch.zeros([min(n, 1) for n in a.shape], dtype=torch.long,
                                                            device=a.device), 1),
    "masked_fill_": lambda a, b, rng: a.masked_fill_(a > 4, -1),
    "masked_fill_ by a mask": lambda a, b, rng: a.masked_fill_(mask_for(a, rng), number_for(a, rng)),
    "setitem": lambda a, b, rng: a.__setitem__(torch.tensor([0, -1], device=a.device), 3),
    "setitem of places": lambda a, b, rng: a.__setitem__(places(a, rng), number_for(a, rng)),
    "setitem by a mask": lambda a, b, rng: a.__setitem__(mask_for(a, rng), number_for(a, rng)),
    "setitem by itself": lambda a, b, rng: a.__setitem__(a, rng.random() < 0.5),
    "setitem to its first": lambda a, b, rng: a.__setitem__(mask_for(a, rng), a.flatten()[:1]),
    "accumulate": lambda a, b, rng: a.index_put_((places(a, rng),), torch.ones((), dtype=a.dtype, device=a.device), True),
    "tril_": lambda a, b, rng: a.tril_(rng.randrange(-1, 2)),
    "triu_": lambda a, b, rng: a.triu_(),
    "and_": lambda a, b, rng: rng.choice((a.bitwise_and_, a.bitwise_or_, a.bitwise_xor_))(b),
    "xor_": lambda a, b, rng: a.__ixor__(1),
    "not_": lambda a, b, rng: a.bitwise_not_(),
    "logical_": lambda a, b, rng: rng.choice((a.logical_and_, a.logical_or_))(b),
    "lt_": lambda a, b, rng: a.lt_(2),
    "foreach": lambda a, b, rng: torch._foreach_add_([a, b], 1),
    "bits": lambda a, b, rng: a.view(torch.int32).bitwise_and_(-256),
    "bytes of bools": lambda a, b, rng: bits_of(a).bitwise_xor_(1) if a.dtype == torch.bool else a.neg_(),
    "copy from the CPU": lambda a, b, rng: a.copy_(torch.full(a.shape, 2.0)),
    "out": lambda a, b, rng: into(a, b),
    "resize_": lambda a, b, rng: resized(a, a.shape[:-1]),
}
WRITES_OF_ONE = {  # tensor alone
    "zero_", "fill_", "fill_ by a tensor", "index_fill_", "index_fill_ twice", "masked_fill_ by a mask", "setitem",
    "setitem of places", "setitem by a mask", "setitem by itself", "setitem to its first", "tril_", "triu_"}


def resized(t: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """In place, unless its memory would have to grow: what is in new memory is anything."""
    return t.resize_(shape) if has_room(t, shape) else t


def has_room(t: torch.Tensor, shape: torch.Size) -> bool:
    return (t.storage_offset() + shape.numel()) * t.itemsize <= t.untyped_storage().nbytes()


def held_by(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """b, unless it may be negative and a holds none: what C++ makes of such floats is undefined."""
    if a.dtype == torch.uint8 and (b.is_floating_point() or b.is_complex()):
        raise ValueError("it may be negative")
    return b


def into(a: torch.Tensor, b: torch.Tensor) -> None:
    """A product into a tensor that may be resized; what was loaded does not grow."""
    if not has_room(b, a.shape):
        raise ValueError("its memory would grow")
    torch.mul(a, 2, out=b)


# ------------------------------------------------------------------------------ what is undefined


def addresses(t: torch.Tensor) -> torch.Tensor:
    """The elements of the storage that each element of the tensor is."""
    at = torch.full((1,), int(t.storage_offset()))
    for size, stride in zip(t.shape, t.stride()):
        at = (at[:, None] + torch.arange(int(size)) * stride).reshape(-1)
    return at


def bytes_of(t: torch.Tensor) -> set[int]:
    return {int(at) * t.itemsize + k for at in addresses(t) for k in range(t.itemsize)}


def meet(written: torch.Tensor, read: torch.Tensor) -> bool:
    """Whether they share memory in a way that PyTorch does not promise to notice."""
    if written.untyped_storage()._cdata != read.untyped_storage()._cdata:
        return False

    def told(t: torch.Tensor) -> Any:
        return t.shape, t.stride(), t.storage_offset(), t.dtype

    return told(written) != told(read) and bool(bytes_of(written) & bytes_of(read))


def is_undefined(name: str, a: torch.Tensor, b: torch.Tensor) -> bool:
    return name in WRITES and name not in WRITES_OF_ONE and meet(a, b)
