"""weft.jit: calls are captured and replayed, and give what the function gives."""

import itertools
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
from weft import JitError, Tensor, jit, no_grad

RATE = 2
settings = types.SimpleNamespace(rate=3, unrelated=0)
TABLE = np.array([1.0, 2.0], np.float32)


def calls_of(function: Any, *arguments: Any) -> Any:
    """The last of a call that runs, one that captures, and one that replays."""
    results = [function(*arguments) for _ in range(3)]
    return results[-1]


def test_the_third_call_does_not_run_the_function() -> None:
    counter = itertools.count()

    @jit
    def f(x: Tensor) -> Tensor:
        next(counter)
        return x * 2

    for i in range(5):
        assert f(Tensor([i, 1])).tolist() == [2 * i, 2]
    assert next(counter) == 2


def test_captures_are_counted_and_forgotten() -> None:
    @jit
    def f(x: Tensor) -> Tensor:
        return x + 1

    for _ in range(3):
        f(Tensor([1]))
    assert f.captures == 1
    weft.counters.reset()
    assert f(Tensor([4])).tolist() == [5] and weft.counters.kernels == 1
    f.reset()
    assert f.captures == 0 and f(Tensor([1])).tolist() == [2]


PART = Tensor([0])


def test_an_argument_that_is_left_alone_on_its_memory() -> None:
    global PART

    @jit
    def f(x: Tensor) -> Tensor:
        PART[:1] = PART
        return x * 1

    whole = Tensor([6, 6, -8, -9, 5, -3])
    PART = whole[4:5]
    whole[4:] += 2
    del whole
    assert [f(x).tolist() for x in (Tensor([1]), PART, PART, Tensor([2]))] == [[1], [7], [7], [2]]


class Pair(NamedTuple):
    left: Tensor
    right: int


def test_nested_arguments_and_results() -> None:
    @jit
    def f(parts: dict[str, Any], pair: Pair, *rest: Tensor, scale: int = 1) -> Any:
        total = parts["a"] + parts["list"][0] * scale + pair.left * pair.right
        return {"total": total, "nested": [total.sum(), (rest[0], None, 3)], "pair": Pair(total * 2, 7)}

    for i in range(4):
        x, y = Tensor([i, 2]), Tensor([5, 6])
        out = f({"a": x, "list": [y]}, Pair(Tensor([1, 1]), 10), y, scale=2)
        assert out["total"].tolist() == [i + 20, 24]
        assert out["nested"][0].item() == i + 44
        assert out["nested"][1][0] is y and out["nested"][1][1:] == (None, 3)
        assert isinstance(out["pair"], Pair) and out["pair"].left.tolist() == [2 * i + 40, 48] and out["pair"].right == 7
    assert f.captures == 1


def test_plain_arguments_are_part_of_the_call() -> None:
    @jit
    def f(x: Tensor, n: Any, mode: str = "add") -> Tensor:
        return x + n if mode == "add" else x * n

    for _ in range(3):
        assert f(Tensor([3.0]), 2).tolist() == [5]
        assert f(Tensor([3.0]), 2, "mul").tolist() == [6]
        assert f(Tensor([3.0]), 0.5).tolist() == [3.5]
        assert f(Tensor([3]), True).dtype.name == "int32"
        assert f(Tensor([3]), 1.0).dtype.name == "float32"  # equal to True in Python
        assert math.copysign(1, f(Tensor([1.0]), -0.0, "mul").item()) == -1
        assert math.copysign(1, f(Tensor([1.0]), 0.0, "mul").item()) == 1
        assert math.isnan(f(Tensor([1.0]), math.nan).item())


def test_names_of_the_code_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = 1

    @jit
    def f(x: Tensor) -> Tensor:
        return x * RATE + settings.rate + cell + Tensor(TABLE).sum()

    def expected() -> float:
        return float(10 * RATE + settings.rate + cell + TABLE.sum())

    module = __import__(__name__, fromlist=["RATE"])
    for change in (lambda: None, lambda: monkeypatch.setattr(module, "RATE", 5),
                   lambda: monkeypatch.setattr(settings, "rate", 7), lambda: TABLE.__setitem__(0, 9.0)):
        change()
        for _ in range(3):
            assert f(Tensor([10.0])).item() == expected()
    for cell in (2, 2, 2, 3, 3, 3):
        assert f(Tensor([10.0])).item() == expected()
    captures = f.captures
    settings.unrelated += 1  # the code does not name it
    f(Tensor([10.0]))
    assert f.captures == captures
    TABLE[0] = 1.0


class Layer:
    def __init__(self, weight: float) -> None:
        self.weight = Tensor([weight])
        self.scale = 1

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.weight * self.scale


