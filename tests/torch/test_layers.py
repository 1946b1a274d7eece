"""Layers of torch.nn on the device: values, gradients and what they write, as on the CPU, by weft's kernels alone."""
import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("weft.torch")

import torch.nn.functional as F
from torch import nn


@pytest.fixture(autouse=True)
def no_fallbacks():
    torch.weft.reset_counters()
    yield
    assert torch.weft.counters()["fallback"] == {}


def assert_same(function, *inputs, tolerance=1e-4):
    """The same results and gradients on both devices."""
    found = {}
    for device in ("cpu", "weft"):
        given = [t.detach().to(device).requires_grad_(t.is_floating_point()) for t in inputs]
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        torch.manual_seed(1)
        weights = [torch.randn(r.shape).to(device, r.dtype) for r in results]
        gradients = torch.autograd.grad(results, [t for t in given if t.requires_grad], weights)
        found[device] = [t.detach().cpu() for t in (*results, *gradients)]
    for of_weft, of_cpu in zip(found["weft"], found["cpu"], strict=True):
        torch.testing.assert_close(of_weft, of_cpu, rtol=tolerance, atol=tolerance)


def train(module, inputs, device, steps=2):
    """States and outputs of a module that trains on sums of squares."""
    module = copy.deepcopy(module).to(device)
    optimizer = torch.optim.SGD(module.parameters(), 0.01, foreach=False)
    for _ in range(steps):
        optimizer.zero_grad()
        out = module(*[t.to(device) for t in inputs])
        out = out[0] if isinstance(out, tuple) else out
        (out * out).mean().backward()
        optimizer.step()
    return [out.detach().cpu(), *[t.detach().cpu() for t in module.state_dict().values()]]


def assert_trains(module, *inputs, tolerance=1e-4):
    for of_weft, of_cpu in zip(train(module, inputs, "weft"), train(module, inputs, "cpu"), strict=True):
        torch.testing.assert_close(of_weft, of_cpu, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}, {"groups": 4, "padding": 2}])
def test_convolutions(options):
    x, w, b = torch.randn(2, 4, 9, 8), torch.randn(6 if options.get("groups") != 4 else 4, 4 // options.get("groups", 1), 3, 3), None
    b = torch.randn(w.shape[0])
    assert_same(lambda x, w, b: F.conv2d(x, w, b, **options), x, w, b)
    assert_same(lambda x, w, b: F.conv1d(x[:, :, 0], w[:, :, 0], b, **options), x, w, b)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "groups": 2}])
def test_transposed_convolutions(options):
    x, w = torch.randn(2, 4, 5, 6), torch.randn(4, 3, 3, 3)
    b = torch.randn(3 * options.get("groups", 1))
    assert_same(lambda x, w, b: F.conv_transpose2d(x, w, b, **options), x, w, b)


def test_channels_last_convolution_keeps_its_layout():
    x = torch.randn(2, 3, 8, 8).to("weft").to(memory_format=torch.channels_last)
    y = nn.Conv2d(3, 4, 3).to("weft")(x)
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_batch_norm_writes_its_statistics():
    assert_trains(nn.BatchNorm2d(3), torch.randn(4, 3, 5, 5) * 2 + 1)
    assert_trains(nn.BatchNorm1d(3).eval(), torch.randn(4, 3))


def test_batch_norm_that_fails_writes_nothing():
    mean = torch.zeros(4, device="weft")
    with pytest.raises(RuntimeError, match="on the same device"):
        F.batch_norm(torch.randn(2, 4, 5).to("weft"), mean, torch.ones(4), training=True)
    assert mean.tolist() == [0.0] * 4


def test_batch_norm_out_writes_its_statistics():
    x, found = torch.randn(4, 3, 5), {}
    for device in ("cpu", "weft"):
        mean, var = torch.zeros(3).to(device), torch.ones(3).to(device)
        out = tuple(torch.empty(0).to(device) for _ in range(3))
        torch.native_batch_norm(x.to(device), None, None, mean, var, True, 0.1, 1e-5, out=out)
        found[device] = [t.cpu() for t in (*out, mean, var)]
    torch.testing.assert_close(found["weft"], found["cpu"])


def test_layer_norm_of_one_element_is_its_bias():
    layer = nn.LayerNorm(1).to("weft")
    assert layer(torch.randn(4, 1).to("weft")).cpu().tolist() == [[0.0]] * 4


@pytest.mark.parametrize("norm", [nn.LayerNorm(6), nn.RMSNorm(6), nn.GroupNorm(2, 4)])
def test_norms(norm):
    assert_trains(norm, torch.randn(3, 4, 6))


@pytest.mark.parametrize("case", ["plain", "causal", "mask", "bool", "gqa", "scale"])
def test_attention(case):
    heads = 2 if case == "gqa" else 4
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, heads, 7, 8), torch.randn(2, heads, 7, 8)
    options = {"causal": {"is_causal": True}, "gqa": {"enable_gqa": True}, "scale": {"scale": 0.3}}.get(case, {})
    if case == "mask":
        assert_same(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, torch.randn(4, 5, 7))
    elif case == "bool":
        seen = torch.rand(2, 1, 5, 7) > 0.3
        seen[0, 0, 1] = False  # a query that sees nothing gives 0
        assert_same(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, seen)
    else:
        assert_same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q, k, v)


