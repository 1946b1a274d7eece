"""Small versions of the models of bench/models.py beside PyTorch: results, gradients and two steps of training.

    python test_models.py gpt2|resnet18 BATCH     on the device of WEFT_DEVICE
"""

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import models  # type: ignore[import-not-found]  # noqa: E402

torch = pytest.importorskip("torch")

LENGTH, WORDS, SIDE, CLASSES = 9, 41, 32, 7


def linear(p: dict[str, Any], name: str, x: Any) -> Any:
    return torch.nn.functional.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def their_gpt2(p: dict[str, Any], ids: Any) -> Any:
    def norm(name: str, x: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"])

    x = p["wte.weight"][ids] + p["wpe.weight"][:ids.shape[1]]
    batch, length, width = x.shape
    for i in range(2):
        block = f"blocks.{i}"
        qkv = linear(p, f"{block}.qkv", norm(f"{block}.norm1", x))
        q, k, v = (t.reshape(batch, length, 4, width // 4).transpose(1, 2) for t in qkv.split(width, 2))
        heard = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, f"{block}.out", heard.transpose(1, 2).reshape(batch, length, width))
        up = torch.nn.functional.gelu(linear(p, f"{block}.up", norm(f"{block}.norm2", x)), approximate="tanh")
        x = x + linear(p, f"{block}.down", up)
    return norm("norm", x) @ p["wte.weight"].T


def their_resnet(p: dict[str, Any], x: Any) -> Any:
    f = torch.nn.functional

    def conv_norm(name: str, norm: str, x: Any, stride: int = 1) -> Any:
        weight = p[f"{name}.weight"]
        x = f.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        return f.batch_norm(x, None, None, p[f"{norm}.weight"], p[f"{norm}.bias"], training=True)

    x = f.max_pool2d(f.relu(conv_norm("conv1", "bn1", x, 2)), 3, stride=2, padding=1)
    for i in range(4):
        name, straight = f"layers.{i}", x
        stride = 2 if i > 0 else 1
        if stride == 2:
            straight = conv_norm(f"{name}.downsample.0", f"{name}.downsample.1", x, 2)
        x = f.relu(conv_norm(f"{name}.conv1", f"{name}.bn1", x, stride))
        x = f.relu(conv_norm(f"{name}.conv2", f"{name}.bn2", x) + straight)
    return linear(p, "fc", x.mean((2, 3)))


def check(name: str, batch: int) -> None:
    """Two steps of training give what PyTorch's give: losses, first gradients, parameters."""
    library, random = models.Weft(), np.random.default_rng(3)
    library.Tensor.manual_seed(5)
    nn, tensor = library.nn, library.Tensor
    if name == "gpt2":
        model: Any = models.GPT2(library, layers=2, width=32, heads=4, words=WORDS, places=16)
        theirs, data = their_gpt2, random.integers(0, WORDS, (batch, LENGTH))
        wanted, rate = random.integers(0, WORDS, (batch, LENGTH)), 0.1
    else:
        model, theirs = models.ResNet(library, channels=4, classes=CLASSES, blocks=1), their_resnet
        data, wanted = random.standard_normal((batch, 3, SIDE, SIDE)).astype("float32"), random.integers(0, CLASSES, batch)
        rate = 0.01
    library.fill(model)
    state = nn.state.get_state_dict(model)
    p = {k: torch.tensor(t.numpy(), requires_grad=t.requires_grad) for k, t in state.items()}
    trained = {k: t for k, t in p.items() if t.requires_grad}
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=rate, momentum=0.9)
    their_optimizer = torch.optim.SGD(trained.values(), lr=rate, momentum=0.9)
    x, y = tensor(data), tensor(wanted)
    for step in range(2):
        loss, *rest = models.step_of(library, model, optimizer, x, y, is_training=True)
        gradients = {k: state[k].grad for k in trained} if step == 0 else {}
        loss.realize(*rest, *gradients.values())
        logits = theirs(p, torch.tensor(data))
        their_optimizer.zero_grad()
        their_loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), torch.tensor(wanted).reshape(-1))
        their_loss.backward()
        np.testing.assert_allclose(loss.item(), their_loss.item(), rtol=2e-4)
        for k, gradient in gradients.items():
            near(gradient, trained[k].grad, f"gradient of {k}")
        their_optimizer.step()
    for k, value in trained.items():
        near(state[k], value.detach(), k)


def near(ours: Any, theirs: Any, what: str) -> None:
    """Within 0.1% of the largest element: rounding grows through norms of few elements."""
    expected = theirs.numpy()
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max() + 1e-6, err_msg=what)


@pytest.mark.parametrize(("name", "batch"), [("gpt2", 2)])
def test_training_is_pytorchs(name: str, batch: int) -> None:
    check(name, batch)


@pytest.mark.parametrize(("name", "batch"), [("gpt2", 1), ("resnet18", 5)])
def test_training_is_pytorchs_on_the_cpu(name: str, batch: int) -> None:
    done = subprocess.run([sys.executable, __file__, name, str(batch)], env={**os.environ, "WEFT_DEVICE": "CPU"},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]))
