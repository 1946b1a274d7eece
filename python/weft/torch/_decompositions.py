"""Operators that have no kernel of weft, made of those that have: PyTorch's own decompositions.

They are registered when an operator without a kernel is first met, since PyTorch's tables take a second to import.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _C

# Decompositions of these call each other.
_CYCLIC = {"masked_fill.Scalar", "masked_fill.Tensor", "masked_fill_.Scalar", "masked_fill_.Tensor", "where.self",
           "where.self_out"}
_COMPOSITE_KEYS = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")

_library: torch.library.Library | None = None
_decomposed: set[str] = set()


def register() -> None:
    _C.set_decomposer(_register_all)


def decomposed() -> set[str]:
    """The operators that are decomposed."""
    return set(_decomposed)


def _register_all() -> None:
    global _library
    _library = torch.library.Library("aten", "IMPL", "PrivateUse1")  # type: ignore[no-untyped-call]
    table = _table()
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::") or _has_kernel(name):
            continue
        short = name.removeprefix("aten::")
        kernel = table.get(short) or _into_outputs(name, table)
        if kernel is not None:
            _library.impl(short, kernel)  # type: ignore[no-untyped-call]
            _decomposed.add(short)


def _has_kernel(name: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1") or _is_composite(name)


def _is_composite(name: str) -> bool:
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _COMPOSITE_KEYS)


def _table() -> dict[str, Callable[..., Any]]:
    """Decompositions by the names of operators. Core operators are left out: their decompositions, if any, are made of
    primitives that PyTorch makes of core operators; so are composite ones, which need none."""
    from torch._decomp import core_aten_decompositions

    table = {}
    for op, decomposition in core_aten_decompositions().items():  # type: ignore[no-untyped-call]
        if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten" or torch.Tag.core in op.tags:
            continue
        name = _full_name(op._schema)
        if not _is_composite(name) and name.removeprefix("aten::") not in _CYCLIC:
            table[name.removeprefix("aten::")] = decomposition
    return table


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _into_outputs(name: str, table: dict[str, Callable[..., Any]]) -> Callable[..., Any] | None:
    """The out= form of an operator whose functional form has a decomposition."""
    base, _, overload = name.partition(".")
    schema = torch._C._get_schema(base, overload)
    outputs = [argument.name for argument in schema.arguments if argument.is_out]
    inputs = [(argument.name, str(argument.type)) for argument in schema.arguments if not argument.is_out]
    for functional in torch._C._jit_get_schemas_for_operator(base) if outputs else ():
        decomposition = table.get(_full_name(functional).removeprefix("aten::"))
        if decomposition is not None and [(a.name, str(a.type)) for a in functional.arguments] == inputs:
            return _writing(decomposition, outputs)
    return None


def _writing(decomposition: Callable[..., Any], outputs: list[str]) -> Callable[..., Any]:
    def kernel(*arguments: Any, **keywords: Any) -> Any:
        from torch._prims_common.wrappers import _maybe_resize_out, _safe_copy_out

        tensors = [keywords.pop(name) for name in outputs]
        results = decomposition(*arguments, **keywords)
        for tensor, result in zip(tensors, results if isinstance(results, (tuple, list)) else [results]):
            _maybe_resize_out(tensor, result.shape)
            _safe_copy_out(copy_from=result, copy_to=tensor)
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    return kernel
