#!/usr/bin/env python3
"""Writes hostile_seeds.json: calls of PyTorch's operators that the CPU accepts, as OpInfos and their gradients make them.

Of each operator that device weft registers, one call of each choice of ranks, up to three.
"""

from __future__ import annotations

import collections
import json
import pathlib
import warnings
from typing import Any

import torch
import weft.torch  # noqa: F401
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MOST_CALLS, MOST_SAMPLES, MOST_ELEMENTS = 3, 13, 4000


class Unsuited(Exception):
    """An argument that is not described."""


def described(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        if x.numel() > MOST_ELEMENTS or x.layout != torch.strided:
            raise Unsuited
        spec: dict[str, Any] = {"shape": list(x.shape)}
        if x.dtype != torch.float32:
            spec["dtype"] = str(x.dtype).removeprefix("torch.")
        if x.numel() and not (x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool):
            spec["low"], spec["high"] = int(x.min()), int(x.max())
        return spec
    if isinstance(x, (list, tuple)):
        return [described(item) for item in x]
    if isinstance(x, torch.dtype):
        return str(x)
    if isinstance(x, (int, float, bool, str, type(None))):
        return x
    raise Unsuited


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, dict[str, Any]] = collections.defaultdict(dict)

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        given = {**{a.name: x for a, x in zip(op._schema.arguments, args)}, **(kwargs or {})}
        left_out = {a.name for a in op._schema.arguments
                    if a.is_out or any(kind in str(a.real_type) for kind in ("Generator", "Layout", "Device"))}
        try:
            call = {name: described(x) for name, x in given.items() if name not in left_out}
        except Unsuited:
            return result
        ranks = json.dumps({name: len(x["shape"]) if isinstance(x, dict) else 0 for name, x in call.items()})
        self.calls[op._schema.name.removeprefix("aten::").rstrip("_")].setdefault(ranks, call)
        return result


def record(op: Any, recorder: Recorder, requires_grad: bool) -> None:
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=requires_grad)):
        if number == MOST_SAMPLES:
            return
        with recorder:
            result = op(sample.input, *sample.args, **sample.kwargs)
            outputs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
            if outputs:
                torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])


def main() -> None:
    warnings.simplefilter("ignore")
    recorder = Recorder()
    for op in op_db:
        for requires_grad in (True, False) if op.supports_autograd else (False,):
            try:
                record(op, recorder, requires_grad)
            except Exception:  # noqa: BLE001  a sample that PyTorch's CPU does not take
                continue
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    registered = {name.removeprefix("aten::").partition(".")[0].rstrip("_") for name in names}
    entries = []
    for name in sorted(set(recorder.calls) & registered):
        calls = list(recorder.calls[name].values())[:MOST_CALLS]
        entries.append(json.dumps(name) + ": [\n    " + ",\n    ".join(map(json.dumps, calls)) + "]")
    path = pathlib.Path(__file__).with_name("hostile_seeds.json")
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


if __name__ == "__main__":
    main()
