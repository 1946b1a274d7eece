"""What functions, reductions, sorting and losses refuse, at the call and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft import Tensor

x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
classes = Tensor([0, 2])


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: x.gelu("fast"), ValueError, r"\[gelu\] approximate is 'tanh' or 'none', not 'fast'"),
    (lambda: x.celu(0.0), ValueError, r"\[celu\] alpha is 0"),
    (lambda: x.div(2, rounding_mode="up"), weft.DTypeError, r"\[div\] rounding_mode is None, 'trunc' or 'floor', not 'up'"),
    (lambda: x.clamp(), weft.ShapeError, r"\[clamp\] min_ or max_ is needed"),
    (lambda: Tensor([2]) ** -1, weft.DTypeError, r"\[pow\] int32 to the power -1 is no integer"),
    (lambda: x.atan2(Tensor([1.0, 2.0])), weft.ShapeError, r"\[atan2\] the shapes \(2,3\) and \(2\) do not broadcast"),
    (lambda: x.softmax(2), weft.IndexError, r"\[softmax\] there is no axis 2; allowed are -2 to 1"),
    (lambda: Tensor(1.0).log_softmax(1), weft.IndexError, r"\[log_softmax\] there is no axis 1"),
    (lambda: x.argmax(-3), weft.IndexError, r"\[argmax\] there is no axis -3"),
    (lambda: Tensor.zeros(2, 0).argmin(1), weft.ShapeError, r"\[argmin\] \(2,0\) has no element along the axis"),
    (lambda: Tensor.zeros(0).argmax(), weft.ShapeError, r"\[argmax\] \(0\) has no element"),
    (lambda: x.var(axis=(0, 0)), weft.ShapeError, r"axis 0 is given twice"),
    (lambda: x.cumsum(2), weft.IndexError, r"\[cumsum\] there is no axis 2"),
    (lambda: x.cummax(5), weft.IndexError, r"\[cummax\] there is no axis 5"),
    (lambda: x.sort(2), weft.IndexError, r"\[sort\] there is no axis 2"),
    (lambda: x.topk(4), weft.ShapeError, r"\[topk\] k is 4; allowed are 0 to 3"),
    (lambda: x.topk(-1), weft.ShapeError, r"\[topk\] k is -1; allowed are 0 to 3"),
    (lambda: x.cross_entropy(classes, reduction="all"), ValueError,
     r"\[cross_entropy\] reduction is 'mean', 'sum' or 'none', not 'all'"),
    (lambda: x.cross_entropy(Tensor([0, 1, 2])), weft.ShapeError,
     r"\[cross_entropy\] \(2,3\) has classes of shape \(2\); given are \(3\)"),
    (lambda: x.cross_entropy(Tensor([0.5, 0.5])), weft.ShapeError, r"\[cross_entropy\] the shapes of both are the same"),
    (lambda: x.cross_entropy(classes, label_smoothing=1.5), ValueError, r"label_smoothing is from 0 to 1; given is 1.5"),
    (lambda: x.nll_loss(classes, weight=Tensor([1.0])), weft.ShapeError,
     r"\[nll_loss\] \(2,3\) has weights of shape \(3\); given are \(1\)"),
    (lambda: x.binary_crossentropy(classes), weft.ShapeError, r"\[binary_crossentropy\] the shapes of both are the same"),
    (lambda: x.sparse_categorical_crossentropy(Tensor([1])), weft.ShapeError,
     r"\[sparse_categorical_crossentropy\] the classes of \(2,3\) are along its last axis; given are \(1\)"),
])
def test_refused(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
