"""A small GPT learns a text by heart, character by character, and writes it:

    python examples/python/characters.py
"""

from __future__ import annotations

import math

import numpy as np

from weft import Tensor, jit, nn

TEXT = "the quick brown fox jumps over the lazy dog. "
LENGTH = 16  # characters that it sees


class Block:
    def __init__(self, size: int, heads: int) -> None:
        self.first_norm, self.attention = nn.LayerNorm(size), nn.MultiHeadAttention(size, heads)
        self.second_norm = nn.LayerNorm(size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first_norm(x), is_causal=True)
        return x + self.narrow(self.wide(self.second_norm(x)).gelu())


class GPT:
    def __init__(self, kinds: int, size: int = 32, heads: int = 4, blocks: int = 2) -> None:
        self.characters, self.places = nn.Embedding(kinds, size), nn.Embedding(LENGTH, size)
        self.blocks = [Block(size, heads) for _ in range(blocks)]
        self.norm, self.last = nn.LayerNorm(size), nn.Linear(size, kinds, bias=False)

    def __call__(self, text: Tensor) -> Tensor:
        """Numbers of characters (batch, length) to the scores of the next ones (batch, length, kinds)."""
        x = self.characters(text) + self.places(Tensor.arange(text.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.last(self.norm(x))


def learn(steps: int = 60) -> tuple[float, float, str]:
    """The first and the last loss, and what it writes."""
    Tensor.manual_seed(1)
    letters = sorted(set(TEXT))
    numbers = np.array([letters.index(c) for c in TEXT * 2], np.int32)
    windows = np.stack([numbers[i : i + LENGTH + 1] for i in range(len(TEXT))])
    x, y = Tensor(windows[:, :-1].copy()), Tensor(windows[:, 1:].copy())

    model = GPT(len(letters))
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.01)

    @jit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).flatten(0, 1).sparse_categorical_crossentropy(y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    with Tensor.train():
        for i in range(steps):
            losses.append(step())
            if i % 20 == 0:
                print(f"step {i:3}: loss {losses[-1].item():.3f} (chance: {math.log(len(letters)):.3f})")

    @jit
    def best(seen: Tensor) -> Tensor:
        return model(seen)[0, -1].argmax()

    written = list(numbers[:LENGTH])
    while len(written) < len(TEXT):
        written.append(best(Tensor(np.array([written[-LENGTH:]], np.int32))).item())
    text = "".join(letters[i] for i in written)
    print(text)
    return losses[0].item(), losses[-1].item(), text


if __name__ == "__main__":
    learn()
