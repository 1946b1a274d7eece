"""Layers of products: linear maps, tables, recurrent cells and attention."""

from __future__ import annotations

import math
from typing import Any

from weft._core import Tensor
from weft.errors import DTypeError, ShapeError
from weft.nn._parameters import uniform


class Linear:
    """x @ weight.T + bias, along the last axis.

    >>> from weft import nn
    >>> layer = nn.Linear(2, 1)
    >>> _ = layer.weight.assign([[3.0, 4.0]]), layer.bias.assign([0.5])
    >>> layer(Tensor([[1.0, 0.0], [1.0, 1.0]])).tolist()
    [[3.5], [7.5]]
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in_features) if in_features > 0 else 0.0
        self.weight = uniform((out_features, in_features), bound)
        self.bias = uniform((out_features,), bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class Embedding:
    """Rows of a table by their numbers.

    >>> from weft import nn
    >>> table = nn.Embedding(10, 4)
    >>> table(Tensor([[1, 5, 5]])).shape
    (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.vocab_sz, self.embed_sz = vocab_size, embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size).requires_grad_()

    def __call__(self, idx: Tensor) -> Tensor:
        if not idx.dtype.is_int:
            raise DTypeError(f"[Embedding] indices of {idx.dtype.name}; integers are needed")
        return self.weight[idx]


class Dropout:
    """While training, elements are 0 with probability p and the others over 1 - p; else x itself."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"[Dropout] a probability of {p}; 0 to 1 is allowed")
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


class LSTMCell:
    """One step of a long short-term memory: a new (h, c) from an input and the last one, which is zeros at
    the start. Its gates lie in weights as in PyTorch: input, forget, cell, output.

    >>> from weft import nn
    >>> h, c = nn.LSTMCell(3, 5)(Tensor.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = uniform((hidden_size * 4, input_size), bound)
        self.weight_hh = uniform((hidden_size * 4, hidden_size), bound)
        self.bias_ih = uniform((hidden_size * 4,), bound) if bias else None
        self.bias_hh = uniform((hidden_size * 4,), bound) if bias else None

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = hc or (_first_state(x, self.weight_hh),) * 2
        gates = x.linear(self.weight_ih.T, self.bias_ih) + h.linear(self.weight_hh.T, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=-1)
        new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * new_c.tanh(), new_c


class GRUCell:
    """One step of a gated recurrent unit: a new h from an input and the last one, which is zeros at the
    start. Its gates lie in weights as in PyTorch: reset, update, new."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = uniform((hidden_size * 3, input_size), bound)
        self.weight_hh = uniform((hidden_size * 3, hidden_size), bound)
        self.bias_ih = uniform((hidden_size * 3,), bound) if bias else None
        self.bias_hh = uniform((hidden_size * 3,), bound) if bias else None

    def __call__(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        last = _first_state(x, self.weight_hh) if h is None else h
        r, z, n = x.linear(self.weight_ih.T, self.bias_ih).chunk(3, dim=-1)
        r_h, z_h, n_h = last.linear(self.weight_hh.T, self.bias_hh).chunk(3, dim=-1)
        update = (z + z_h).sigmoid()
        new = (n + (r + r_h).sigmoid() * n_h).tanh()
        return new + update * (last - new)


def _first_state(x: Tensor, weight: Tensor) -> Tensor:
    return Tensor.zeros(*x.shape[:-1], weight.shape[1], dtype=weight.dtype, device=weight.device)


class MultiHeadAttention:
    """Attention of several heads over (batch, length, embed_dim): queries, keys and values are linear maps
    of x, or of `key` and `value`; the result is mapped once more. The weights of the three maps are one, as
    in PyTorch's MultiheadAttention.

    >>> from weft import nn
    >>> nn.MultiHeadAttention(8, 2)(Tensor.ones(1, 3, 8), is_causal=True).shape
    (1, 3, 8)
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        if embed_dim % num_heads != 0:
            raise ShapeError(f"[MultiHeadAttention] {embed_dim} channels do not divide into {num_heads} heads")
        self.num_heads, self.dropout = num_heads, dropout
        self.in_proj_weight = uniform((3 * embed_dim, embed_dim), math.sqrt(6 / (4 * embed_dim)))
        self.in_proj_bias = uniform((3 * embed_dim,), 0.0) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)

    def __call__(self, x: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                 attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        key = x if key is None else key
        value = key if value is None else value
        weights = self.in_proj_weight.chunk(3)
        biases: Any = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (self._heads(t.linear(w.T, b)) for t, w, b in zip((x, key, value), weights, biases))
        dropout = self.dropout if Tensor.training else 0.0
        out = q.scaled_dot_product_attention(k, v, attn_mask=attn_mask, dropout_p=dropout, is_causal=is_causal)
        return self.out_proj(out.transpose(1, 2).reshape(x.shape))

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.num_heads, x.shape[2] // self.num_heads).transpose(1, 2)
