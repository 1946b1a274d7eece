"""Modules and optimisers on the device do what they do on the CPU."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from on_both_devices import close_on_both, numbers
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, bias=False)
        self.batch_norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(4 * 16, 8)
        self.layer_norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.batch_norm(self.conv(x))).flatten(1)
        return self.last(F.gelu(self.layer_norm(self.hidden(x))))


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=True),
    "Adam": lambda p: torch.optim.Adam(p, 1e-2),
    "AdamW by foreach": lambda p: torch.optim.AdamW(p, 1e-2, foreach=True),
    "AdamW, one by one": lambda p: torch.optim.AdamW(p, 1e-2, foreach=False),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, 1e-2, fused=True),
    "SGD, fused": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-3),
}
# Large enough that rounding of steps which divide by small roots stays below it.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


def assert_close(expected: torch.Tensor, actual: torch.Tensor) -> None:
    torch.testing.assert_close(actual.detach().cpu(), expected.detach().cpu(), **TOLERANCE)


def train(net: nn.Module, optimiser: torch.optim.Optimizer, device: str, steps: int = 3) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(4, 1, 6, 6, generator=generator)
        y = torch.randint(0, 5, (4,), generator=generator)
        optimiser.zero_grad()
        F.cross_entropy(net(x.to(device)), y.to(device)).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training(name):
    torch.manual_seed(0)
    here = Net()
    there = copy.deepcopy(here).to("weft")
    train(here, OPTIMISERS[name](here.parameters()), "cpu")
    train(there, OPTIMISERS[name](there.parameters()), "weft")
    for key, expected in here.state_dict().items():
        assert there.state_dict()[key].is_weft
        assert_close(expected, there.state_dict()[key])


def test_an_optimiser_made_before_the_move():
    torch.manual_seed(0)
    here = Net()
    there = copy.deepcopy(here)
    optimiser = torch.optim.AdamW(there.parameters(), 1e-2)
    there.to("weft")
    train(here, torch.optim.AdamW(here.parameters(), 1e-2), "cpu", 1)
    train(there, optimiser, "weft", 1)
    for expected, actual in zip(here.parameters(), there.parameters()):
        assert_close(expected, actual)


def test_tied_weights_stay_tied():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied().to("weft")
    assert model.head.weight is model.embedding.weight and model.head.weight.is_weft
    model.cpu().weft()
    assert model.head.weight is model.embedding.weight


def test_parameters_keep_their_identity_through_moves():
    model = nn.Linear(2, 2)
    before = list(model.parameters())
    model.to("weft")
    assert all(a is b for a, b in zip(before, model.parameters()))
    model.half().float().cpu()
    assert all(a is b for a, b in zip(before, model.parameters()))


def test_gradients_move_with_parameters():
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    model.to("weft")
    assert model.weight.grad.is_weft and model.weight.grad.tolist() == [[1, 1], [1, 1]]


def test_to_empty_and_meta():
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    model.to_empty(device="weft")
    nn.init.ones_(model.weight)
    assert model.weight.tolist() == [[1, 1], [1, 1]]


def test_states_are_saved_and_loaded():
    torch.manual_seed(0)
    net = Net().to("weft")
    optimiser = torch.optim.AdamW(net.parameters(), 1e-2)
    train(net, optimiser, "weft", 1)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimiser": optimiser.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    other = Net().to("weft")
    other.load_state_dict(state["net"])
    other_optimiser = torch.optim.AdamW(other.parameters(), 1e-2)
    other_optimiser.load_state_dict(state["optimiser"])
    train(net, optimiser, "weft", 1)
    train(other, other_optimiser, "weft", 1)
    for expected, actual in zip(net.parameters(), other.parameters()):
        assert torch.equal(expected.detach().cpu(), actual.detach().cpu())


def test_a_state_is_loaded_on_the_cpu():
    net = Net().to("weft").eval()
    here = Net().eval()
    here.load_state_dict(net.state_dict())
    x = numbers("cpu", 2, 1, 6, 6)
    assert_close(here(x), net(x.to("weft")))


@pytest.mark.parametrize("make, shape", [
    (lambda: nn.LSTM(4, 5, 2, batch_first=True), (2, 3, 4)), (lambda: nn.GRU(4, 5), (2, 3, 4)),
    (lambda: nn.RNN(4, 5), (2, 3, 4)), (lambda: nn.LSTMCell(4, 5), (2, 4)), (lambda: nn.GRUCell(4, 5), (2, 4)),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 3, 8)),
    (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.MaxPool2d(2)), (2, 2, 4, 4)),
    (lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 2, stride=2), nn.AvgPool2d(2)), (1, 2, 3, 3)),
    (lambda: nn.Bilinear(3, 3, 2), (2, 3)), (lambda: nn.PReLU(), (2, 3)), (lambda: nn.Softmax(1), (2, 3)),
], ids=["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "Transformer", "Conv", "ConvTranspose", "Bilinear", "PReLU", "Softmax"])
def test_modules(make, shape):
    torch.manual_seed(0)
    here = make()
    there = copy.deepcopy(here).to("weft")
    x = torch.randn(shape)
    results = []
    for module, device in ((here, "cpu"), (there, "weft")):
        inputs = [x.to(device)] * (2 if isinstance(module, nn.Bilinear) else 1)
        result = module(*inputs)
        result = result[0] if isinstance(result, tuple) else result
        results.append(result)
        if result.requires_grad:
            (result * result).sum().backward()
    assert_close(*results)
    for expected, actual in zip(here.parameters(), there.parameters()):
        assert_close(expected.grad, actual.grad)


@close_on_both
def test_attention(d):
    q, k, v = (numbers(d, 1, 2, 4, 8, first=i).mul_(0.01).requires_grad_() for i in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out.sum().backward()
    return [t.detach().contiguous() for t in (out, q.grad, k.grad, v.grad)]  # layouts are those of an algorithm


def test_autocast():
    with torch.autocast("weft", dtype=torch.bfloat16):
        product = numbers("weft", 2, 2) @ numbers("weft", 2, 2)
        assert product.dtype == torch.bfloat16
        assert torch.softmax(product, 0).dtype == torch.float32
    assert (numbers("weft", 2, 2) @ numbers("weft", 2, 2)).dtype == torch.float32


def test_a_fake_tensor_keeps_the_device():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x = torch.empty(2, 3, device="weft")
        assert F.softmax(x @ x.t(), -1).device.type == "weft"
        assert mode.from_tensor(numbers("weft", 2)).device.type == "weft"


@pytest.mark.parametrize("wrong", [{"device": "cpu", "size": 3}, {"device": "weft", "size": 4}])
@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
def test_a_step_that_fails_writes_nothing(optimizer, wrong):
    options = {"momentum": 0.9} if optimizer is torch.optim.SGD else {}
    parameters = [torch.nn.Parameter(torch.ones(3, device="weft")) for _ in range(2)]
    steps = optimizer(parameters, lr=0.1, fused=True, **options)

    def step():
        for p in parameters:
            p.grad = torch.ones_like(p)
        steps.step()

    step()
    state = steps.state[parameters[1]]
    name = next(k for k in ("exp_avg_sq", "momentum_buffer", "sum") if k in state)
    state[name] = torch.ones(wrong["size"], device=wrong["device"])
    before = [p.tolist() for p in parameters]
    with pytest.raises(RuntimeError):
        step()
    assert [p.tolist() for p in parameters] == before
