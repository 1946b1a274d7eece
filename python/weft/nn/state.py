"""The tensors of a model by name, and files of them.

>>> from weft import Tensor, nn
>>> model = {"first": [Tensor.zeros(3, 2), Tensor.zeros(3)], "second": Tensor.zeros(1, 3)}
>>> {name: t.shape for name, t in nn.state.get_state_dict(model).items()}
{'first.0': (3, 2), 'first.1': (3,), 'second': (1, 3)}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft._core import Tensor
from weft.errors import ShapeError, StateDictError
from weft.nn._numpy_files import npy_load, npy_save, npz_load, npz_save
from weft.nn._parameters import write
from weft.nn._safetensors import safe_load, safe_load_metadata, safe_save
from weft.nn._tar import tar_extract
from weft.nn._tensor_io import TensorIO
from weft.nn._torch_file import torch_load

_MOST_NAMES = 1 << 18
_MOST_LEVELS = 10_000

__all__ = ["TensorIO", "get_parameters", "get_state_dict", "load_state_dict", "npy_load", "npy_save", "npz_load", "npz_save",
           "safe_load", "safe_load_metadata", "safe_save", "tar_extract", "torch_load"]


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type[Any] = Tensor) -> dict[str, Tensor]:
    """The tensors of an object by name: those of its attributes, and of the items of lists, tuples and
    dicts, to any depth. Tensors are found by every name that they have.

    >>> from weft import nn
    >>> sorted(nn.state.get_state_dict([Tensor([1]), {"x": Tensor([2])}]))
    ['0', '1.x']
    """
    result: dict[str, Tensor] = {}
    if isinstance(obj, tensor_type):
        return {prefix.strip("."): obj}
    without: dict[int, Any] = {}  # what was walked and holds no tensor, by id: an object of many names is walked once
    way = [_Walk(obj, prefix.strip("."))]
    above = {id(obj)}  # on the way
    while way:
        walk = way[-1]
        step = next(walk.items, None)
        if step is None:
            way.pop()
            above.discard(id(walk.obj))
            if not walk.is_found:
                without[id(walk.obj)] = walk.obj
            elif way:
                way[-1].is_found = True
            continue
        key, value = step
        if isinstance(value, tensor_type):
            result[_joined([walk.name for walk in way], str(key))] = value
            walk.is_found = True
            if len(result) > _MOST_NAMES:
                raise StateDictError(f"[get_state_dict] more than {_MOST_NAMES} names of tensors")
        elif id(value) in above:  # a model that holds itself: what is above may hold tensors
            walk.is_found = True
        elif id(value) not in without:
            way.append(_Walk(value, str(key)))
            above.add(id(value))
            if len(way) > _MOST_LEVELS:
                raise StateDictError(f"[get_state_dict] more than {_MOST_LEVELS} objects in each other")
    return result


def _joined(names: list[str], last: str) -> str:
    """Without the empty ones at the start."""
    at = 0
    while at < len(names) and not names[at]:
        at += 1
    return ".".join([*names[at:], last])


class _Walk:
    """An object on the way, what is left of it, and its name in the one above."""

    __slots__ = ("is_found", "items", "name", "obj")

    def __init__(self, obj: Any, name: str) -> None:
        self.obj = obj
        self.items = iter(_items(obj))
        self.name = name
        self.is_found = False


def _items(obj: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(obj, Mapping):
        return obj.items()
    if isinstance(obj, (list, tuple)):
        return zip(getattr(obj, "_fields", range(len(obj))), obj)
    return getattr(obj, "__dict__", {}).items() if not isinstance(obj, type) else ()


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of an object, each once."""
    return list({id(tensor): tensor for tensor in get_state_dict(obj).values()}.values())


def load_state_dict(model: Any, state_dict: Mapping[str, Tensor], strict: bool = True, verbose: bool = True,
                    realize: bool = True) -> list[Tensor]:
    """Gives the tensors of a model the values of the same names, in the dtype that they have; returns them.
    With strict, which is checked first, both have the same names; without, others are left out, and told
    of with verbose. No name or shape that is wrong changes anything.

    >>> from weft import nn
    >>> model = {"weight": Tensor.zeros(2)}
    >>> _ = nn.state.load_state_dict(model, {"weight": Tensor([3.0, 4.0])})
    >>> model["weight"].tolist()
    [3.0, 4.0]
    """
    mine = get_state_dict(model)
    missing = [name for name in mine if name not in state_dict]
    unknown = [name for name in state_dict if name not in mine]
    problems = [f"{what}: {_listed(names)}" for what, names in (("missing", missing), ("unknown", unknown)) if names]
    if problems and strict:
        raise StateDictError(f"[load_state_dict] {'; '.join(problems)}; with strict=False these are left out")
    pairs = [(name, tensor, state_dict[name]) for name, tensor in mine.items() if name in state_dict]
    for name, tensor, value in pairs:
        if not isinstance(value, Tensor):
            raise TypeError(f"[load_state_dict] {name} is a {type(value).__name__}; a Tensor is needed")
        if tensor.shape != value.shape and {tensor.shape, value.shape} != {(), (1,)}:
            raise ShapeError(f"[load_state_dict] {name} has shape {value.shape}; the model's is {tensor.shape}")
    if problems and verbose:
        print(f"[load_state_dict] left out, {'; '.join(problems)}")
    loaded = [write(tensor, value) for _, tensor, value in pairs]
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