class Model:
    def __init__(self) -> None:
        self.layers = [Layer(2.0), Layer(3.0)]
        self.head = Layer(1.0)
        self.bias = 0.0

    def helper(self, x: Tensor) -> Tensor:
        return x + self.bias

    @property
    def shifted(self) -> float:
        return self.bias + 1

    def run(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.helper(self.head(x)) * self.shifted

    run_jit = jit(run)


def test_objects_and_methods() -> None:
    model, other = Model(), Model()
    other.bias = 1.0
    outside = jit(model.run)

    def check() -> None:
        for m in (model, other):
            for _ in range(3):
                x = Tensor([2.0])
                assert m.run_jit(x).item() == m.run(x).item()
                assert outside(x).item() == model.run(x).item()

    check()
    model.layers[1].scale = 4
    check()
    model.head.scale = 5
    check()
    model.bias = 3.0
    check()
    model.head.weight = Tensor([10.0])
    check()
    model.layers[0].weight.assign(Tensor([7.0]))
    check()
    model.layers.append(Layer(2.0))
    check()
    model.layers[0] = Layer(0.5)
    check()


def test_jit_of_an_object() -> None:
    layer = Layer(2.0)
    f = jit(layer)
    assert calls_of(f, Tensor([3.0])).item() == 6
    layer.scale = 2
    assert calls_of(f, Tensor([3.0])).item() == 12


def test_what_a_function_changes_of_what_it_names_is_an_error() -> None:
    class Counter:
        steps = 0

        @jit
        def step(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

        @jit
        def keep(self, x: Tensor) -> Tensor:
            self.last = x * 2
            return self.last + 1

    counter = Counter()
    assert counter.step(Tensor([1])).tolist() == [1]
    with pytest.raises(JitError, match=r"step changes self\.steps"):
        counter.step(Tensor([1]))
    assert counter.keep(Tensor([1])).tolist() == [3]
    with pytest.raises(JitError, match=r"keep changes self\.last"):
        counter.keep(Tensor([1]))


def test_state_that_the_first_call_makes() -> None:
    class Momentum:
        velocity: Any = None

        @jit
        def step(self, x: Tensor) -> Tensor:
            if self.velocity is None:
                self.velocity = Tensor([0.0])
            self.velocity.assign(self.velocity * 0.5 + x)
            return self.velocity + 0

    m, v = Momentum(), 0.0
    for i in range(6):
        v = v * 0.5 + i
        assert m.step(Tensor([float(i)])).item() == v
    assert Momentum.step.captures == 1


def test_values_asked_for_while_captured() -> None:
    w = Tensor([1.0])
    asked: dict[str, Any] = {
        "item": lambda x: x.sum().item(), "tolist": lambda x: x.tolist(), "numpy": lambda x: x.numpy(),
        "bool": lambda x: bool(x.sum() > 1), "print": lambda x: repr(x),
        "known": lambda x: w.item(), "array": lambda x: np.asarray(x)}
    for ask in asked.values():
        def f(x: Tensor, ask: Any = ask) -> Tensor:
            ask(x)
            return x + 1

        g = jit(f)
        g(Tensor([1.0]))
        with pytest.raises(JitError, match="asks for values while it is captured") as error:
            g(Tensor([1.0]))
        assert f"line {f.__code__.co_firstlineno + 1} of {__file__}: ask(x)" in str(error.value) or "lambda" in str(error.value)
        assert w.item() == 1


def test_realize_is_a_part_of_the_capture() -> None:
    total = Tensor([0.0])

    @jit
    def f(x: Tensor) -> Tensor:
        y = (x @ x).realize()
        total.assign(total + y.sum()).realize()
        return (y * 2).realize()

    for i in range(5):
        x = np.array([[1.0, i], [0.0, 2.0]], np.float32)
        assert f(Tensor(x)).tolist() == (x @ x * 2).tolist()
    assert total.item() == sum(np.square(1) + 3 * i + 4 for i in range(5)) and f.captures == 1


def test_results_are_tensors_and_plain_values() -> None:
    f = jit(lambda x: {x.sum()})
    f(Tensor([1]))
    with pytest.raises(JitError, match="not set"):
        f(Tensor([1]))
    with pytest.raises(TypeError, match="a function is needed"):
        jit(3)  # type: ignore[arg-type]


def test_parameters_written_between_calls() -> None:
    w = Tensor([1.0, 2.0])
    f = jit(lambda x: (x * w).sum())
    assert calls_of(f, Tensor([1.0, 1.0])).item() == 3
    w[0] = 5
    assert f(Tensor([1.0, 1.0])).item() == 7
    w.assign(w * 2).realize()
    assert f(Tensor([1.0, 1.0])).item() == 14
    held = w.numpy()
    reader = w + 1
    w += 1
    assert f(Tensor([1.0, 1.0])).item() == 16
    assert held.tolist() == [10, 4] and reader.tolist() == [11, 5]


def test_the_same_tensor_twice_and_parts_of_one() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        x += y
        return x * 1

    g = jit(f)
    for _ in range(3):
        for make in (lambda t: (t[:2], t[2:]), lambda t: (t[1:3], t[:2]), lambda t: (t, t), lambda t: (t[::2], t[1::2])):
            a, b = Tensor([1, 2, 3, 4]), Tensor([1, 2, 3, 4])
            assert g(*make(a)).tolist() == f(*make(b)).tolist()
            assert a.tolist() == b.tolist()


def test_batches_of_one_tensor_are_one_capture() -> None:
    data = Tensor.arange(20).reshape(10, 2).realize()
    f = jit(lambda x: x.sum())
    assert [f(data[i:i + 2]).item() for i in range(8)] == [sum(range(2 * i, 2 * i + 4)) for i in range(8)]
    assert f.captures == 1


def test_an_error_of_the_function_is_its_own() -> None:
    f = jit(lambda x, y: x + y)
    for _ in range(3):
        assert f(Tensor([1]), Tensor([2])).item() == 3
    with pytest.raises(weft.ShapeError):
        f(Tensor([1, 2]), Tensor([1, 2, 3]))
    assert f(Tensor([1]), Tensor([2])).item() == 3


def test_without_schedules_it_runs_as_it_is() -> None:
    import os
    import subprocess
    import sys
    code = ("from weft import Tensor, jit\nf = jit(lambda x: x * 2)\n"
            "print([f(Tensor([i])).item() for i in range(4)], f.captures)")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "WEFT_SCHEDULE": "0"}, capture_output=True,
                          text=True, check=True)
    assert done.stdout == "[0, 2, 4, 6] 0\n"


