"""Elementwise functions: the table of tests/python/op_table.py."""

from __future__ import annotations

import torch

from op_table import BINARY, Op

OPS = [
    Op("exp", lambda x: x.exp(), torch.exp, grad=True, special=True),
    Op("maximum", lambda x, y: x.maximum(y), torch.maximum, BINARY, grad=True, special=True, signs=False),
]
