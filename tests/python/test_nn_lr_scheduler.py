"""Schedules of rates against PyTorch's, also in a jit."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor, jit, nn
from weft.nn import lr_scheduler
from weft.nn.state import get_state_dict

torch = pytest.importorskip("torch")

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.3}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (epoch + 1)}),
]


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[name for name, _ in SCHEDULES])
def test_rates(name: str, options: dict[str, Any]) -> None:
    weight, theirs = Tensor([1.0], requires_grad=True), torch.ones(1, requires_grad=True)
    optimizer, expected = nn.optim.SGD([weight], lr=0.5), torch.optim.SGD([theirs], lr=0.5)
    mine = getattr(lr_scheduler, name)(optimizer, **options)
    other = getattr(torch.optim.lr_scheduler, name)(expected, **options)
    for _ in range(10):
        weight.grad, theirs.grad = Tensor([1.0]), torch.ones(1)
        optimizer.step()
        expected.step()
        mine.step()
        other.step()
        np.testing.assert_allclose(optimizer.lr.item(), other.get_last_lr()[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(weight.numpy(), theirs.detach().numpy(), rtol=1e-5)
    assert get_state_dict(mine)["epoch"].item() == 10


def test_in_a_jit() -> None:
    weight = Tensor([0.0], requires_grad=True)
    optimizer = nn.optim.SGD([weight], lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

    @jit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = weight.sum().backward()
        optimizer.step()
        schedule.step()
        return loss

    for _ in range(8):
        step()
    assert weight.tolist() == [-2 * (1 + 0.5 + 0.25 + 0.125)] and step.captures == 1
