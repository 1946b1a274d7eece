"""Tensors copied and pickled: those that share memory share it afterwards."""

from __future__ import annotations

import enum
import pickle
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from weft._core import DType, Tensor, from_bytes, memory_owners, tensor_identity, whole_memory
from weft.errors import DTypeError, Error


def deepcopy(tensor: Tensor, memo: dict[Any, Any]) -> Tensor:
    """Tensor.__deepcopy__. Nothing is computed: the new memory has the version of the old one."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise Error("[deepcopy] this was computed from tensors that require gradients; detach it or clone it")
    address, offset, strides, shape, dtype = tensor_identity(tensor)
    key = ("weft.Tensor", address)
    if key not in memo:
        old = whole_memory(tensor)
        memo[key] = old, old.detach().clone()  # the old one keeps its address
    whole = memo[key][1]
    copy = _tied(whole.as_strided(shape, strides, offset).bitcast(dtype), _tie(tensor))
    memo[id(tensor)] = copy
    if tensor.requires_grad and tensor.grad is not None:
        copy.grad = deepcopy(tensor.grad, memo)
    return copy


class _Tie(enum.IntEnum):
    """Of a handle to gradients: nothing said, collecting them, detached from memory that does, without them."""

    NONE = 0
    REQUIRED = 1
    DETACHED = 2
    EXCLUDED = 3


def _tie(tensor: Tensor) -> _Tie:
    if tensor.requires_grad:
        return _Tie.REQUIRED
    if whole_memory(tensor).requires_grad:
        return _Tie.DETACHED
    return _Tie.EXCLUDED if tensor.dtype.is_float and tensor.requires_grad is False else _Tie.NONE


def _tied(tensor: Tensor, tie: int) -> Tensor:
    if tie in (_Tie.REQUIRED, _Tie.EXCLUDED):
        tensor.requires_grad = tie == _Tie.REQUIRED
    return tensor.detach() if tie == _Tie.DETACHED else tensor


class _Memory:
    """The memory of tensors, for the time that a pickler remembers it: one object, whoever asks."""

    __slots__ = ("__weakref__", "whole")

    def __init__(self, whole: Tensor) -> None:
        self.whole = whole

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        return _memory, _parts(self.whole, protocol)


_memories: WeakValueDictionary[Any, _Memory] = WeakValueDictionary()


def _parts(whole: Tensor, protocol: int) -> tuple[Any, ...]:
    flat = whole.detach().numpy(copy=False).reshape(-1).view(np.uint8)
    data = pickle.PickleBuffer(flat.data) if protocol >= 5 else flat.tobytes()
    return data, whole.dtype.name, whole.device


def _memory(data: Any, dtype: str, device: str) -> Tensor:
    kind = DType(dtype)
    return from_bytes(data, kind, [memoryview(data).nbytes // kind.itemsize], device)


def reduce(tensor: Tensor, protocol: int) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """Tensor.__reduce_ex__. A handle that is alone on its memory takes along what it sees of it."""
    address, offset, strides, shape, dtype = tensor_identity(tensor)
    tie = _tie(tensor)
    if memory_owners(tensor) == 1:
        whole, strides, offset = _Memory(tensor.detach()), None, 0
    else:
        whole = _memories.get(address) or _Memory(whole_memory(tensor))
        _memories[address] = whole
    return _tensor, (whole, tensor.dtype.name, shape, strides, offset, int(tie))


def _tensor(whole: Tensor, dtype: str, shape: Any, strides: Any, offset: int, tie: int) -> Tensor:
    if strides is None:
        return _tied(whole.reshape(shape), tie)
    if DType(dtype).itemsize != whole.dtype.itemsize:
        raise DTypeError(f"[pickle] a tensor of {dtype} has no memory of {whole.dtype.name}: bitcast needs the same width")
    return _tied(whole.as_strided(shape, strides, offset).bitcast(dtype), tie)
