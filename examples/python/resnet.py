"""A residual network of PyTorch's own modules on device weft: trained on handwritten digits, tested on others.

    python examples/python/resnet.py [--steps 60]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

DATA = Path(__file__).parents[1] / "data" / "digits.npz"


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.short = nn.Conv2d(before, after, 1, stride, bias=False) if stride != 1 or before != after else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        y += self.short(x)  # in place, as everybody writes it
        return functional.relu(y, inplace=True)


class ResNet(nn.Sequential):
    def __init__(self, width: int = 12) -> None:
        super().__init__(nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                         Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="weft", help="cpu runs the same on PyTorch's own kernels")
    options = parser.parse_args()
    torch.manual_seed(0)
    with np.load(DATA) as data:
        pixels = torch.from_numpy(data["pixels"].astype(np.float32).reshape(-1, 1, 8, 8) / 16)
        labels = torch.from_numpy(data["labels"].astype(np.int64))
    order = torch.randperm(len(labels))
    seen, unseen = order[:1500], order[1500:]

    device = torch.device(options.device)
    model = ResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    start = time.perf_counter()
    for step in range(options.steps):
        batch = seen[torch.randint(len(seen), (options.batch,))]
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(pixels[batch].to(device)), labels[batch].to(device))
        loss.backward()
        optimizer.step()
        if step == 0 or (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}, {time.perf_counter() - start:.1f} s", flush=True)
    model.eval()
    with torch.no_grad():
        guesses = model(pixels[unseen].to(device)).argmax(dim=1).cpu()
    found = (guesses == labels[unseen]).float().mean().item()
    print(f"{found:.1%} of {len(unseen)} unseen digits are right, on {options.device}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
