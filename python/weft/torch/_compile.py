"""torch.compile(backend="weft"): whole graphs, forward and backward, as kernels that are found once and run again."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch

from . import _C

# Graphs that are kept for each combination of the sizes and numbers among a graph's inputs.
MOST_KINDS = 16


def _is_random(graph: torch.fx.GraphModule) -> bool:
    """Whether two runs on the same inputs differ: what was captured would not."""
    seeded = torch.Tag.nondeterministic_seeded
    return any(node.op == "call_function" and seeded in getattr(node.target, "tags", ()) for node in graph.graph.nodes)


def _boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """AOTAutograd then passes the inputs as one list, which the function may empty."""
    function._boxed_call = True  # type: ignore[attr-defined]
    return function


def compile_graph(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A graph of aten operators as a function of a list of inputs."""
    if _is_random(graph):
        return _boxed(lambda inputs: graph(*inputs))
    kinds: dict[tuple[Any, ...], _C.CompiledGraph] = {}
    structure: dict[tuple[Any, ...], list[Any]] = {}

    def run(inputs: list[Any]) -> Any:
        given = list(inputs)
        inputs.clear()
        numbers = tuple(x if not isinstance(x, torch.Tensor) else None for x in given)
        if numbers not in kinds:
            if len(kinds) >= MOST_KINDS:
                return graph(*given)
            places = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor)]

            def on_tensors(tensors: list[torch.Tensor]) -> list[torch.Tensor | None]:
                full: list[Any] = list(numbers)
                for i, tensor in zip(places, tensors):
                    full[i] = tensor
                with torch.no_grad():
                    results = graph(*full)
                structure[numbers] = [None if isinstance(r, torch.Tensor) else r for r in results]
                return [r if isinstance(r, torch.Tensor) else None for r in results]

            kinds[numbers] = _C.CompiledGraph(on_tensors)
        results = kinds[numbers]([x for x in given if isinstance(x, torch.Tensor)])
        return [r if other is None and r is not None else other
                for r, other in zip(results, structure[numbers])]

    run.kinds = kinds  # type: ignore[attr-defined]
    return _boxed(run)


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """The backend: AOTAutograd makes graphs of aten operators of the forward and the backward pass."""
    from torch._dynamo.backends.common import aot_autograd
    return aot_autograd(fw_compiler=compile_graph, bw_compiler=compile_graph)(graph, example_inputs)
