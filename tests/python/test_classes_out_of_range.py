"""Classes that do not exist: losses, one_hot and their gradients fail, at the call where the classes are in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, jit, nn

ROWS, CLASSES = 3, 4
X = np.linspace(-1, 1, ROWS * CLASSES, dtype=np.float32).reshape(ROWS, CLASSES)


def at_hand(classes: Any, dtype: Any = "int32") -> Tensor:
    return Tensor(np.array(classes, dtype)).realize()


def lazy(classes: Any, dtype: Any = "int32") -> Tensor:
    given = np.array(classes, dtype)
    return Tensor(given) + Tensor(np.zeros_like(given))


Make = Callable[..., Tensor]
BOTH = pytest.mark.parametrize("make", [at_hand, lazy])

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": lambda x, y: x.cross_entropy(y),
    "cross_entropy, smoothed": lambda x, y: x.cross_entropy(y, label_smoothing=0.1),
    "cross_entropy, sum": lambda x, y: x.cross_entropy(y, reduction="sum"),
    "cross_entropy, none": lambda x, y: x.cross_entropy(y, reduction="none"),
    "nll_loss": lambda x, y: x.nll_loss(y),
    "nll_loss, weights": lambda x, y: x.nll_loss(y, weight=Tensor([1.0, 2.0, 3.0, 4.0])),
    "nll_loss, ignoring": lambda x, y: x.nll_loss(y, ignore_index=2),
    "nll_loss, ignoring a class that is none": lambda x, y: x.nll_loss(y, ignore_index=-7),
    "sparse_categorical_crossentropy": lambda x, y: x.sparse_categorical_crossentropy(y),
    "sparse_categorical_crossentropy, smoothed": lambda x, y: x.sparse_categorical_crossentropy(y, label_smoothing=0.2),
}


@BOTH
@pytest.mark.parametrize("bad", [CLASSES, -2, 2**31 - 1])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_a_class_that_does_not_exist(name: str, bad: int, make: Make) -> None:
    with pytest.raises(weft.IndexError, match=f"{bad} is out of bounds of axis 1 with size 4"):
        LOSSES[name](Tensor(X), make([0, bad, 1])).tolist()


@pytest.mark.parametrize("name", LOSSES)
def test_where_the_classes_are_in_memory_the_call_says_so(name: str) -> None:
    with pytest.raises(weft.IndexError, match=rf"^\[{name.split(',')[0]}\] 9 is out of bounds"):
        LOSSES[name](Tensor(X), at_hand([0, 9, 1]))


@BOTH
@pytest.mark.parametrize("bad", [CLASSES, -1])
def test_one_hot_of_a_class_that_does_not_exist(bad: int, make: Make) -> None:
    with pytest.raises(weft.IndexError, match=f"{bad} is out of bounds of axis 1 with size 4"):
        make([0, bad]).one_hot(CLASSES).tolist()
    with pytest.raises(weft.IndexError, match="has size 0"):
        make([0]).one_hot(0)
    assert make([3, 0]).one_hot(CLASSES).tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]


@BOTH
def test_images_of_classes(make: Make) -> None:
    x = Tensor(np.ones((2, CLASSES, 2, 2), np.float32))
    classes = [[[0, 1], [2, 3]], [[3, 2], [1, 4]]]
    with pytest.raises(weft.IndexError, match="4 is out of bounds of axis 1"):
        x.cross_entropy(make(classes)).item()


@BOTH
@pytest.mark.parametrize("dtype, bad", [("uint8", 200), ("int64", 2**40), ("int8", -128), ("uint64", 2**63)])
def test_classes_in_every_dtype(dtype: str, bad: int, make: Make) -> None:
    assert Tensor(X).cross_entropy(make([0, 3, 1], dtype)).item() == Tensor(X).cross_entropy(at_hand([0, 3, 1])).item()
    with pytest.raises(weft.IndexError, match="out of bounds of axis 1"):
        Tensor(X).cross_entropy(make([0, bad, 1], dtype)).item()


def reference(classes: list[int], ignored: int, weight: list[float]) -> float:
    rows = [(-X[i, c] * weight[c], weight[c]) for i, c in enumerate(classes) if c != ignored]
    return float(sum(a for a, _ in rows) / sum(b for _, b in rows))


@BOTH
def test_what_is_ignored_is_no_error(make: Make) -> None:
    weight = [1.0, 2.0, 3.0, 4.0]
    for ignored in (-100, -1, 2, 77):
        classes = [3, ignored, 0]
        x = Tensor(X).requires_grad_()
        loss = x.nll_loss(make(classes), weight=Tensor(weight), ignore_index=ignored)
        np.testing.assert_allclose(loss.item(), reference(classes, ignored, weight), rtol=1e-6)
        loss.backward()
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy()[1], np.zeros(CLASSES))
        np.testing.assert_allclose(x.grad.numpy()[0], [0, 0, 0, -4 / 5])
    assert Tensor(X).cross_entropy(make([0, -100, 1])).item() == Tensor(X[[0, 2]]).cross_entropy(at_hand([0, 1])).item()
    assert Tensor(X).sparse_categorical_crossentropy(make([0, -1, 1])).item() == pytest.approx(
        Tensor(X[[0, 2]]).cross_entropy(at_hand([0, 1])).item())


def test_infinite_elements_of_ignored_rows_do_not_count() -> None:
    x = Tensor(np.array([[-1.0, -2.0], [-np.inf, np.nan]], np.float32)).requires_grad_()
    loss = x.nll_loss(lazy([1, -1]), ignore_index=-1)
    loss.backward()
    assert loss.item() == 2.0 and x.grad is not None and x.grad.tolist() == [[0, -1], [0, 0]]


# ------------------------------------------------------------------------------------- what depends on it

GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **LOSSES,
    "rows": lambda x, y: x[y].sum(),
    "gather": lambda x, y: x.gather(0, y.unsqueeze(1)).sum(),
    "index_add": lambda x, y: x.index_add(0, y, Tensor(X) * x).sum(),
    "take": lambda x, y: x.take(y * CLASSES).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_gradient_fails_though_nobody_reads_the_loss(name: str) -> None:
    x = Tensor(X).requires_grad_()
    loss = GRADIENTS[name](x, lazy([0, 9, 1]))
    (loss.sum() if loss.ndim else loss).backward()
    assert x.grad is not None
    for _ in range(2):
        with pytest.raises(weft.IndexError, match="out of bounds"):
            x.grad.tolist()
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("make_optimizer", [nn.optim.SGD, nn.optim.Adam, nn.optim.AdamW])
@pytest.mark.parametrize("reads_loss", [False, True])
def test_weights_of_a_failed_step_are_never_read_as_data(make_optimizer: Any, reads_loss: bool) -> None:
    w, other = Tensor(X).requires_grad_(), Tensor(X).requires_grad_()
    optimizer = make_optimizer([w, other], lr=0.1)
    with Tensor.train():
        for classes in ([0, 1, 2], [0, CLASSES, 1]):
            optimizer.zero_grad()
            loss = w.cross_entropy(lazy(classes)) + other.sum()
            loss.backward()
            if reads_loss and classes[1] == CLASSES:
                with pytest.raises(weft.IndexError):
                    loss.item()
            try:
                optimizer.step()
            except weft.IndexError:
                assert classes[1] == CLASSES
    for _ in range(3):
        with pytest.raises(weft.IndexError, match="4 is out of bounds"):
            w.tolist()
        with pytest.raises(weft.IndexError):
            (w + 1).tolist()
    w.assign(Tensor.zeros(ROWS, CLASSES))
    assert w.sum().item() == 0


def test_each_replay_is_checked() -> None:
    w = Tensor(X).requires_grad_()

    @jit
    def step(classes: Tensor) -> Tensor:
        w.grad = None
        loss = w.cross_entropy(classes)
        loss.backward()
        assert w.grad is not None
        return w.grad + 0

    good = at_hand([0, 1, 2])
    expected = step(good).numpy().copy()
    for _ in range(3):
        np.testing.assert_array_equal(step(good).numpy(), expected)
    for bad in ([0, CLASSES, 1], [-1, 0, 0]):
        with pytest.raises(weft.IndexError, match="out of bounds of axis 1 with size 4"):
            step(at_hand(bad)).tolist()
    np.testing.assert_array_equal(step(good).numpy(), expected)


def test_places_of_pooling_are_not_counted_from_the_end() -> None:
    x = Tensor(np.ones((1, 1, 1, 1), np.float32))
    for make in (at_hand, lazy):
        with pytest.raises(weft.IndexError, match="-1 is out of bounds"):
            x.max_unpool2d(make([[[[-1]]]]), kernel_size=2).tolist()
        assert x.max_unpool2d(make([[[[3]]]]), kernel_size=2).flatten().tolist() == [0, 0, 0, 1]


def test_classes_that_are_surely_in_range_are_not_checked() -> None:
    def moved(classes: Callable[[], Tensor]) -> int:  # a check has an output
        loss = Tensor(X).realize().cross_entropy(classes())
        weft.counters.reset()
        loss.realize()
        return weft.counters.bytes

    assert moved(lambda: at_hand([0, 1, 2])) == moved(lambda: lazy([0, 1, 2]) % CLASSES) < moved(lambda: lazy([0, 1, 2]))
