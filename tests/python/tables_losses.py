"""Losses: the table of tests/python/op_table.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from weft import Tensor

from op_table import Op

DTYPES = ("float32", "float64")
SAME = (((7,), (7,)), ((3, 5), (3, 5)), ((2, 3, 4), (2, 3, 4)), ((), ()))
PROBABILITIES: Any = ((0.02, 0.98), (0.02, 0.98))
# Logits with classes along axis 1, and the classes.
CLASSES = (((3, 5), (3,)), ((2, 5, 4), (2, 4)), ((5,), ()))
LAST = (((3, 5), (3,)), ((2, 3, 5), (2, 3)))
INDICES: Any = ((-3.0, 3.0), (0, 4))
FIXED = (None, "int64")
WEIGHT = [0.5, 1.0, 2.0, 0.25, 3.0]


def weight(x: Any) -> Any:
    return Tensor(WEIGHT, dtype=x.dtype, device=x.device) if isinstance(x, Tensor) else torch.tensor(WEIGHT, dtype=x.dtype)


def sparse(x: torch.Tensor, y: torch.Tensor, ignore_index: int = -1, **options: Any) -> torch.Tensor:
    return F.cross_entropy(x.movedim(-1, 1), y, ignore_index=ignore_index, **options)


def binary(reduction: str) -> list[Op]:
    return [
        Op(f"binary_crossentropy_{reduction}", lambda x, y: x.binary_crossentropy(y, reduction=reduction),
           partial(F.binary_cross_entropy, reduction=reduction), SAME, domain=PROBABILITIES, grad=True, dtypes=DTYPES),
        Op(f"binary_crossentropy_logits_{reduction}",
           lambda x, y: x.binary_crossentropy_logits(y, reduction=reduction),
           partial(F.binary_cross_entropy_with_logits, reduction=reduction), SAME,
           domain=((-9.0, 9.0), (0.0, 1.0)), grad=True, dtypes=(*DTYPES, "bfloat16")),
    ]


def of_classes(reduction: str) -> list[Op]:
    return [
        Op(f"cross_entropy_{reduction}", lambda x, y: x.cross_entropy(y, reduction=reduction),
           partial(F.cross_entropy, reduction=reduction), CLASSES, domain=INDICES, fixed=FIXED, grad=True, dtypes=DTYPES),
        Op(f"cross_entropy_smooth_{reduction}",
           lambda x, y: x.cross_entropy(y, reduction=reduction, label_smoothing=0.2),
           partial(F.cross_entropy, reduction=reduction, label_smoothing=0.2), CLASSES, domain=INDICES, fixed=FIXED,
           grad=True, dtypes=DTYPES),
        Op(f"cross_entropy_probabilities_{reduction}",
           lambda x, y: x.cross_entropy(y, reduction=reduction, label_smoothing=0.1),
           partial(F.cross_entropy, reduction=reduction, label_smoothing=0.1),
           (((3, 5), (3, 5)), ((2, 3, 4), (2, 3, 4)), ((5,), (5,))), domain=((-3.0, 3.0), (0.0, 1.0)), grad=True,
           dtypes=DTYPES),
        Op(f"nll_loss_{reduction}", lambda x, y: x.nll_loss(y, reduction=reduction),
           partial(F.nll_loss, reduction=reduction), CLASSES, domain=INDICES, fixed=FIXED, grad=True, dtypes=DTYPES),
        Op(f"nll_loss_weight_{reduction}",
           lambda x, y: x.nll_loss(y, weight=weight(x), ignore_index=2, reduction=reduction),
           lambda x, y: F.nll_loss(x, y, weight(x), ignore_index=2, reduction=reduction), CLASSES[:2], domain=INDICES,
           fixed=FIXED, grad=True, dtypes=DTYPES),
        Op(f"sparse_categorical_crossentropy_{reduction}",
           lambda x, y: x.sparse_categorical_crossentropy(y, reduction=reduction),
           partial(sparse, reduction=reduction), LAST, domain=((-3.0, 3.0), (-1, 4)), fixed=FIXED, grad=True,
           dtypes=DTYPES),
        Op(f"sparse_categorical_crossentropy_smooth_{reduction}",
           lambda x, y: x.sparse_categorical_crossentropy(y, 1, 0.3, reduction),
           partial(sparse, ignore_index=1, label_smoothing=0.3, reduction=reduction), LAST, domain=INDICES, fixed=FIXED,
           grad=True, dtypes=DTYPES),
    ]


OPS = [op for reduction in ("mean", "sum", "none") for op in (*binary(reduction), *of_classes(reduction))] + [
    Op("binary_crossentropy_logits_weight",
       lambda x, y: x.binary_crossentropy_logits(y, pos_weight=weight(x)),
       lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=weight(x)), (((3, 5), (3, 5)),),
       domain=((-9.0, 9.0), (0.0, 1.0)), grad=True, dtypes=DTYPES),
]