# ---- gradients

def train(w: Tensor, function: Callable[[Tensor], Tensor], calls: int = 5) -> list[list[float]]:
    seen = []
    for i in range(calls):
        loss = function(Tensor([1.0 + i, 2.0 - i]))
        assert not loss.requires_grad
        seen.append([loss.item(), *w.tolist(), *(w.grad.tolist() if w.grad is not None else ())])
    return seen


def fresh_gradient(w: Tensor, x: Tensor) -> Tensor:
    w.grad = None
    loss = (w * x * w).sum()
    loss.backward()
    with no_grad():
        w -= 0.1 * w.grad
    return loss.detach()


def added_gradient(w: Tensor, x: Tensor) -> Tensor:
    loss = (w * x * w).sum()
    loss.backward()
    return loss.detach()


def dropped_gradient(w: Tensor, x: Tensor) -> Tensor:
    loss = (w * x * w).sum()
    loss.backward()
    with no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    return loss.detach()


@pytest.mark.parametrize("step", [fresh_gradient, added_gradient, dropped_gradient])
def test_gradients_are_those_of_the_function(step: Callable[[Tensor, Tensor], Tensor]) -> None:
    plain, captured = (Tensor([3.0, 5.0], requires_grad=True) for _ in range(2))
    function = jit(lambda x: step(captured, x))
    assert train(captured, function) == train(plain, lambda x: step(plain, x))
    assert function.captures >= 1


def test_a_gradient_that_was_replaced_is_found() -> None:
    w = Tensor([3.0], requires_grad=True)
    function = jit(lambda x: added_gradient(w, x))
    for _ in range(3):
        function(Tensor([1.0]))
    kept = w.grad
    w.grad = None
    function(Tensor([1.0]))
    w.grad = Tensor([100.0])
    function(Tensor([1.0]))
    assert kept is not None and kept.tolist() == [18] and w.grad.tolist() == [106]


def test_gradients_of_arguments() -> None:
    function = jit(lambda x: (x * x).sum().backward().detach())
    for i in range(4):
        x = Tensor([1.0 + i], requires_grad=True)
        function(x)
        assert x.grad is not None and x.grad.tolist() == [2 + 2 * i]


def test_no_gradient_passes_out() -> None:
    w = Tensor([3.0], requires_grad=True)
    function = jit(lambda: w * 2)
    assert not any(function().requires_grad for _ in range(4))
    assert (w * 2).requires_grad


def test_indices_out_of_range_are_said_by_replays() -> None:
    x, calls = Tensor([1.0, 2.0, 3.0]), Tensor([0])

    @jit
    def pick(index: Tensor) -> Tensor:
        calls.assign(calls + 1)
        return x[index + 0]

    for index, expected in (([0, 1], [1, 2]), ([1, 2], [2, 3]), ([0, -1], [1, 3])):
        assert pick(Tensor(index)).tolist() == expected
    with pytest.raises(weft.IndexError, match="out of bounds of axis 0 with size 3"):
        pick(Tensor([1, 3]))
    assert pick(Tensor([1, 0])).tolist() == [2, 1] and calls.item() == 5 and pick.captures == 1
