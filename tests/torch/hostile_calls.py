"""One process of the runner of hostile calls: each on both devices."""

from __future__ import annotations

import argparse
import collections
import faulthandler
import fnmatch
import functools
import gc
import json
import mmap
import os
import pathlib
import random
import resource
import warnings
from typing import Any

import torch
import weft.torch  # noqa: F401
from hostile_arguments import Arguments, made
from hostile_exceptions import EXCEPTIONS, NOT_CALLED, NO_VALUES, RANDOM
from torch.utils._pytree import tree_leaves, tree_map

MEMORY = 3 << 29  # bytes that a process may have beside those it begins with
MOST_READ = 1 << 16  # elements: more are computed, and not looked at
ATTEMPTS = 12  # at arguments that the CPU accepts
HOSTILE = 0.7  # of the calls
TOO_LARGE = ("allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed",
             "no addresses are left", "bad_alloc", "invalid_argument")
TOLERANCES = {torch.float16: 2e-2, torch.bfloat16: 8e-2, torch.float32: 1e-3, torch.complex64: 1e-3, torch.complex32: 2e-2}


def run_shard(given: argparse.Namespace, path: pathlib.Path, first: int, on_weft_alone: dict[str, Any] | None) -> None:
    limit_memory()
    ops = operators(given.only)
    counts: collections.Counter[str] = collections.Counter()
    log = CallLog(path.with_suffix(".now"), counts)
    with path.open("a") as file:
        for number in range(first, given.first + given.calls, given.shards):
            faulthandler.dump_traceback_later(given.time_limit, exit=True)
            if on_weft_alone is not None and on_weft_alone["number"] == number:
                result = call_on_weft(on_weft_alone, given.seed, ops, log)
            else:
                result = call(number, given.seed, ops, log)
            if result["verdict"] in ("failed", "exceptions"):
                print(json.dumps(result), file=file, flush=True)
            else:
                counts[result["verdict"]] += 1
            if number // given.shards % 256 == 0:
                print(json.dumps({"counts": counts}), file=file, flush=True)
                counts.clear()
                gc.collect()
        print(json.dumps({"counts": counts}), file=file, flush=True)
    faulthandler.cancel_dump_traceback_later()


def run_one(given: argparse.Namespace) -> int:
    limit_memory()
    result = call(given.call, given.seed, operators(given.only), None)
    print("\n".join(f"{key}: {value}" for key, value in result.items()))
    return int(result["verdict"] == "failed")


