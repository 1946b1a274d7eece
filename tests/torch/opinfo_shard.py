"""One process of the runner of OpInfos: operators one after the other, each on its samples, on both devices."""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import weft.torch  # noqa: F401
from opinfo import CRASHED, FAILED, PASSED, SKIPPED, chosen, read_results
from opinfo_exceptions import (
    CANCELLED, CPU_ARGUMENTS, CPU_WRONG, OTHER_ERRORS, RANDOM, TIES, UNINITIALISED, WRITES_PAST,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

# (relative, absolute): what two orders of adding up differ by.
TOLERANCES = {torch.float32: (1e-3, 1e-4), torch.complex64: (1e-3, 1e-4), torch.float16: (1e-2, 1e-2),
              torch.bfloat16: (5e-2, 5e-2)}
DEFAULT_TOLERANCE = (1e-6, 1e-7)
NARROW = (torch.float16, torch.bfloat16)
ROUNDED = (*NARROW, torch.float32)
MOST_NOISE = 10  # tolerances that the CPU's own rounding error counts for in narrow floats, at most


def run_shard(given: argparse.Namespace) -> None:
    """Writes a line that says that an operator crashed before it is begun, and its result after it."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    torch.set_num_threads(1)
    dtype = getattr(torch, given.dtype)
    done = read_results(given.results)
    with given.results.open("a") as file:
        for op in operators(given, dtype)[given.shard::given.shards]:
            name = op.full_name
            if name in done:
                continue
            print(json.dumps({"op": name, "verdict": CRASHED, "fallback": {}}), file=file, flush=True)
            faulthandler.dump_traceback_later(2 * given.time_limit + 30, exit=True)
            result = result_of(op, dtype, given)
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps(result), file=file, flush=True)


def operators(given: argparse.Namespace, dtype: torch.dtype) -> list[OpInfo]:
    all_of_dtype = [op for op in op_db if dtype in op.supported_dtypes("cpu")]
    names = set(given.only.split(",")) if given.only else chosen([op.full_name for op in all_of_dtype], given.one_in,
                                                                 given.seed)
    return [op for op in all_of_dtype if op.full_name in names]


def result_of(op: OpInfo, dtype: torch.dtype, given: argparse.Namespace) -> dict[str, Any]:
    name = op.full_name
    why = CPU_WRONG.get(name)
    if why:
        return {"op": name, "verdict": SKIPPED, "why": why, "fallback": {}}
    start = time.monotonic()
    result: dict[str, Any] = {"op": name, "samples": 0, "strides": 0, "errors": [], "cut": False}
    fallback: collections.Counter[str] = collections.Counter()
    for form in given.what.split(","):
        torch.weft.reset_counters()
        for number, sample in enumerate(samples_of(op, form, dtype)):
            if time.monotonic() - start > given.time_limit or number >= given.most_samples:
                result["cut"] = True
                break
            result["samples"] += 1
            if error := difference(op, form, sample, result):
                result["errors"].append([form, number, error[:400]])
        if not form.startswith("expanded"):  # those are the CPU's
            fallback.update(torch.weft.counters()["fallback"])
    return {**result, "verdict": FAILED if result["errors"] else PASSED, "fallback": fallback,
            "seconds": round(time.monotonic() - start, 2)}


def samples_of(op: OpInfo, form: str, dtype: torch.dtype) -> Iterator[SampleInput]:
    has = {"fwd": True, "inplace": op.inplace_variant is not None, "out": op.supports_out,
           "expanded": op.inplace_variant is not None,
           "expanded-out": op.supports_out and op.full_name not in WRITES_PAST and op.name not in TIES,
           "grad": op.supports_autograd and (dtype.is_floating_point or dtype.is_complex),
           "errors": op.error_inputs_func is not None and dtype is torch.float32}  # they have dtypes of their own
    if not has[form]:
        return
    torch.manual_seed(0)
    if form == "errors":
        for bad in op.error_inputs("cpu"):
            bad.sample_input.name = bad.error_regex
            yield bad.sample_input
        return
    for sample in op.sample_inputs("cpu", dtype, requires_grad=form == "grad"):
        yield sample.transform(leaf) if form == "grad" else sample


def leaf(t: Any) -> Any:
    """A part of a tensor that was taken while no graph was recorded asks for gradients and gets none: as a tensor of its
    own it gets them."""
    is_part = isinstance(t, torch.Tensor) and t.is_leaf and t.requires_grad and t._is_view()
    return t.detach().requires_grad_() if is_part else t


def on_weft(sample: SampleInput) -> SampleInput:
    """The sample, on the device."""
    def renamed(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x
        if isinstance(x, torch.Generator):
            return torch.Generator("weft").manual_seed(x.initial_seed())
        return "weft" if x == "cpu" or isinstance(x, torch.device) and x.type == "cpu" else x

    there = sample.transform(Moved())
    there.args = tree_map(renamed, tuple(there.args))
    there.kwargs = tree_map(renamed, dict(there.kwargs))
    return there


class Moved:
    """Tensors on the device, with their strides and all of their storage: those that shared it share it there, and one
    that comes twice is one there."""

    def __init__(self) -> None:
        self.storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self.tensors: dict[int, torch.Tensor] = {}

    def __call__(self, t: Any) -> Any:
        if not isinstance(t, torch.Tensor) or not t.is_cpu:
            return t
        if id(t) not in self.tensors:
            self.tensors[id(t)] = self.moved(t)
        return self.tensors[id(t)]

    def moved(self, t: torch.Tensor) -> torch.Tensor:
        bare = t.detach()
        if t.layout != torch.strided or bare.is_conj() or bare.is_neg():
            return bare.to("weft").requires_grad_(t.requires_grad)
        storage = bare.untyped_storage()
        key = (storage._cdata, t.dtype)
        if key not in self.storages:
            self.storages[key] = torch.empty(0, dtype=t.dtype).set_(storage).to("weft")
        there = torch.empty(0, dtype=t.dtype, device="weft").set_(self.storages[key].untyped_storage())
        there = there.as_strided(t.shape, t.stride(), t.storage_offset())
        return there.requires_grad_(t.requires_grad)


def has_moved(sample: SampleInput) -> bool:
    """Whether the device is named by anything in it."""
    return any(x == "weft" if isinstance(x, str) else isinstance(x, torch.Tensor) and x.is_weft
               for x in tree_leaves((sample.input, sample.args, sample.kwargs)))


def difference(op: OpInfo, form: str, sample: SampleInput, result: dict[str, Any]) -> str:
    """What is not as on the CPU; empty if nothing."""
    program = FORMS[form]
    there = on_weft(sample)
    if op.name in CPU_ARGUMENTS:
        there.args = sample.args
    if not has_moved(there):
        return ""
    expected, error = outcome(lambda: program(op, sample))
    actual, weft_error = outcome(lambda: program(op, there))
    if error or weft_error:
        if not weft_error:
            return f"raises nothing instead of {type(error).__name__}: {error}"
        if not error:
            return f"raises {type(weft_error).__name__}: {weft_error}"
        is_same = type(error) is type(weft_error) and (form != "errors" or says_the_same(sample.name, error, weft_error))
        return "" if is_same or form == "errors" and op.full_name in OTHER_ERRORS else (
            f"raises {type(weft_error).__name__}: {weft_error} instead of {type(error).__name__}: {error}")
    if op.name in TIES and sample.input.unique().numel() < sample.input.numel():
        expected, actual = untied(op.name, sample, expected), untied(op.name, there, actual)
    try:
        if op.full_name in RANDOM and not matches(expected, actual):
            again, _ = outcome(lambda: program(op, there))
            compare(tree_map(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t, again), actual, result)
            compare(expected, actual, result, values=False)
        else:
            compare(expected, actual, result, values=op.name not in UNINITIALISED)
    except (AssertionError, RuntimeError, NotImplementedError) as e:
        return "" if is_nearer(op, form, sample, expected, actual) else str(e)
    return ""


def untied(name: str, sample: SampleInput, result: Any) -> Any:
    """With the elements that indices name instead of these. Gradients go to any of equal elements: they are put in
    order."""
    if isinstance(result, list):
        values, gradients = result
        return [untied(name, sample, values), [g.flatten().sort().values for g in gradients]]
    at, x = TIES[name], sample.input.detach()
    if at is None or x.dim() == 0:
        return result
    *others, index = result if isinstance(result, tuple) else [result]
    dim = sample.kwargs.get("dim", sample.args[at] if len(sample.args) > at else -1)
    return (*others, torch.take_along_dim(x, index if index.dim() == x.dim() else index.unsqueeze(dim), dim))


def is_nearer(op: OpInfo, form: str, sample: SampleInput, expected: Any, actual: Any) -> bool:
    """Whether floats are within the tolerance of those of float64, narrow ones at least as near as the CPU's; all else is
    as there."""
    tensors = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
    if op.name in TIES or not any(t.dtype in ROUNDED for t in tensors):
        return False
    wide = sample.transform(widened)
    exact, error = outcome(lambda: FORMS[form](op, wide))
    if error:
        return False
    try:
        compare(expected, actual, {"strides": 0}, values=False)
        for x, e, a in zip(tree_leaves(exact), tree_leaves(expected), tree_leaves(actual), strict=True):
            if isinstance(e, torch.Tensor) and e.dtype in ROUNDED:
                assert is_as_near(x.detach(), e.detach(), a.detach().cpu(), op.name in CANCELLED)
            else:
                compare(e, a, {"strides": 0})
    except (AssertionError, ValueError):
        return False
    return True


def widened(t: Any) -> Any:
    if not isinstance(t, torch.Tensor) or t.dtype not in ROUNDED:
        return t
    return t.detach().double().requires_grad_(t.requires_grad)


def is_as_near(exact: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, by_largest: bool) -> bool:
    relative, absolute = tolerance(expected.dtype)
    allowed = absolute + relative * exact.abs()
    if expected.dtype in NARROW:
        noise = (expected.double() - exact).abs().nan_to_num(0)
        allowed = allowed + torch.minimum(noise.max() if by_largest and noise.numel() else noise, MOST_NOISE * allowed)
    is_good = ((actual.double() - exact).abs() <= allowed) | (actual.double() == exact) | (actual.isnan() & exact.isnan())
    return bool(is_good.all())


def says_the_same(pattern: str, error: Exception, weft_error: Exception) -> bool:
    """Whether it says what PyTorch's tests ask for; those of some samples name another device."""
    return bool(re.search(pattern, str(weft_error))) or not re.search(pattern, str(error))


def outcome(program: Callable[[], Any]) -> tuple[Any, Exception | None]:
    torch.manual_seed(0)
    try:
        return program(), None
    except Exception as error:  # noqa: BLE001  the other device must raise it, too
        return None, error


def forward(op: OpInfo, sample: SampleInput) -> Any:
    return op(sample.input, *sample.args, **sample.kwargs)


def values(op: OpInfo, sample: SampleInput) -> Any:
    """Some errors are in values, which are looked at when they are asked for."""
    result = forward(op, sample)
    tree_map(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t, result)
    return result


def in_place(op: OpInfo, sample: SampleInput) -> Any:
    sample = sample.transform(lambda t: t.clone() if isinstance(t, torch.Tensor) else t)
    return op.inplace_variant(sample.input, *sample.args, **sample.kwargs)


def into_outputs(op: OpInfo, sample: SampleInput) -> Any:
    outputs = tree_map(lambda t: torch.empty_like(t) if isinstance(t, torch.Tensor) else t, forward(op, sample))
    op(sample.input, *sample.args, **{**sample.kwargs, "out": outputs})
    return outputs


def expanded(t: torch.Tensor, axis: int) -> torch.Tensor:
    """A tensor of this shape of which an axis repeats the first of its elements."""
    return t.detach().narrow(axis, 0, 1).clone().expand(t.shape) if t.dim() else t.detach().clone()


def in_place_expanded(op: OpInfo, sample: SampleInput) -> Any:
    """Through an axis that is expanded, the first or the last; that it raises is a result, too."""
    return [told(lambda a=axis: op.inplace_variant(expanded(sample.input, a), *sample.args, **sample.kwargs))
            for axis in (0, -1)]


def told(program: Callable[[], Any]) -> Any:
    result, error = outcome(program)
    return type(error) if error else result


def into_expanded_outputs(op: OpInfo, sample: SampleInput) -> Any:
    """As in_place_expanded, of outputs."""
    results = forward(op, sample)

    def written(axis: int) -> Any:
        outputs = tree_map(lambda t: expanded(t, axis) if isinstance(t, torch.Tensor) else t, results)
        op(sample.input, *sample.args, **{**sample.kwargs, "out": outputs})
        return outputs

    return [told(lambda a=axis: written(a)) for axis in (0, -1)]


def gradients(op: OpInfo, sample: SampleInput) -> Any:
    result = forward(op, sample)
    if sample.output_process_fn_grad:
        result = sample.output_process_fn_grad(result)
    outputs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    inputs = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs))
              if isinstance(t, torch.Tensor) and t.requires_grad]
    if not outputs or not inputs:
        return result
    generator = torch.Generator().manual_seed(1)
    # The same numbers in all dtypes.
    weights = [(torch.randint(0, 65, t.shape, generator=generator) / 64).to(t.dtype).to(t.device) for t in outputs]
    return [result, torch.autograd.grad(outputs, inputs, weights, allow_unused=True)]