def test_attention_with_dropout_is_right_on_average():
    torch.manual_seed(0)
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
    v = torch.randn(1, 2, 6, 8)
    sums = sum(F.scaled_dot_product_attention(*(t.to("weft") for t in (q, k, v)), dropout_p=0.5).cpu() for _ in range(400))
    torch.testing.assert_close(sums / 400, F.scaled_dot_product_attention(q, k, v), rtol=0.3, atol=0.3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layers_that_do_not_train(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, hidden = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        expected = encoder(x), layer(x, src_key_padding_mask=hidden)
        encoder, layer = encoder.to("weft"), layer.to("weft")
        torch.testing.assert_close(encoder(x.to("weft")).cpu(), expected[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(layer(x.to("weft"), src_key_padding_mask=hidden.to("weft")).cpu(), expected[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_networks(kind):
    assert_trains(kind(4, 6, num_layers=2), torch.randn(5, 3, 4))


def test_embeddings():
    ids = torch.tensor([[1, 2, 2], [0, 3, 1]])
    assert_same(lambda w, i: F.embedding(i, w, padding_idx=3), torch.randn(5, 4), ids)
    assert_same(lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), torch.randn(5, 4), ids)


def test_an_index_past_the_table_is_an_error():
    table = torch.randn(5, 4).to("weft")
    for index in (5, -1):
        with pytest.raises(IndexError):
            F.embedding(torch.tensor([index]).to("weft"), table).cpu()


@pytest.mark.parametrize("options", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 3, "stride": 1},
                                     {"kernel_size": 3, "stride": 2, "ceil_mode": True}])
def test_pooling(options):
    x = torch.randn(2, 3, 9, 8)
    assert_same(lambda x: F.max_pool2d(x, **options), x)
    assert_same(lambda x: F.avg_pool2d(x, **options), x)
    assert_same(lambda x: F.max_pool1d(x[:, 0], **options), x)


def test_of_equal_elements_the_first_gets_the_gradient():
    assert_same(lambda x: F.max_pool2d(x, 2), torch.ones(1, 1, 4, 4))


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (5, 3)])
def test_adaptive_pooling(size):
    assert_same(lambda x: F.adaptive_avg_pool2d(x, size), torch.randn(2, 3, 9, 8))
    assert_same(lambda x: F.adaptive_max_pool2d(x, size), torch.randn(2, 3, 9, 8))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(8, 10), (3, 7)])
def test_interpolation(mode, size):
    assert_same(lambda x: F.interpolate(x, size=size, mode=mode), torch.randn(2, 3, 4, 5))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
def test_padding(mode):
    assert_same(lambda x: F.pad(x, (1, 2, 2, 1), mode=mode), torch.randn(2, 3, 4, 5))


def test_losses():
    x, y = torch.randn(6, 5), torch.tensor([1, 0, -100, 4, 2, 2])
    assert_same(lambda x, y: F.cross_entropy(x, y), x, y)
    assert_same(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), x, y)
    assert_same(lambda x, w, y: F.cross_entropy(x, y, w.detach(), reduction="sum") + 0 * w.sum(), x, torch.rand(5), y)


def test_dropout_follows_the_generator():
    x = torch.ones(1000).to("weft")
    torch.manual_seed(3)
    first, second = F.dropout(x, 0.25), F.dropout(x, 0.25)
    torch.manual_seed(3)
    again = F.dropout(x, 0.25)
    assert torch.equal(first.cpu(), again.cpu()) and not torch.equal(first.cpu(), second.cpu())
    kept = first.cpu() != 0
    assert 0.65 < kept.float().mean() < 0.85 and torch.equal(first.cpu()[kept], torch.full((int(kept.sum()),), 1 / 0.75))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.bfloat16, torch.float64])
def test_gradients_of_dropout_have_the_dtype_of_the_product(dtype):
    here = torch.ones(2, 3, dtype=dtype)
    mask = torch.tensor([[True, False, True]] * 2)
    expected = torch.ops.aten.native_dropout_backward(here, mask, 1.5)
    found = torch.ops.aten.native_dropout_backward(here.to("weft"), mask.to("weft"), 1.5)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding", ["border", "reflection", "zeros"])
def test_gradients_of_samples_at_the_ends_of_a_grid(padding, align_corners):
    ends = torch.tensor([-1.0, 1.0, -1.25, 1.25, 0.0, 0.3, -0.75, 0.75])
    grid = torch.stack(torch.meshgrid(ends, ends, indexing="ij"), -1)[None]
    image = torch.arange(16.0).reshape(1, 1, 4, 4) ** 2
    found = []
    for device in ("cpu", "weft"):
        leaves = [t.to(device).requires_grad_() for t in (image, grid)]
        sampled = F.grid_sample(*leaves, padding_mode=padding, align_corners=align_corners)
        found.append([t.cpu() for t in torch.autograd.grad(sampled.sum(), leaves)])
    torch.testing.assert_close(found[1], found[0])
