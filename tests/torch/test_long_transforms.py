"""Fourier transforms of axes of any length are weft's: of factors, and of primes as convolutions."""

import pytest
import torch
import weft.torch  # noqa: F401

LENGTHS = [257, 300, 512, 1009, 1024, 3000, 2 * 263]  # a prime, products, powers of two, a prime factor


def compare(function, *tensors, tolerance=1e-10):
    expected = function(*tensors)
    torch.weft.reset_counters()
    actual = function(*(t.to("weft") for t in tensors))
    assert not torch.weft.counters()["fallback"]
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


@pytest.mark.parametrize("n", LENGTHS)
def test_of_each_kind(n):
    generator = torch.Generator().manual_seed(n)
    real = torch.randn(2, n, dtype=torch.float64, generator=generator)
    pairs = torch.complex(real, torch.randn(2, n, dtype=torch.float64, generator=generator))
    compare(torch.fft.fft, pairs)
    compare(torch.fft.ifft, pairs)
    compare(torch.fft.rfft, real)
    compare(lambda x: torch.fft.irfft(x, n), torch.fft.rfft(real))
    compare(lambda x: torch.fft.irfft(x, n), pairs[:, : n // 2 + 1])  # whose ends are not real


def test_of_an_axis_that_is_not_the_last():
    x = torch.randn(600, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
    compare(lambda t: torch.fft.fft(t, dim=0, norm="ortho"), x, tolerance=1e-5)
    compare(lambda t: torch.fft.fft2(t), x, tolerance=1e-5)


def test_gradient():
    def gradient(x):
        x = x.clone().requires_grad_()
        (torch.fft.rfft(x).abs() ** 2 * torch.arange(264, device=x.device)).sum().backward()
        return x.grad

    compare(gradient, torch.randn(526, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))