FORMS = {"fwd": forward, "errors": values, "inplace": in_place, "out": into_outputs, "grad": gradients,
         "expanded": in_place_expanded, "expanded-out": into_expanded_outputs}


def matches(expected: Any, actual: Any) -> bool:
    try:
        compare(expected, actual, {"strides": 0})
    except AssertionError:
        return False
    return True


def compare(expected: Any, actual: Any, result: dict[str, Any], values: bool = True) -> None:
    """Raises AssertionError where they differ; counts strides that do."""
    here, there = tree_leaves(expected), tree_leaves(actual)
    assert len(here) == len(there), f"{len(there)} results instead of {len(here)}"
    for e, a in zip(here, there):
        if isinstance(e, torch.Tensor):
            assert isinstance(a, torch.Tensor), f"{a} instead of a tensor"
            assert (e.shape, e.dtype) == (a.shape, a.dtype), \
                f"{tuple(a.shape)} of {a.dtype} instead of {tuple(e.shape)} of {e.dtype}"
            assert e.layout == a.layout, f"{a.layout} instead of {e.layout}"
            assert a.device.type == "weft", f"is on {a.device}"
            if e.layout == torch.strided:
                result["strides"] += e.numel() > 0 and e.stride() != a.stride()
            if values:
                relative, absolute = tolerance(e.dtype)
                torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=relative, atol=absolute, equal_nan=True)
        elif isinstance(e, (float, complex)):
            assert not values or e != e or abs(e - a) <= 1e-4 * max(1, abs(e)), f"{a} instead of {e}"
        elif not isinstance(e, (torch.device, str)):
            assert not values or e == a, f"{a} instead of {e}"


def tolerance(dtype: torch.dtype) -> tuple[float, float]:
    return TOLERANCES.get(dtype, DEFAULT_TOLERANCE if dtype.is_floating_point or dtype.is_complex else (0, 0))
