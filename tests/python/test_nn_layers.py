"""Layers against PyTorch's with the same weights: values, and training for a few steps."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
from weft import Tensor, nn
from weft.nn.state import get_parameters, get_state_dict, load_state_dict

torch = pytest.importorskip("torch")


class Layer(NamedTuple):
    name: str
    mine: Callable[[], Any]
    theirs: Callable[[], Any]
    inputs: tuple[tuple[int, ...], ...]


def attention(size: int, heads: int, bias: bool = True) -> Any:
    class Attention(torch.nn.MultiheadAttention):  # type: ignore[misc]
        def forward(self, x: Any, key: Any = None) -> Any:
            key = x if key is None else key
            return super().forward(x, key, key, need_weights=False)[0]

    return Attention(size, heads, bias=bias, batch_first=True)


class ChannelsLast(torch.nn.LayerNorm):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


t = torch.nn
LAYERS = [
    Layer("Linear", lambda: nn.Linear(3, 5), lambda: t.Linear(3, 5), ((4, 3),)),
    Layer("Linear without bias", lambda: nn.Linear(3, 5, bias=False), lambda: t.Linear(3, 5, bias=False), ((3,),)),
    Layer("Linear of three axes", lambda: nn.Linear(3, 1), lambda: t.Linear(3, 1), ((2, 4, 3),)),
    Layer("Conv1d", lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
          lambda: t.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), ((2, 4, 7),)),
    Layer("Conv2d", lambda: nn.Conv2d(3, 4, (3, 2), padding=(1, 0)),
          lambda: t.Conv2d(3, 4, (3, 2), padding=(1, 0)), ((2, 3, 5, 6),)),
    Layer("Conv2d same", lambda: nn.Conv2d(2, 4, (3, 4), padding="same", dilation=(1, 2), bias=False),
          lambda: t.Conv2d(2, 4, (3, 4), padding="same", dilation=(1, 2), bias=False), ((1, 2, 6, 7),)),
    Layer("Conv2d depthwise", lambda: nn.Conv2d(4, 4, 3, stride=2, groups=4),
          lambda: t.Conv2d(4, 4, 3, stride=2, groups=4), ((1, 4, 7, 7),)),
    Layer("Conv2d of three axes", lambda: nn.Conv2d(2, 3, (2, 2, 2)), lambda: t.Conv3d(2, 3, 2), ((1, 2, 3, 4, 3),)),
    Layer("ConvTranspose1d", lambda: nn.ConvTranspose1d(3, 2, 3, stride=2, padding=1, output_padding=1),
          lambda: t.ConvTranspose1d(3, 2, 3, stride=2, padding=1, output_padding=1), ((2, 3, 5),)),
    Layer("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
          lambda: t.ConvTranspose2d(4, 6, 3, stride=2, groups=2), ((1, 4, 3, 4),)),
    Layer("BatchNorm", lambda: nn.BatchNorm2d(3), lambda: t.BatchNorm2d(3), ((4, 3, 2, 3),)),
    Layer("BatchNorm of two axes", lambda: nn.BatchNorm(3, eps=1e-3), lambda: t.BatchNorm1d(3, eps=1e-3), ((5, 3),)),
    Layer("BatchNorm of all batches", lambda: nn.BatchNorm3d(2, momentum=None),
          lambda: t.BatchNorm3d(2, momentum=None), ((2, 2, 2, 2, 2),)),
    Layer("BatchNorm that tracks nothing", lambda: nn.BatchNorm(3, affine=False, track_running_stats=False),
          lambda: t.BatchNorm1d(3, affine=False, track_running_stats=False), ((5, 3, 4),)),
    Layer("LayerNorm", lambda: nn.LayerNorm(6), lambda: t.LayerNorm(6), ((2, 3, 6),)),
    Layer("LayerNorm of two axes", lambda: nn.LayerNorm((3, 6), eps=1e-3), lambda: t.LayerNorm((3, 6), eps=1e-3),
          ((2, 3, 6),)),
    Layer("LayerNorm that is not affine", lambda: nn.LayerNorm(6, elementwise_affine=False),
          lambda: t.LayerNorm(6, elementwise_affine=False), ((2, 6),)),
    Layer("LayerNorm2d", lambda: nn.LayerNorm2d(3), lambda: ChannelsLast(3), ((2, 3, 4, 5),)),
    Layer("GroupNorm", lambda: nn.GroupNorm(2, 6), lambda: t.GroupNorm(2, 6), ((3, 6, 2, 2),)),
    Layer("GroupNorm that is not affine", lambda: nn.GroupNorm(3, 6, affine=False),
          lambda: t.GroupNorm(3, 6, affine=False), ((2, 6),)),
    Layer("InstanceNorm", lambda: nn.InstanceNorm(4), lambda: t.InstanceNorm2d(4, affine=True), ((2, 4, 3, 3),)),
    Layer("RMSNorm", lambda: nn.RMSNorm(6), lambda: t.RMSNorm(6, eps=1e-6), ((2, 3, 6),)),
    Layer("LSTMCell", lambda: nn.LSTMCell(3, 4), lambda: t.LSTMCell(3, 4), ((2, 3),)),
    Layer("LSTMCell without bias", lambda: nn.LSTMCell(3, 4, bias=False), lambda: t.LSTMCell(3, 4, bias=False),
          ((2, 3),)),
    Layer("GRUCell", lambda: nn.GRUCell(3, 4), lambda: t.GRUCell(3, 4), ((2, 3), (2, 4))),
    Layer("GRUCell at the start", lambda: nn.GRUCell(3, 4, bias=False), lambda: t.GRUCell(3, 4, bias=False), ((2, 3),)),
    Layer("MultiHeadAttention", lambda: nn.MultiHeadAttention(8, 2), lambda: attention(8, 2), ((2, 5, 8),)),
    Layer("MultiHeadAttention of two inputs", lambda: nn.MultiHeadAttention(6, 3, bias=False),
          lambda: attention(6, 3, bias=False), ((2, 5, 6), (2, 4, 6))),
]


@pytest.fixture(autouse=True)
def not_training() -> Iterator[None]:
    before, Tensor.training = Tensor.training, False
    yield
    Tensor.training = before


def pair(layer: Layer) -> tuple[Any, Any]:
    """Mine with the weights of theirs, none of which is what it starts with."""
    torch.manual_seed(0)
    mine, theirs = layer.mine(), layer.theirs()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += torch.rand_like(parameter) * 0.1
    load_state_dict(mine, {name: Tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    return mine, theirs


def inputs_of(layer: Layer, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in layer.inputs]


def close(mine: Any, theirs: Any, tolerance: float = 2e-5) -> None:
    for a, b in zip(mine, theirs) if isinstance(theirs, tuple) else [(mine, theirs)]:
        assert a.shape == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("is_training", [False, True], ids=["", "training"])
@pytest.mark.parametrize("layer", LAYERS, ids=[layer.name for layer in LAYERS])
def test_values(layer: Layer, is_training: bool) -> None:
    mine, theirs = pair(layer)
    Tensor.training = is_training
    theirs.train(is_training)
    for seed in range(2):
        values = inputs_of(layer, seed)
        close(mine(*map(Tensor, values)), theirs(*map(torch.tensor, values)))
    for name, value in theirs.state_dict().items():  # the running ones
        close(get_state_dict(mine)[name], value)


TRAINED = [layer for layer in LAYERS if list(layer.theirs().parameters())]


@pytest.mark.parametrize("layer", TRAINED, ids=[layer.name for layer in TRAINED])
def test_training(layer: Layer) -> None:
    mine, theirs = pair(layer)
    Tensor.training = True
    my_steps = nn.optim.SGD(get_parameters(mine), lr=0.05, momentum=0.9)
    their_steps = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9)
    for seed in range(3):
        values = inputs_of(layer, seed)
        my_steps.zero_grad()
        their_steps.zero_grad()
        out, expected = mine(*map(Tensor, values)), theirs(*map(torch.tensor, values))
        out, expected = (out[0], expected[0]) if isinstance(out, tuple) else (out, expected)
        shift = np.random.default_rng(9).normal(size=out.shape).astype(np.float32)
        (out - Tensor(shift)).square().mean().backward()
        (expected - torch.tensor(shift)).square().mean().backward()
        my_steps.step()
        their_steps.step()
    for name, value in theirs.state_dict().items():
        close(get_state_dict(mine)[name], value, 1e-4)


def test_embedding() -> None:
    mine, theirs = nn.Embedding(7, 3), t.Embedding(7, 3)
    load_state_dict(mine, {"weight": Tensor(theirs.weight.detach().numpy())})
    index = np.array([[1, 6, 1], [0, 0, 2]])
    close(mine(Tensor(index)), theirs(torch.tensor(index)))
    (mine(Tensor(index)) * Tensor.arange(3)).sum().backward()
    (theirs(torch.tensor(index)) * torch.arange(3)).sum().backward()
    close(mine.weight.grad, theirs.weight.grad)
    with pytest.raises(weft.DTypeError, match="integers are needed"):
        mine(Tensor([1.0]))
    with pytest.raises(weft.IndexError, match="7 is out of bounds"):
        mine(Tensor([7])).realize()


def test_attention_masks() -> None:
    torch.manual_seed(0)
    mine, theirs = nn.MultiHeadAttention(8, 2), t.MultiheadAttention(8, 2, batch_first=True)
    load_state_dict(mine, {name: Tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    y = torch.tensor(x)
    expected = theirs(y, y, y, attn_mask=hidden, need_weights=False)[0]
    close(mine(Tensor(x), is_causal=True), expected)
    close(mine(Tensor(x), attn_mask=Tensor((~hidden).numpy())), expected)


def test_dropout() -> None:
    layer, x = nn.Dropout(0.25), Tensor.ones(100, 100)
    assert layer(x).mean().item() == 1
    Tensor.training = True
    kept = layer(x)
    assert 0.7 < (kept > 0).cast("float32").mean().item() < 0.8
    assert abs(kept.max().item() - 1 / 0.75) < 1e-6
    with pytest.raises(ValueError, match=r"\[Dropout\] a probability of 2"):
        nn.Dropout(2)


NORMS = [(nn.LayerNorm, (8,), t.LayerNorm), (nn.RMSNorm, (8,), lambda n: t.RMSNorm(n, eps=1e-6)),
         (nn.GroupNorm, (2, 4), t.GroupNorm), (nn.BatchNorm, (4,), t.BatchNorm1d)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize(("mine", "arguments", "theirs"), NORMS, ids=[n[0].__name__ for n in NORMS])
def test_norms_keep_the_dtype(mine: Any, arguments: Any, theirs: Any, dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32) * 300
    Tensor.training = True
    out = mine(*arguments)(Tensor(x).cast(dtype))
    assert out.dtype.name == dtype
    expected = theirs(*arguments)(torch.tensor(x))
    np.testing.assert_allclose(out.cast("float32").numpy(), expected.detach().numpy(), atol=0.03)


def test_first_weights() -> None:
    for layer, inputs in ((nn.Linear(64, 200), 64), (nn.Conv2d(4, 200, 4), 64), (nn.Conv1d(16, 200, 4), 64)):
        for name, tensor in get_state_dict(layer).items():
            values = tensor.numpy()
            bound = 1 / math.sqrt(inputs)
            assert bound * 0.9 < abs(values).max() <= bound, name
            assert abs(values.mean()) < bound / 5


def test_which_tensors_are_trained() -> None:
    layer = nn.BatchNorm(3)
    assert {n: tensor.requires_grad for n, tensor in get_state_dict(layer).items()} == {
        "weight": True, "bias": True, "running_mean": False, "running_var": False, "num_batches_tracked": False}
    layers = [nn.Linear(1, 2), nn.Conv2d(1, 1, 1), nn.LSTMCell(1, 1), nn.Embedding(2, 2), nn.RMSNorm(1)]
    assert all(tensor.requires_grad for tensor in get_parameters(layers))


WRONG = [
    (lambda: nn.LayerNorm(3)(Tensor.ones(2, 4)), weft.ShapeError, r"\[LayerNorm\] shape \(2, 4\); the last axes"),
    (lambda: nn.GroupNorm(2, 3), weft.ShapeError, r"\[GroupNorm\] 3 channels do not divide into 2 groups"),
    (lambda: nn.GroupNorm(1, 3)(Tensor.ones(2, 4)), weft.ShapeError, r"\[GroupNorm\] shape \(2, 4\); 3 channels"),
    (lambda: nn.Conv2d(3, 4, 1, groups=2), weft.ShapeError, r"\[Conv2d\] 3 channels to 4 do not divide"),
    (lambda: nn.Conv2d(3, 4, 1, padding="full"), ValueError, r"\[Conv2d\] padding 'full'"),
    (lambda: nn.Conv2d(3, 4, 1, 2, padding="same"), ValueError, r"\[Conv2d\] padding 'same' of stride 2"),
    (lambda: nn.BatchNorm(3)(Tensor.ones(3)), weft.ShapeError, r"\[BatchNorm\] a tensor of 1 axes"),
    (lambda: nn.MultiHeadAttention(5, 2), weft.ShapeError, r"\[MultiHeadAttention\] 5 channels"),
    (lambda: nn.Linear(3, 2)(Tensor.ones(4)), weft.ShapeError, "linear|matmul"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_batchnorm_of_one_value_has_no_variance() -> None:
    layer = nn.BatchNorm(2)
    Tensor.training = True
    with pytest.raises(weft.ShapeError, match="1 value per channel"):
        layer(Tensor.ones(1, 2))
    assert layer.num_batches_tracked.item() == 0


def test_steps_compute_running_values() -> None:
    layer = nn.BatchNorm(2)
    optimizer = nn.optim.SGD(get_parameters(layer))
    Tensor.training = True
    for _ in range(3):
        layer(Tensor.ones(4, 2)).sum().backward()
        optimizer.step()
        assert layer.running_mean.is_realized() and layer.num_batches_tracked.is_realized()
    assert layer.num_batches_tracked.item() == 3


def test_running_values_that_nobody_reads_do_not_grow() -> None:
    layer = nn.BatchNorm(2)
    Tensor.training = True
    x = Tensor.arange(8, dtype="float32").reshape(4, 2).realize()
    held: list[tuple[int, int]] = []
    for _ in range(1000):
        layer(x).realize()
        held.append((weft.counters.live_values, weft.counters.live_bytes))
    for counts in zip(*held, strict=True):
        assert max(counts[500:]) <= max(counts[:100])
    assert layer.num_batches_tracked.item() == 1000
    np.testing.assert_allclose(layer.running_mean.numpy(), [3, 4], rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), [20 / 3, 20 / 3], rtol=1e-5)
