"""weft.check: what a function gives beside the eager reference, and where it first differs."""

import numpy as np
import pytest

import weft
from weft import CheckError, Tensor, check, jit, nn, no_grad


def test_a_function_that_is_right() -> None:
    a, b = Tensor(np.float32([[1, 2], [3, 4]])), Tensor([1.0, -1.0])

    def function(x: Tensor, scale: float, *, more: dict[str, Tensor]) -> list[Tensor]:
        h = (x @ x.T).relu() * scale
        h[0] = more["b"]
        return [h.softmax(), h.sum(), x[:, 1]]

    result = check(function, a, 0.5, more={"b": b})
    expected = function(a, 0.5, more={"b": b})
    assert [r.tolist() for r in result] == [e.tolist() for e in expected]
    assert result[2].shares_memory_with(a)


def test_what_is_written_is_written_once() -> None:
    total, x = Tensor([1.0, 2.0]), Tensor([5.0, 6.0])

    def step(x: Tensor) -> None:
        total.assign(total * 2)
        x += total
        view = x[1:]
        view.assign(0)

    check(step, x)
    assert (total.tolist(), x.tolist()) == ([2, 4], [7, 0])


def test_gradients_are_collected_once() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)

    def step(x: Tensor) -> Tensor:
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    assert check(step, Tensor([1.0, 3.0])).item() == 13 and w.grad.tolist() == [2, 12]
    check(step, Tensor([1.0, 3.0]))
    assert w.grad.tolist() == [4, 24]


def test_random_numbers_are_the_same() -> None:
    Tensor.manual_seed(7)
    drawn = check(lambda: Tensor.rand(3) + Tensor.randn(3))
    Tensor.manual_seed(7)
    assert drawn.tolist() == (Tensor.rand(3) + Tensor.randn(3)).tolist()


def test_values_asked_for_on_the_way() -> None:
    def newton(x: Tensor) -> Tensor:
        while abs((x * x - 2).item()) > 1e-3:
            x = x - (x * x - 2) / (2 * x)
        return x

    assert abs(check(newton, Tensor(1.0)).item() - 2**0.5) < 1e-3


def test_jit_is_checked_as_it_is() -> None:
    total = Tensor([0.0])

    @jit
    def step(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 2

    assert [check(step, Tensor([1.0])).item() for _ in range(4)] == [2, 4, 6, 8] and step.captures == 1




def test_the_first_operation_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def function(x: Tensor) -> Tensor:
        runs.append(0)
        y = x + 1
        z = y * (3 if len(runs) == 1 else 2)  # the first run is the reference
        return (z - 1).sum()

    with pytest.raises(CheckError) as error:
        check(function, Tensor([1.0, 2.0]))
    text = str(error.value)
    assert "[check] function: operation 1, MUL to float32 (2,), at " in text and "z = y * (3 if" in text
    assert f"{__file__}:" in text and "element (0,) is 4.0; the reference has 6.0 (2 of 2 elements differ)" in text
    assert isinstance(error.value, AssertionError) and isinstance(error.value, weft.Error) and len(runs) == 3


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Tensor([1.0])
    runs = []

    def function() -> None:
        runs.append(0)
        written.assign(written * len(runs))

    with pytest.raises(CheckError, match=r"function: operation \d, \w+ to float32 \(1,\), at .*written.assign"):
        check(function)
    assert written.tolist() == [3]


def test_a_function_that_does_not_do_the_same_twice() -> None:
    runs = []

    def function(x: Tensor) -> Tensor:
        runs.append(0)
        return x + 1 if len(runs) == 1 else x.sum()

    with pytest.raises(CheckError, match="does not do the same twice"):
        check(function, Tensor([1.0, 2.0]))


def test_tolerances() -> None:
    runs = []

    def function() -> Tensor:
        runs.append(0)
        return Tensor([1.0 + (1e-3 if len(runs) % 2 else 0)])

    with pytest.raises(CheckError):
        check(function)
    runs.clear()
    assert check(function, rtol=1e-2).item() == 1.0


def test_an_error_of_the_function_comes_through_and_leaves_nothing_on() -> None:
    with pytest.raises(ZeroDivisionError):
        check(lambda: 1 / 0)
    assert not weft._core.is_recording()
    (Tensor([1.0]) + 1).realize()


def test_a_training_step() -> None:
    Tensor.manual_seed(1)
    model = [nn.Linear(4, 8), Tensor.relu, nn.Linear(8, 3)]
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.01)
    x, y = Tensor.rand(6, 4), Tensor([0, 1, 2, 0, 1, 2])

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = x.sequential(model).cross_entropy(y)
        loss.backward()
        with no_grad():
            optimizer.step()
        return loss

    with Tensor.train():
        losses = [check(step).item() for _ in range(3)]
    assert losses[2] < losses[0]