def prepare() -> None:
    """All that is imported late is imported now: a child begins with it."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    torch.set_num_threads(1)
    operators("")
    torch.special.airy_ai(torch.ones(1, device="weft"))  # has no kernel of weft: decompositions are registered


def limit_memory() -> None:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@functools.cache
def registered() -> list[str]:
    """The operators that have a kernel of the device, before decompositions are registered."""
    return sorted(torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"))


def operators(only: str) -> list[torch._ops.OpOverload]:
    """All that the device registers."""
    chosen = only.split(",") if only else None
    ops = []
    for name in registered():
        short = name.removeprefix("aten::")
        base, _, overload = short.partition(".")
        if not name.startswith("aten::") or any(fnmatch.fnmatch(short, pattern) for pattern in NOT_CALLED):
            continue
        if chosen is None or short in chosen or base in chosen:
            ops.append(getattr(getattr(torch.ops.aten, base), overload or "default"))
    return ops


class CallLog:
    """What is being called, in memory that outlives the process, with the counts that are not among the results yet."""

    def __init__(self, path: pathlib.Path, counts: collections.Counter[str]) -> None:
        self.counts = counts
        with path.open("wb+") as file:
            file.truncate(1 << 16)
            self.memory = mmap.mmap(file.fileno(), 1 << 16)

    def write(self, call: dict[str, Any]) -> None:
        text = json.dumps({**call, "counts": self.counts}).encode()
        self.memory[:len(text) + 1] = text + b"\0"


def call(number: int, seed: int, ops: list[torch._ops.OpOverload], log: CallLog | None) -> dict[str, Any]:
    rng, op, result = begun(number, seed, ops)
    for attempt in range(ATTEMPTS):
        maker = Arguments(op._schema, rng)
        arguments = maker.plausible()
        note(result, log, arguments, attempt=attempt)
        expected = Outcome(op, arguments, "cpu")
        if expected.error is None:
            break
    if rng.random() < HOSTILE:
        arguments = maker.hostile(arguments)
        note(result, log, arguments, is_hostile=True)
        expected = Outcome(op, arguments, "cpu")
    note(result, log, arguments, on="weft")
    actual = Outcome(op, arguments, "weft")
    kind, why = difference(result["op"], expected, actual)
    verdict = "agreed" if expected.error is None else "raised on both"
    if kind:
        verdict = "failed"
        for pattern, of_kind, said, reason in EXCEPTIONS:
            if fnmatch.fnmatch(result["op"], pattern) and kind == of_kind and said in why:
                verdict, why = "exceptions", f"{reason}: {why}"
                break
    return {**result, "verdict": verdict, "kind": kind, "why": why}


def call_on_weft(crashed: dict[str, Any], seed: int, ops: list[torch._ops.OpOverload], log: CallLog) -> dict[str, Any]:
    """A call that the CPU did not survive: the device must."""
    rng, op, result = begun(crashed["number"], seed, ops)
    for _ in range(crashed["attempt"] + 1):
        maker = Arguments(op._schema, rng)
        arguments = maker.plausible()
    if crashed["is_hostile"]:
        rng.random()
        arguments = maker.hostile(arguments)
    note(result, log, arguments, on="weft")
    Outcome(op, arguments, "weft")
    return {**result, "verdict": "exceptions", "kind": "cpu", "why": "the CPU ends the process"}


def begun(number: int, seed: int, ops: list[torch._ops.OpOverload]) -> tuple[random.Random, Any, dict[str, Any]]:
    rng = random.Random(f"{seed} {number}")
    op = rng.choice(ops)
    overload = op._schema.overload_name
    name = op._schema.name.removeprefix("aten::") + ("." + overload if overload else "")
    return rng, op, {"number": number, "op": name, "on": "cpu", "attempt": 0, "is_hostile": False}


def note(result: dict[str, Any], log: CallLog | None, arguments: dict[str, Any], **what: Any) -> None:
    """What is called next, for whoever finds that it crashed."""
    result.update(text=f"{result['op']}({', '.join(f'{k}={v}' for k, v in arguments.items())})"[:3000], **what)
    if log is not None:
        log.write(result)


class Outcome:
    """What a call gives, and leaves in the arguments that it writes: the values, or an error."""

    def __init__(self, op: torch._ops.OpOverload, arguments: dict[str, Any], device: str) -> None:
        self.error: Exception | None = None
        self.is_at_call = True
        self.values: list[Any] = []
        torch.manual_seed(0)
        try:
            given = {name: made(x, device) for name, x in arguments.items()}
            positional = [given.pop(a.name) for a in op._schema.arguments if a.name in given and not a.kwarg_only
                          and not self.skips(op, a.name, given)]
            keywords = dict(given)
            written = [x for a, x in zip(op._schema.arguments, positional) if a.is_write]
            written += [keywords[a.name] for a in op._schema.arguments if a.kwarg_only and a.is_write and a.name in keywords]
            results = op(*positional, **keywords)
            self.is_at_call = False
            self.values = [read(x) for x in tree_leaves([results, written])]
        except Exception as error:  # noqa: BLE001  the other device must raise it, too
            self.error = error

    @staticmethod
    def skips(op: torch._ops.OpOverload, name: str, given: dict[str, Any]) -> bool:
        """An argument before it was left out: then it is named."""
        for a in op._schema.arguments:
            if a.name == name:
                return False
            if a.name not in given and a.has_default_value():
                return True
        return False


def read(x: Any) -> Any:
    """On the CPU; of a tensor with many elements, as it is."""
    if isinstance(x, torch.Tensor) and x.device.type == "weft" and x.numel() <= MOST_READ:
        if x.untyped_storage().nbytes() <= 16 * MOST_READ:
            return x.cpu()
    return x


def difference(name: str, expected: Outcome, actual: Outcome) -> tuple[str, str]:
    """The kind and what it is; empty where there is none."""
    if expected.error is not None or actual.error is not None:
        if actual.error is None:
            if any(said in str(expected.error) for said in TOO_LARGE) or isinstance(expected.error, MemoryError):
                return "", ""
            return "computes", f"not {type(expected.error).__name__}: {expected.error}"
        if expected.error is None:
            if any(said in str(actual.error) for said in TOO_LARGE):
                return "memory", f"{type(actual.error).__name__}: {actual.error}"
            when = "the call" if actual.is_at_call else "the read"
            return "raises", f"{type(actual.error).__name__} at {when}: {actual.error}"
        if "INTERNAL" in str(actual.error) and "INTERNAL" not in str(expected.error):
            return "internal", str(actual.error)
        return "", ""
    if len(expected.values) != len(actual.values):
        return "differs", f"{len(actual.values)} results instead of {len(expected.values)}"
    base = name.partition(".")[0].rstrip("_")
    has_values = not any(fnmatch.fnmatch(base, p) for p in (*RANDOM, *NO_VALUES))
    for e, a in zip(expected.values, actual.values):
        if why := difference_of(e, a, has_values):
            return "differs", why
    return "", ""


def difference_of(e: Any, a: Any, has_values: bool) -> str:
    if not isinstance(e, torch.Tensor) or not isinstance(a, torch.Tensor):
        same = type(e) is type(a) and (not has_values or e == a or (e != e and a != a) or abs(e - a) <= 1e-4 * (1 + abs(e)))
        return "" if same else f"{a} instead of {e}"
    if (e.shape, e.dtype) != (a.shape, a.dtype):
        return f"{tuple(a.shape)} of {a.dtype} instead of {tuple(e.shape)} of {e.dtype}"
    if not has_values or e.numel() > MOST_READ or a.device.type == "weft":
        return ""
    relative = TOLERANCES.get(e.dtype, 1e-6 if e.dtype.is_floating_point or e.dtype.is_complex else 0)
    try:
        torch.testing.assert_close(a, e, rtol=relative, atol=relative, equal_nan=True)
    except AssertionError as error:
        return f"{error}\n{str(a.flatten()[:12])} instead of {str(e.flatten()[:12])}"
    except RuntimeError:  # no comparison for the dtype
        return "" if bytes(a.untyped_storage()) == bytes(e.untyped_storage()) else "other bits"
    return ""
