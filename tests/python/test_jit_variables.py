"""Variables under jit: a few calls with different values, then one capture for all of them."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import BoundVariable, JitError, Tensor, Variable, jit
from weft._variable import WatchedInt

SIZE, WIDTH = 48, 8


def devices() -> list[str]:
    names = ["REF", "CPU", "OPENCL", "WEBGPU"]
    return [name for name in names if name in weft.Device.names()]


def memory(*shape: int) -> tuple[Tensor, np.ndarray]:
    values = (np.arange(np.prod(shape)) * 7 % 11 - 5).astype(np.float32).reshape(shape)
    return Tensor(values).realize(), values.copy()


def served(function: Callable[[Any], Any], variable: Variable) -> Any:
    """The jit of a function of one argument, equal to the function without it for all values, in one capture."""
    calls = itertools.count()

    def counted(n: Any) -> Any:
        next(calls)
        return function(n)

    counted.__wrapped__ = function  # type: ignore[attr-defined]
    f = jit(counted)
    middle = (variable.min + variable.max) // 2
    for value in [*range(middle, middle + 6), *range(variable.min, variable.max + 1)]:
        expected = function(value)
        found = f(variable.bind(value))
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), err_msg=f"{variable.name} = {value}")
    assert f.captures == 1 and next(calls) <= 8
    return f


@pytest.mark.parametrize("device", devices())
def test_a_cache_of_keys_and_values(device: str) -> None:
    position = Variable("position", 0, SIZE - 1)
    keys, values = (Tensor.zeros(SIZE, WIDTH, device=device).realize() for _ in range(2))
    calls = itertools.count()

    @jit
    def step(q: Tensor, k: Tensor, v: Tensor, at: int) -> Tensor:
        next(calls)
        keys[at] = k
        values[at] = v
        return (q @ keys[:at + 1].T).softmax(-1) @ values[:at + 1]

    past_keys, past_values = (np.zeros((SIZE, WIDTH), np.float32) for _ in range(2))
    random = np.random.default_rng(1)
    for _ in range(2):
        for at in range(SIZE):
            q, k, v = random.standard_normal((3, WIDTH)).astype(np.float32)
            found = step(*(Tensor(x, device=device) for x in (q, k, v)), at=position.bind(at))
            past_keys[at], past_values[at] = k, v
            weights = past_keys[:at + 1] @ q
            weights = np.exp(weights - weights.max())
            expected = weights / weights.sum() @ past_values[:at + 1]
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert step.captures == 1 and next(calls) <= 7
    np.testing.assert_array_equal(keys.numpy(), past_keys)


def test_kernels_of_a_replay_and_what_they_do() -> None:
    n = Variable("n", 1, 64)
    x, _ = memory(64)
    f = jit(lambda size: (x[:size] * 2).sum())
    for value in range(5, 12):
        f(n.bind(value))
    for value in (20, 64, 3):
        weft.counters.reset()
        f(n.bind(value))
        assert (weft.counters.kernels, weft.counters.flops) == (1, 2 * value)
        assert weft.counters.bytes == 4 * (value + 1) or weft.counters.bytes == 4 * 65
    assert f.captures == 1


X = Tensor((np.arange(20 * 6) * 7 % 11 - 5).astype(np.float32).reshape(20, 6)).realize()
FORMS: dict[str, Callable[[int], Tensor]] = {
    "sum of a prefix": lambda n: X[:n].sum(),
    "prefix": lambda n: X[:n] * 2,
    "suffix": lambda n: X[n:] + 1,
    "row": lambda n: X[n] - 1,
    "column": lambda n: X.T[:, n],
    "window": lambda n: X[n:n + 4].max(0),
    "before the end": lambda n: X[-n:].sum(0),
    "one from the end": lambda n: X[-n] * 3,
    "zeros": lambda n: Tensor.zeros(n, 3) + 1,
    "full": lambda n: Tensor.full((2, n), 7),
    "counted": lambda n: Tensor.arange(n) * 2,
    "counted from": lambda n: Tensor.arange(n, 20),
    "expanded": lambda n: X[0].reshape(6, 1).expand(6, n) * 2,
    "reshaped": lambda n: (X[:n] + 1).reshape(n * 6),
    "reshaped by one": lambda n: (X[:n] + 1).reshape(-1, 3).sum(1),
    "split": lambda n: (X[:n] + 1).reshape(n, 2, 3).sum(2),
    "square": lambda n: X[:n] @ X[:n].T,
    "times": lambda n: X * n,
    "mean": lambda n: X[:n].mean(0),
    "softmax": lambda n: X[:n].softmax(0),
    "joined": lambda n: Tensor.cat(X[:n], X[n:n + 2]),
    "padded": lambda n: (X[:n] + 1).pad((0, 0, 0, 16 - n)) if n < 99 else X,
    "triangle": lambda n: (X[:n, :1] + X[:n, 0]).tril(),
    "running sum": lambda n: X[:n].cumsum(0),
    "place of the largest": lambda n: X[:n].argmax(0),
    "chosen": lambda n: X[Tensor.arange(n)],
    "where": lambda n: (Tensor.arange(20).reshape(20, 1) < n).where(X, 0),
    "its own size": lambda n: X[:n] * X[:n].shape[0],
    "as large as another": lambda n: X[:n] + Tensor.ones(*X[:n].shape),
    "half": lambda n: X[:(n + n) // 2].sum(),
    "written": lambda n: _written(n),
    "read where it was written": lambda n: _written(n)[n],
    "read beside": lambda n: _written(n)[n + 1:n + 3],
}


def _written(n: int) -> Tensor:
    y = X.clone()
    y[n] = 100
    y[n + 1] += y[n]
    return y


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    served(FORMS[form], Variable("n", 2, 15))


def test_sizes_of_one_are_served() -> None:
    served(lambda n: X[:n].softmax(0) @ X[:n].T, Variable("n", 1, 20))


def test_two_variables() -> None:
    a, b = Variable("a", 0, 9), Variable("b", 10, 20)
    calls = itertools.count()

    @jit
    def f(pair: dict[str, Any], scale: Tensor) -> list[Tensor]:
        next(calls)
        begin, end = pair["ends"]
        return [X[begin:end].sum(0) * scale, X[begin:end] @ X[:6]]

    values = X.numpy()
    random = np.random.default_rng(2)
    for i in range(60):
        begin, end = int(random.integers(0, 10)), int(random.integers(10, 21))
        total, product = f({"ends": (a.bind(begin), b.bind(end))}, scale=Tensor([float(i)]))
        np.testing.assert_array_equal(total.numpy(), values[begin:end].sum(0) * i)
        np.testing.assert_array_equal(product.numpy(), values[begin:end] @ values[:6])
    assert f.captures == 1 and next(calls) <= 12


def test_variables_that_went_together_and_part() -> None:
    a, b = Variable("a", 1, 20), Variable("b", 1, 20)
    f = jit(lambda n, m: X[:n].sum(0) + X[:m].sum(0) * 2)
    values = X.numpy()
    pairs = [(i, i + 1) for i in range(3, 10)] + [(5, 9), (4, 17), (12, 2), (20, 1), (7, 7)]
    for n, m in pairs:
        found = f(a.bind(n), b.bind(m)).numpy()
        np.testing.assert_array_equal(found, values[:n].sum(0) + values[:m].sum(0) * 2)


def test_what_the_function_asks_about_a_value() -> None:
    n = Variable("n", 0, 19)

    @jit
    def f(k: int) -> tuple[Tensor, str]:
        if k > 11:
            return X[:k].sum(0), "many"
        return (X[k] * 2, "even") if k % 2 == 0 else (X[k] * 3, "odd")

    values = X.numpy()
    for k in [*range(20), *range(19, -1, -1), *range(20)]:
        found, what = f(n.bind(k))
        expected = (values[:k].sum(0), "many") if k > 11 else (values[k] * 2, "even") if k % 2 == 0 else (values[k] * 3, "odd")
        assert what == expected[1]
        np.testing.assert_array_equal(found.numpy(), expected[0])


def test_what_looks_at_the_number_itself() -> None:
    n = Variable("n", 0, 19)
    rates = [0.5 * i for i in range(8)] + [3.5] * 12
    looks: list[Callable[[Any], Any]] = [
        lambda k: X[0] * rates[k], lambda k: X[0] * float(k), lambda k: X[0] + len(range(k)), lambda k: X[0] * (k / 2),
        lambda k: X[0] + (1 << k), lambda k: X[0] + {3: 4}.get(k, 5), lambda k: X[0] + len(f"{k}"),
        lambda k: Tensor([k, k * k]), lambda k: Tensor(np.arange(k)), lambda k: X[:k:2].sum(0), lambda k: X[:k + 2].squeeze(),
        lambda k: X[0] + len(X[:k]), lambda k: Tensor.stack(*X[:k + 1]), lambda k: Tensor.linspace(0, 1, k + 1),
        lambda k: sum(part.sum() for part in X[:k + 1].split(4)), lambda k: X[:k + 1].sort(0)[0],
    ]
    for look in looks:
        f = jit(look)
        for k in [2, 3, 4, 5, 6, 7, 8, 9, 12, 18, 0, 1, 19]:
            np.testing.assert_array_equal(f(n.bind(k)).numpy(), look(k).numpy(), err_msg=f"{k}")


def test_ends_of_slices_and_indices_out_of_bounds() -> None:
    n = Variable("n", 0, 40)
    inside = jit(lambda k: X[:10][:k].sum(0))
    at = jit(lambda k: X[:10][k] * 1)
    chosen = jit(lambda k: X[:10][Tensor.arange(k)] * 1)
    for k in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 40, 0, 1]:
        np.testing.assert_array_equal(inside(n.bind(k)).numpy(), X.numpy()[:10][:k].sum(0))
        if k < 10:
            np.testing.assert_array_equal(at(n.bind(k)).numpy(), X.numpy()[k])
        else:
            with pytest.raises(weft.IndexError):
                at(n.bind(k))
        if k <= 10:
            np.testing.assert_array_equal(chosen(n.bind(k)).numpy(), X.numpy()[:k])
        else:
            with pytest.raises(weft.IndexError):
                chosen(n.bind(k)).tolist()


def test_answers_that_differ_where_the_numbers_do_not() -> None:
    n = Variable("n", 0, 6)
    clipped = jit(lambda k: Tensor([1, 2])[:k] + Tensor([1, 1]))
    asked = jit(lambda k: X[k] * (2 if k > 2 else 3))
    for k in (4, 3, 2, 3, 2, 4, 3, 2, 1, 0, 6):
        if k > 0:
            assert clipped(n.bind(k)).shape == (2,)
        else:
            with pytest.raises(weft.ShapeError):
                clipped(n.bind(k))
        np.testing.assert_array_equal(asked(n.bind(k)).numpy(), X.numpy()[k] * (2 if k > 2 else 3))
    target = Tensor.zeros(2, 2).realize()

    @jit
    def write(value: Tensor, k: int) -> None:
        target[:k] = value

    for k in (4, 3, 2, 3, 2):
        write(Tensor([[1.0, 2.0], [3.0, 4.0]]), n.bind(k))
    with pytest.raises(weft.ShapeError):
        write(Tensor([[5.0, 6.0], [7.0, 8.0]]), n.bind(1))
    assert target.tolist() == [[1, 2], [3, 4]]


def test_reads_beside_writes_by_another_variable() -> None:
    a, b = Variable("a", 0, 9), Variable("b", 0, 9)

    @jit
    def f(i: int, j: int) -> Tensor:
        y = X.clone()
        y[i] = 50
        return y[j] * 1

    values = X.numpy()
    for i, j in [(0, 5), (1, 7), (2, 8), (3, 9), (1, 6), (2, 9), (4, 4), (9, 0), (5, 5), (8, 3), (0, 0)]:
        expected = np.full(6, 50) if i == j else values[j]
        np.testing.assert_array_equal(f(a.bind(i), b.bind(j)).numpy(), expected)


def test_results_live_on_and_lazy_readers_keep_what_they_read() -> None:
    n = Variable("n", 1, 20)
    total = Tensor.zeros(6).realize()

    @jit
    def add(k: int) -> tuple[Tensor, Tensor]:
        total.assign(total + X[:k].sum(0))
        return total, X[:k] + 1

    values, expected = X.numpy(), np.zeros(6, np.float32)
    kept: list[tuple[Tensor, np.ndarray]] = []
    for k in range(1, 21):
        before = total * 2  # lazy: of what this call overwrites
        wanted = expected * 2
        expected = expected + values[:k].sum(0)
        result, part = add(n.bind(k))
        assert result.shares_memory_with(total)
        kept.append((part, values[:k] + 1))
        np.testing.assert_array_equal(before.numpy(), wanted)
        np.testing.assert_array_equal(result.numpy(), expected)
    assert add.captures == 1
    for part, wanted in kept:
        np.testing.assert_array_equal(part.numpy(), wanted)


def test_results_are_memory_of_their_own() -> None:
    v = Variable("v", 1, 9)
    f = jit(lambda x, n: x.cumsum(0))
    for value in range(1, 6):
        out = f(Tensor([[1, 2, 3], [4, 5, 6]]), v.bind(value))
        flat = out.reshape(-1)  # a view, as of any tensor that an operation makes
        out[0, 0] = 99
        assert flat.tolist() == [99, 2, 3, 5, 7, 9]


def test_memory_that_is_shared_is_still_seen() -> None:
    n = Variable("n", 1, 6)

    @jit
    def f(a: Tensor, b: Tensor, k: int) -> Tensor:
        a[:k] = b[:k] + 1
        return b.sum()

    for shared in [False] * 6 + [True] * 4 + [False]:
        for k in range(1, 7):
            a = Tensor([0, 0, 0, 0, 0, 0])
            b = a if shared else Tensor([5, 5, 5, 5, 5, 5])
            expected = 30 if not shared else k
            assert f(a, b, n.bind(k)).item() == expected
            assert a.tolist() == [1 if shared else 6] * k + [0] * (6 - k)
    by_name = Tensor([1, 2, 3, 4, 5, 6])

    @jit
    def g(a: Tensor, k: int) -> Tensor:
        a[:k] = 0
        return by_name.sum()

    for k in (2, 3, 4, 5, 6):
        assert g(Tensor([1, 2, 3, 4, 5, 6]), n.bind(k)).item() == 21
    with pytest.raises(JitError, match="shares memory"):
        g(by_name, n.bind(2))


def test_memory_that_is_shared_is_seen_where_the_function_fails() -> None:
    n, x = Variable("n", 1, 9), Tensor([1, 2, 3, 4])

    @jit
    def f(a: Tensor, k: int) -> Tensor:
        a[0] = 9
        return (x * 2).reshape(k)

    f(Tensor([1, 2, 3, 4]), n.bind(4))
    with pytest.raises(JitError, match="shares memory"):
        f(x, n.bind(5))
    assert x.tolist() == [1, 2, 3, 4]


def test_other_shapes_of_arguments_are_other_captures() -> None:
    n = Variable("n", 1, 4)
    f = jit(lambda x, k: x[:k].sum())
    for length in (4, 7, 4, 9):
        for k in (1, 2, 3, 4, 2, 3, 1):
            assert f(Tensor.arange(length), n.bind(k)).item() == k * (k - 1) // 2


def test_gradients() -> None:
    n = Variable("n", 1, 20)
    weights = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], requires_grad=True)

    @jit
    def step(k: int) -> Tensor:
        weights.grad = None
        loss = (X[:k] @ weights).sum()
        loss.backward()
        return weights.grad * 1 if weights.grad is not None else loss

    for k in [*range(4, 21), 1, 2, 3]:
        np.testing.assert_array_equal(step(n.bind(k)).numpy(), X.numpy()[:k].sum(0))


def test_values_are_checked_at_the_call() -> None:
    n = Variable("n", 2, 4)
    f = jit(lambda a, b: X[:a].sum() + X[:b].sum())
    for value in (1, 5):
        with pytest.raises(weft.ShapeError, match=f"n is between 2 and 4; given is {value}"):
            f(n.bind(2), n.bind(value))
    for _ in range(4):
        with pytest.raises(JitError, match="n is bound to 2 and to 3 in one call"):
            f(n.bind(2), [n.bind(3)][0])
        f(n.bind(2), n.bind(2))


def test_variables_of_one_name_are_others_by_their_bounds() -> None:
    small, large = Variable("n", 1, 5), Variable("n", 1, 20)
    f = jit(lambda k: X[:k].sum(0))
    for variable, values in ((small, range(1, 6)), (large, range(1, 21))):
        for k in values:
            np.testing.assert_array_equal(f(variable.bind(k)).numpy(), X.numpy()[:k].sum(0))


def test_plain_ints_are_compared() -> None:
    n = Variable("n", 1, 20)

    @jit
    def f(k: int) -> Tensor:
        return X[:n.bind(k)].sum(0)

    for k in (3, 3, 3, 4, 5, 6, 7, 8, 9, 3, 20):
        np.testing.assert_array_equal(f(k).numpy(), X.numpy()[:k].sum(0))


def test_a_variable_by_name_is_compared() -> None:
    n = Variable("n", 1, 20)
    holder = {"k": n.bind(3)}
    f = jit(lambda: X[:holder["k"]].sum(0))
    for k in (3, 3, 3, 4, 5, 6, 7, 8, 3):
        holder["k"] = n.bind(k)
        np.testing.assert_array_equal(f().numpy(), X.numpy()[:k].sum(0))


def test_values_that_are_returned() -> None:
    n = Variable("n", 0, 19)
    f = jit(lambda k: (X[k] * 1, k, k + 1, X[:k + 1].shape))
    for k in (1, 2, 3, 4, 5, 6, 7, 19):
        row, same, next_one, shape = f(n.bind(k))
        assert (same, next_one, shape) == (k, k + 1, (k + 1, 6)) and type(next_one) is int
        assert isinstance(same, int) and not isinstance(same, WatchedInt)
        np.testing.assert_array_equal(row.numpy(), X.numpy()[k])


def test_ints_that_are_watched_are_ints() -> None:
    seen: list[Any] = []
    n, note = Variable("n", 0, 19), seen.append

    @jit
    def f(k: Any) -> Tensor:
        note((isinstance(k, int), isinstance(k, BoundVariable), k == 4, k != 4, 3 < k <= 4, k // 3, k % 3, -k, abs(k - 9),
              7 - k, 2 * k, k ** 2, k / 8, ~k, divmod(k, 3), max(k, 2), bool(k), hash(k), str(k), [0, 1, 2, 3, 9][k],
              k.variable == n, k.val, k.unbind() == (n, 4), k.bit_length(), round(k), sorted([k, 3]), k * 10**30 > 0))
        return X[k] * 1

    for _ in range(2):
        f(n.bind(4))
    assert len(seen) == 2 and seen[0] == seen[1]


def test_an_error_leaves_nothing_behind() -> None:
    n = Variable("n", 0, 30)
    x = Tensor.arange(20).realize()

    @jit
    def f(k: int) -> Tensor:
        x[k] = -1
        return x.sum()

    expected = np.arange(20)
    for k in [3, 4, 5, 6, 7, 8, 25, 9, 20, 10]:
        if k >= 20:
            with pytest.raises(weft.IndexError):
                f(n.bind(k))
            continue
        expected[k] = -1
        assert f(n.bind(k)).item() == expected.sum()
    assert x.tolist() == expected.tolist()
