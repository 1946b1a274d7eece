"""The alternative to a decision, built and timed: `weft explain --measure`."""

from __future__ import annotations

from typing import Any, Callable, Optional

from weft import _core, ir
from weft._explain import Explained, Record

REPEATS, ROUNDS = 5, 3
TARGETS = {"CPU:C": "C", "CUDA": "CUDA", "CUDA:PTX": "PTX", "OPENCL": "OPENCL", "WEBGPU": "WGSL"}
Pass = Callable[[ir.UOp], ir.UOp]


def measure(explained: Explained, answer: Record) -> None:
    """Adds `measured` to the decisions and copies of an answer: what the alternative takes, or why there is none."""
    known: dict[tuple[Any, ...], Record] = {}
    for decision in answer["decisions"]:
        alternative = _alternative_of(explained, decision)
        if alternative is None:
            continue
        if isinstance(alternative, str):
            decision["measured"] = {"text": alternative}
            continue
        what, number, chosen = alternative
        key = (decision["schedule"], what, number)
        if key not in known:
            known[key] = _timed(explained.schedules[decision["schedule"]], f"with it {what}",
                                change=_Force(explained.schedules[decision["schedule"]], number, chosen))
        decision["measured"] = known[key]
    for copy in answer["copies"]:
        copy["measured"] = _timed(explained.schedules[copy["schedule"]], "written in place, with wrong old values",
                                  graph=_without_copies)


def _alternative_of(explained: Explained, decision: Record) -> tuple[str, int, str] | str | None:
    """What else could have been decided: what, of which decision of `inline buffers`, and what that was."""
    if decision["pass"] == "inline buffers":
        other = "recomputed" if decision["what"] == "stored" else "stored"
        return other, int(decision["index"]), str(decision["what"])
    if decision["what"] == "stored":
        return None
    if decision["what"] != "two kernels":
        return None
    if decision["why"] != "one reads what the other makes":
        return f"nothing to time: {decision['why']}, and no graph with them as one is legal"
    sites = {s["number"] for s in decision.get("other_sites", [])}
    for d in explained.schedules[decision["schedule"]]["decisions"]:
        if d["pass"] == "inline buffers" and d["what"] == "stored" and sites & {s["number"] for s in d["sites"]}:
            return "recomputed in its users, which is one kernel less,", int(d["index"]), "stored"
    return "nothing to time: what is made between them must exist, because a tensor of the program holds it"


class _Force:
    """A pass before `inline buffers` that takes its decision out of its hands."""

    def __init__(self, schedule: Record, number: int, chosen: str) -> None:
        self.target = TARGETS.get(schedule["device"], "LLVM")
        self.number, self.chosen = number, chosen

    def __call__(self, graph: ir.UOp) -> ir.UOp:
        _, decisions = ir.inline_buffers(graph, self.target)
        if self.number >= len(decisions) or decisions[self.number].what != self.chosen:
            raise ValueError("the decision is made for these lines together with others")
        stored = decisions[self.number].node
        if self.chosen == "recomputed":
            value = ir.UOp.new(ir.Ops.CONTIGUOUS, stored.src[0].dtype, (stored.src[0],))
            changed = ir.UOp.new(stored.op, stored.dtype, (value, *stored.src[1:]), stored.arg)
            return graph.substitute({stored: changed})
        uses = [n for n in graph.toposort() if n.op is ir.Ops.INDEX and n.src[0] == stored]
        inlined: dict[ir.UOp, ir.UOp | int | float] = {}
        for use in uses:
            inner: dict[ir.UOp, ir.UOp | int | float] = {r: i for r, i in zip(stored.src[1:], use.src[1:]) if r.op is ir.Ops.RANGE}
            inlined[use] = stored.src[0].substitute(inner)
        return graph.substitute(inlined)


def _without_copies(graph: ir.UOp) -> ir.UOp:
    """Writes to copies as writes to the memory that was copied."""
    written: dict[ir.UOp, ir.UOp | int | float] = {}
    for n in graph.toposort():
        if n.op is not ir.Ops.AFTER or n.src[0].op is not ir.Ops.CONTIGUOUS:
            continue
        copy, memory = n.src[0], n.src[0].src[0]
        while memory.op is ir.Ops.RESHAPE:
            memory = memory.src[0]
        if memory.op is not ir.Ops.BUFFER:
            raise ValueError("what is copied is computed, and not in memory")
        stores = (store.substitute({copy: copy.src[0]}) for store in n.src[1:])
        written[n] = ir.UOp.new(ir.Ops.AFTER, n.dtype, (memory, *stores)).reshape(*copy.shape)
    return graph.substitute(written)


def _timed(schedule: Record, text: str, change: Optional[Pass] = None, graph: Optional[Pass] = None) -> Record:
    """The schedule as it is, and with the change: the least of a few runs of each, in turns, on memory of zeros."""
    device = schedule["device"]
    sink = ir.parse(schedule["graph"])
    try:
        other = graph(sink) if graph else sink
        times: list[list[int]] = [[], []]
        kernels = [0, 0]
        for _ in range(ROUNDS):
            ns, _, own = _core.measure(sink, device, REPEATS)
            times[0].append(ns)
            kernels[0] = len(own)
            if change is None:
                ns, _, own = _core.measure(other, device, REPEATS)
            else:
                with ir.Pipeline().before("inline buffers", change, name="the alternative"):
                    ns, _, own = _core.measure(other, device, REPEATS)
            times[1].append(ns)
            kernels[1] = len(own)
    except (ValueError, RuntimeError) as error:  # no such graph is legal, or it does not compile
        return {"text": f"nothing to time: {error}"}
    before, after = min(times[0]), min(times[1])
    return {"nanoseconds": before, "alternative_nanoseconds": after, "kernels": kernels[0],
            "alternative_kernels": kernels[1],
            "text": f"as it is {_us(before)} in {_kernels(kernels[0])}, {text} {_us(after)} in {_kernels(kernels[1])}"
                    f" ({after / max(before, 1):.2f} times)"}


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.1f} us" if nanoseconds < 1e7 else f"{nanoseconds / 1e6:.1f} ms"


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"
