"""torch.autocast on the device: products in the lower precision, sums and logarithms in float32."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("weft.torch")

import torch.nn.functional as F


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_are_in_the_lower_precision(dtype):
    a, b = torch.randn(4, 8), torch.randn(8, 3)
    with torch.autocast("weft", dtype=dtype):
        y = a.to("weft") @ b.to("weft")
        assert y.dtype == dtype
        assert F.linear(a.to("weft"), b.T.contiguous().to("weft")).dtype == dtype
    torch.testing.assert_close(y.cpu().float(), a @ b, rtol=2e-2, atol=5e-2)
    assert (a.to("weft") @ b.to("weft")).dtype == torch.float32


def test_sums_are_in_float32():
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    with torch.autocast("weft", dtype=torch.bfloat16):
        assert x.to("weft").softmax(-1).dtype == torch.float32
        assert x.to("weft").exp().dtype == torch.float32
        assert F.layer_norm(x.to("weft"), (8,)).dtype == torch.float32
        assert F.nll_loss(x.to("weft").log_softmax(-1), torch.zeros(4, dtype=torch.long, device="weft")).dtype == torch.float32


def test_operands_are_promoted_to_the_widest():
    x, y = torch.randn(3, dtype=torch.bfloat16, device="weft"), torch.randn(3, device="weft")
    with torch.autocast("weft", dtype=torch.bfloat16):
        assert torch.addcmul(x, y, y).dtype == torch.float32


def test_a_disabled_region_is_ordinary():
    a = torch.randn(4, 4, device="weft")
    with torch.autocast("weft", dtype=torch.bfloat16):
        with torch.autocast("weft", enabled=False):
            assert (a @ a).dtype == torch.float32
        assert (a @ a).dtype == torch.bfloat16


def test_binary_cross_entropy_is_refused():
    x = torch.rand(3, device="weft")
    with torch.autocast("weft", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x, x)


def test_training_under_autocast_follows_the_cpu():
    def losses(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).to(device)
        x, y = torch.randn(16, 8).to(device), torch.randint(0, 2, (16,)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x).float(), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert all(p.dtype == torch.float32 and p.grad.dtype == torch.float32 for p in model.parameters())
        return found

    assert losses("weft") == pytest.approx(losses("cpu"), rel=2e-2)
