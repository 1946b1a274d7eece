"""A small convolutional network learns ten kinds of noisy pictures. It takes seconds, and needs no data:

    python examples/python/digits.py
"""

from __future__ import annotations

import numpy as np

from weft import Tensor, jit, nn

KINDS, SIZE, BATCH = 10, 8, 64


def pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures of one channel, each the picture of its kind and noise, and their kinds."""
    kinds = np.random.default_rng(0).normal(size=(KINDS, 1, SIZE, SIZE))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, KINDS, size=count)
    noise = rng.normal(size=(count, 1, SIZE, SIZE))
    return Tensor((kinds[labels] + noise).astype(np.float32)), Tensor(labels.astype(np.int32))


class Network:
    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm(8)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.last = nn.Linear(16 * (SIZE // 4) ** 2, KINDS)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x)).relu().max_pool2d()
        x = self.second(x).relu().max_pool2d()
        return self.last(x.flatten(1))


def train(steps: int = 60) -> tuple[float, float]:
    """The loss of the last step, and which part of new pictures is found."""
    Tensor.manual_seed(0)
    model = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
    x, labels = pictures(steps * BATCH, seed=1)

    @jit
    def step(batch: Tensor, kinds: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(batch).sparse_categorical_crossentropy(kinds)
        loss.backward()
        optimizer.step()
        return loss

    with Tensor.train():
        for i in range(steps):
            part = slice(i * BATCH, (i + 1) * BATCH)
            loss = step(x[part], labels[part])
            if i % 10 == 0:
                print(f"step {i:3}: loss {loss.item():.3f}")

    x, labels = pictures(500, seed=2)
    found = (model(x).argmax(axis=1) == labels).cast("float32").mean().item()
    print(f"{found:.0%} of new pictures are found")
    return loss.item(), found


if __name__ == "__main__":
    train()
