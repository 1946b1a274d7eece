"""Physics on a grid with in-place writes of its borders, beside NumPy: heat, waves, and Conway's life.

    python examples/python/physics.py [--size 512] [--steps 200]
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Callable

import numpy as np

from weft import Tensor, jit

Step = Callable[..., Any]


def neighbours(u: Any) -> Any:
    """The sum of the four beside each inner cell."""
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]


def heat(u: Any) -> None:
    """Walls are warm on the left, cold on the right; above and below nothing passes."""
    u[1:-1, 1:-1] += 0.2 * (neighbours(u) - 4 * u[1:-1, 1:-1])
    u[:, 0], u[:, -1] = 1.0, 0.0
    u[0], u[-1] = u[1], u[-2]


def waves(u: Any, before: Any) -> None:
    """A string in two dimensions: `before` becomes what comes next, and the two change places."""
    following = 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * (neighbours(u) - 4 * u[1:-1, 1:-1])
    before[:] = u
    u[1:-1, 1:-1] = following
    u[0], u[-1] = 0.0, 0.0
    u[:, 0], u[:, -1] = 0.0, 0.0


def life(u: Any) -> None:
    """On a torus: the border is a halo with copies of the opposite side."""
    u[0], u[-1] = u[-2], u[1]
    u[:, 0], u[:, -1] = u[:, -2], u[:, 1]
    around = neighbours(u) + u[:-2, :-2] + u[:-2, 2:] + u[2:, :-2] + u[2:, 2:]
    lives = (around == 3) | ((around == 2) & (u[1:-1, 1:-1] == 1))
    u[1:-1, 1:-1] = lives.float() if isinstance(u, Tensor) else lives


def grids(name: str, size: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    u = np.zeros((size, size), np.float32)
    if name == "life":
        return [(random.random((size, size)) < 0.3).astype(np.float32)]
    if name == "waves":
        y, x = np.mgrid[:size, :size] / size
        u[:] = np.exp(-200 * ((x - 0.3) ** 2 + (y - 0.4) ** 2))
        return [u, u.copy()]
    return [u]


def run_weft(step: Step, arrays: list[np.ndarray], steps: int) -> tuple[list[np.ndarray], float]:
    tensors = [Tensor(a).realize() for a in arrays]
    compiled = jit(lambda *own: step(*own))
    for _ in range(2):  # captured, then compiled
        compiled(*tensors)
    for t, a in zip(tensors, arrays):
        t.assign(Tensor(a))
    Tensor.realize(*tensors)
    start = time.perf_counter()
    for _ in range(steps):
        compiled(*tensors)
    out = [t.numpy() for t in tensors]
    return out, time.perf_counter() - start


def run_numpy(step: Step, arrays: list[np.ndarray], steps: int) -> tuple[list[np.ndarray], float]:
    own = [a.copy() for a in arrays]
    start = time.perf_counter()
    for _ in range(steps):
        step(*own)
    return own, time.perf_counter() - start


def picture(u: np.ndarray, width: int = 48, height: int = 12) -> str:
    """Its cells as characters."""
    rows = np.linspace(0, u.shape[0] - 1, height).astype(int)
    columns = np.linspace(0, u.shape[1] - 1, width).astype(int)
    part = u[rows][:, columns]
    scaled = (part - part.min()) / max(float(part.max() - part.min()), 1e-9)
    return "\n".join("  " + "".join(" .:-=+*#%@"[int(9 * v)] for v in row) for row in scaled)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    is_right = True
    for name, step in (("heat", heat), ("waves", waves), ("life", life)):
        arrays = grids(name, options.size)
        ours, ours_seconds = run_weft(step, arrays, options.steps)
        theirs, their_seconds = run_numpy(step, arrays, options.steps)
        difference = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs))
        is_right &= difference < 1e-3
        print(f"{name}: {options.steps} steps of {options.size} x {options.size}, a step takes "
              f"{ours_seconds / options.steps * 1e6:.0f} us, NumPy's {their_seconds / options.steps * 1e6:.0f} us "
              f"({their_seconds / ours_seconds:.1f} times as long); they differ by {difference:.1g}")
        print(picture(ours[0]))
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
