"""Whole models, trained in a jit and outside of one, beside PyTorch's."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor, jit, nn
from weft.nn.state import get_parameters, get_state_dict, load_state_dict

torch = pytest.importorskip("torch")


class Pictures:
    """Convolutions, batch norm, pooling."""

    def __init__(self) -> None:
        self.layers = [nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4), Tensor.relu, Tensor.max_pool2d,
                       nn.GroupNorm(2, 4), lambda x: x.flatten(1), nn.Linear(4 * 3 * 3, 5)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)

    @staticmethod
    def theirs() -> Any:
        t = torch.nn
        return t.Sequential(t.Conv2d(1, 4, 3, bias=False), t.BatchNorm2d(4), t.ReLU(), t.MaxPool2d(2),
                            t.GroupNorm(2, 4), t.Flatten(), t.Linear(4 * 3 * 3, 5))

    shape = (6, 1, 8, 8)


class Memory:
    """A recurrent cell, three times."""

    def __init__(self) -> None:
        self.cell, self.last = nn.LSTMCell(3, 4), nn.Linear(4, 5)

    def __call__(self, x: Tensor) -> Tensor:
        state = None
        for i in range(x.shape[1]):
            state = self.cell(x[:, i], state)
        assert state is not None
        return self.last(state[0])

    @staticmethod
    def theirs() -> Any:
        class Model(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.cell, self.last = torch.nn.LSTMCell(3, 4), torch.nn.Linear(4, 5)

            def forward(self, x: Any) -> Any:
                state = None
                for i in range(x.shape[1]):
                    state = self.cell(x[:, i], state)
                return self.last(state[0])

        return Model()

    shape = (6, 3, 3)


def names(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The names of PyTorch's Sequential as mine."""
    return {f"layers.{name}" if isinstance(model, Pictures) else name: value for name, value in state.items()}


@pytest.mark.parametrize("is_captured", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("kind", [Pictures, Memory])
def test_ten_steps(kind: Any, is_captured: bool) -> None:
    torch.manual_seed(0)
    mine, theirs = kind(), kind.theirs()
    load_state_dict(mine, {name: Tensor(value.numpy()) for name, value in names(mine, theirs.state_dict()).items()})
    optimizer, other = nn.optim.AdamW(get_parameters(mine), lr=0.01), torch.optim.AdamW(theirs.parameters(), lr=0.01)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = mine(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss

    run = jit(step) if is_captured else step
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y = rng.normal(size=kind.shape).astype(np.float32), rng.integers(0, 5, size=kind.shape[0])
        with Tensor.train():
            loss = run(Tensor(x), Tensor(y))
        other.zero_grad()
        expected = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y))
        expected.backward()
        other.step()
        np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-4)
    for name, value in names(mine, theirs.state_dict()).items():
        trained = get_state_dict(mine)[name].numpy()
        np.testing.assert_allclose(trained, value.numpy(), rtol=2e-3, atol=2e-4, err_msg=name)
