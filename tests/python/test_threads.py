"""Python threads: the interpreter's lock is free while kernels are compiled and run, and results are those of one thread."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from weft import Tensor, function, jit, no_grad

THREADS = 4


def in_threads(work: Callable[[int], object], count: int = THREADS) -> list[object]:
    start = threading.Barrier(count)

    def run(i: int) -> object:
        start.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return [f.result(timeout=60) for f in [pool.submit(run, i) for i in range(count)]]


def test_different_graphs() -> None:
    def work(i: int) -> list[float]:
        found = []
        for k in range(20):
            x = Tensor(np.full((8, 8), i + k, np.float32))
            x[k % 8] = 1
            found.append((x @ x.T).sum().item())
        return found

    assert in_threads(work) == [work(i) for i in range(THREADS)]


def test_the_same_graph() -> None:
    for _ in range(20):
        x = Tensor.arange(64).reshape(8, 8).float()
        y = (x @ x + 1).relu().sum(axis=0)
        expected = np.maximum(np.arange(64.0).reshape(8, 8) @ np.arange(64.0).reshape(8, 8) + 1, 0).sum(0).tolist()
        asks: list[Callable[[], object]] = [lambda: y.tolist(), lambda: y.numpy().tolist(),
                                            lambda: y.realize().tolist(), lambda: [v.item() for v in y]]
        assert in_threads(lambda i: asks[i]()) == [expected] * 4


def test_writes_of_one_and_reads_of_others() -> None:
    x = Tensor.zeros(16).realize()

    def work(i: int) -> bool:
        for _ in range(50):
            if i == 0:
                x.assign(x + 1)
            else:
                seen = x.numpy()
                assert (seen == seen[0]).all()
        return True

    assert all(in_threads(work)) and x.tolist() == [50] * 16


def test_gradients_in_threads() -> None:
    @function
    def square(x: Tensor) -> Tensor:
        return x * x

    square.backward(lambda grad, x: grad * 2 * x)

    def work(i: int) -> list[float]:
        w = Tensor([float(i), 2.0], requires_grad=True)
        for _ in range(10):
            loss = (square(w) * 3).sum()
            loss.backward()
            loss.realize()
            with no_grad():
                w.assign(w - 0.01 * w.grad)
            w.grad = None
        found: list[float] = w.tolist()
        return found

    assert in_threads(work) == [work(i) for i in range(THREADS)]


def test_jit_in_threads() -> None:
    def work(i: int) -> list[float]:
        total = Tensor([float(i)])

        @jit
        def step(x: Tensor) -> Tensor:
            total.assign(total + x)
            return total * 2

        return [step(Tensor([float(k)])).item() for k in range(6)]

    assert in_threads(work) == [work(i) for i in range(THREADS)]


def test_callbacks_are_freed_by_threads_that_do_not_hold_the_lock() -> None:
    @function
    def same(x: Tensor) -> Tensor:
        return x * 1

    same.backward(lambda grad, x: grad)

    def work(i: int) -> bool:
        for _ in range(30):
            w = Tensor([1.0], requires_grad=True)
            for _ in range(40):
                w = same(w.detach())
            w.realize()
        return True

    assert all(in_threads(work))


LONG: dict[str, Callable[[Tensor], object]] = {
    "realize": lambda t: t.realize(), "numpy": lambda t: t.numpy(), "tolist": lambda t: t.tolist(),
    "item": lambda t: t.sum().item(), "memoryview": lambda t: memoryview(t), "bool": lambda t: bool(t.sum()),
    "repr": lambda t: repr(t), "contains": lambda t: 3.5 in t, "schedule": lambda t: (t.schedule(), t.tolist()),
    "allclose": lambda t: t.allclose(t + 1), "nonzero": lambda t: t.nonzero(), "masked_select": lambda t: t.masked_select(t > 1),
    "mask": lambda t: t[t > 1],
}


@pytest.mark.parametrize("name", LONG)
def test_others_run_meanwhile(name: str) -> None:
    x = Tensor(np.ones((96, 96), np.float32), device="REF")  # the evaluator takes a while
    y = (x @ x)[:8, :8]
    done = threading.Event()

    def long() -> None:
        LONG[name](y)
        done.set()

    thread = threading.Thread(target=long)
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    assert ticks > 5  # with the lock held it is 1
