"""A program that runs again finds its schedules: whatever was freed between, and in which order."""

import gc
import random
from typing import Any

import pytest
import weft
from on_both_devices import torch


def mixed_precision() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
    train(model.to("weft"), torch.randn(8, 16).to("weft"), is_mixed=True)


def normed_weights() -> None:
    norms = torch.nn.utils.parametrizations
    model = torch.nn.Sequential(norms.weight_norm(torch.nn.Linear(16, 32)), norms.spectral_norm(torch.nn.Linear(32, 8)))
    train(model.to("weft"), torch.randn(8, 16).to("weft"))


class Attention(torch.nn.Module):
    """A layer of attention between the nodes of a graph."""

    def __init__(self, edges: int, nodes: int) -> None:
        super().__init__()
        self.project, self.weight = torch.nn.Linear(8, 16), torch.nn.Parameter(torch.randn(16))
        self.register_buffer("source", torch.randint(0, nodes, (edges,)))
        self.register_buffer("target", torch.randint(0, nodes, (edges,)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h = x.shape[0], self.project(x)
        score = (torch.nn.functional.leaky_relu(h[self.source] + h[self.target]) * self.weight).sum(-1)
        most = torch.full((n,), -1e9, device=x.device).scatter_reduce(0, self.target, score, "amax")
        share = (score - most[self.target]).exp()
        total = torch.zeros(n, device=x.device).index_add(0, self.target, share)
        shares = (share / total[self.target])[:, None]
        return torch.zeros(n, 16, device=x.device).index_add(0, self.target, h[self.source] * shares)


def graph_attention() -> None:
    train(Attention(60, 20).to("weft"), torch.randn(20, 8).to("weft"))


def train(model: Any, x: torch.Tensor, is_mixed: bool = False) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("weft", dtype=torch.bfloat16, enabled=is_mixed):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()


@pytest.mark.parametrize("program", [mixed_precision, normed_weights, graph_attention])
def test_a_program_that_runs_again_plans_nothing(program):
    kept: list[torch.Tensor] = []
    chance = random.Random(7)
    misses = []
    for _ in range(8):
        torch.manual_seed(0)
        before = weft.counters.schedules
        program()
        gc.collect()
        misses.append(weft.counters.schedules - before)
        # Other tensors come and go, which leaves addresses free in another order each time.
        kept += [torch.ones(chance.randrange(1, 3000), device="weft") for _ in range(40)]
        chance.shuffle(kept)
        del kept[20:]
        torch.weft.synchronize()
    assert misses[4:] == [0, 0, 0, 0], misses
