"""A tour in under a minute, which `make run` ends with: versions, kernels, a network that learns, speed beside NumPy.

    python examples/python/tour.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

from weft import Device, Tensor, counters, jit, nn, viz
from weft.ir import UOp, make_schedule, rangeify

DATA = Path(__file__).parents[1] / "data" / "digits.npz"
BUILD = Path(__file__).parents[2] / "build"
GOAL = 0.95  # of pictures that the network has not seen


def title(text: str) -> None:
    print(f"\n{text}\n")


def versions() -> None:
    title("1. Lazy, and exactly as if it were not: reads see the past, writes make a new present")
    counters.reset()
    a = Tensor.arange(6).float()
    r = a * 10
    v = a.reshape(2, 3).T
    a[1:5:2] = 99
    print("   a = arange(6); r = a * 10; v = a.reshape(2, 3).T; a[1:5:2] = 99")
    print(f"   {counters.kernels} kernels have run, {a.kernel_count(r, v)} would run for all three")
    print(f"   a {a.tolist()}\n   r {r.tolist()}   made before the write\n   v {v.tolist()}   a view: sees it")
    b = Tensor.zeros(1000)
    for i in range(1, 1000):
        b[i] = b[i - 1] + 1
    print(f"   a thousand writes, each of which reads the one before: {b.kernel_count()} kernel, b[999] is {b[999].item()}")


def schedule() -> None:
    title("2. Every decision can be asked for: (q @ k.T).softmax() @ v")
    q, k, v = (Tensor.rand(64, 32).realize() for _ in "qkv")
    graph = UOp.sink(((q @ k.T).softmax(axis=1) @ v).uop)
    _, context = rangeify(graph)
    for d in [d for d in context.decisions if d.what in ("stored", "recomputed")]:
        print(f"   {d.node.short(40):<44}{d.what}: {d.why}")
    made = make_schedule(graph)
    names = dict(zip((i for i, b in enumerate(made.buffers) if b.kind == "input"), "qkv"))
    for i, b in enumerate(made.buffers):
        names.setdefault(i, "result" if b.kind == "output" else f"t{i}")
    print()
    for call in made.calls:
        read, written = call.arguments[call.written:], call.arguments[:call.written]
        print(f"   {', '.join(names[i] for i in read):<10} --> [ {call.name} ] --> {', '.join(names[i] for i in written)}")


def bar(done: int, of: int, text: str) -> None:
    if sys.stdout.isatty():
        filled = 30 * done // of
        print(f"\r   [{'#' * filled}{'.' * (30 - filled)}] {text}", end="" if done < of else "\n", flush=True)
    elif done == of:
        print(f"   {text}")


class Network:
    def __init__(self) -> None:
        self.first = nn.Linear(64, 128)
        self.last = nn.Linear(128, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def learn(epochs: int = 12, batch: int = 128) -> float:
    title("3. A network learns handwritten digits (examples/data)")
    Tensor.manual_seed(0)
    with np.load(DATA) as data:
        order = np.random.default_rng(0).permutation(len(data["labels"]))
        pixels = (data["pixels"][order] / 16).astype(np.float32)
        labels = data["labels"][order].astype(np.int32)
    train = 11 * batch
    x, kinds = Tensor(pixels[:train]).realize(), Tensor(labels[:train]).realize()
    unseen, answers = Tensor(pixels[train:]), Tensor(labels[train:])
    model = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.005)

    @jit
    def step(pictures: Tensor, digits: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(pictures).sparse_categorical_crossentropy(digits)
        loss.backward()
        optimizer.step()
        return loss

    start, steps = time.perf_counter(), train // batch
    with Tensor.train():
        for epoch in range(epochs):
            for i in range(steps):
                loss = step(x[i * batch:(i + 1) * batch], kinds[i * batch:(i + 1) * batch])
            text = f"epoch {epoch + 1} of {epochs}: loss {loss.item():.3f}, {time.perf_counter() - start:.1f} s"
            bar(epoch + 1, epochs, text)
    found = float((model(unseen).argmax(axis=1) == answers).float().mean().item())
    print(f"   {found:.1%} of {len(labels) - train} unseen digits are right (the goal is {GOAL:.0%})")
    return found


def speed() -> None:
    title(f"4. Beside NumPy, on {Device.DEFAULT}: the least of 10, in us")
    n = 1024
    left = np.linspace(-1, 1, n * n, dtype=np.float32).reshape(n, n)
    right = np.ascontiguousarray(left.T)
    a, b = Tensor(left).realize(), Tensor(right).realize()

    def softmax(m: Any) -> Any:
        e = np.exp(m - m.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    cases: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("exp(a) * b + 1", lambda: (a.exp() * b + 1).realize(), lambda: np.exp(left) * right + 1),
        ("softmax(a)", lambda: a.softmax(axis=1).realize(), lambda: softmax(left)),
        ("a @ b", lambda: (a @ b).realize(), lambda: left @ right)]
    print(f"   {n} x {n} float32{'weft':>12}{'NumPy':>10}")
    for name, ours, theirs in cases:
        times = [[], []]  # type: list[list[float]]
        for _ in range(10):
            for own, call in zip(times, (ours, theirs)):
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
        print(f"   {name:<21}{min(times[0]) * 1e6:10.0f}{min(times[1]) * 1e6:10.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="one epoch, whatever it leads to")
    parser.add_argument("--page", type=Path, help="where the page of the first parts is saved")
    options = parser.parse_args()
    start = time.perf_counter()
    page = options.page or (BUILD if BUILD.is_dir() else Path(tempfile.mkdtemp())) / "tour.html"
    with viz.recorded(page):
        versions()
        schedule()
    found = learn(epochs=1) if options.short else learn()
    speed()
    print(f"\nThat took {time.perf_counter() - start:.0f} s. What became of the lines of parts 1 and 2, pass by pass: {page}\n"
          "Next: `.venv/bin/weft --help`, `.venv/bin/weft viz examples/python/digits.py`, README.md")
    return 0 if found >= GOAL or options.short else 1


if __name__ == "__main__":
    sys.exit(main())
