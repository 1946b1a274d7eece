"""Wrong arguments raise on device weft what they raise on PyTorch's CPU, in its words; those that are right do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import weft.torch  # noqa: F401

Program = Callable[[str], Any]


def tensor(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).to(dtype).to(device)


def of_scans() -> Iterator[tuple[str, Program]]:
    for name in ("cummax", "cummin", "cumsum", "cumprod", "logcumsumexp"):
        for shape in ((2, 3), (), (0, 3)):
            for dim in (5, -3, 1, 0):
                yield f"{name} {shape} {dim}", lambda d, n=name, s=shape, k=dim: getattr(tensor(d, *s), n)(k)
        yield f"{name} bool", lambda d, n=name: getattr(tensor(d, 2, 3) > 1, n)(0)


def of_ranges() -> Iterator[tuple[str, Program]]:
    for steps in (-1, 0, 1, 1.5, None, 2):
        for name in ("linspace", "logspace"):
            for dtype in (None, torch.int32, torch.bool):
                yield f"{name} {steps} {dtype}", lambda d, n=name, s=steps, t=dtype: getattr(torch, n)(0, 1, s, dtype=t, device=d)


def of_bits() -> Iterator[tuple[str, Program]]:
    names = ("__lshift__", "__rshift__", "__ilshift__", "__irshift__", "bitwise_left_shift", "bitwise_right_shift",
             "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")
    for a in (torch.float32, torch.bool, torch.int32, torch.float64):
        for b in (torch.float32, torch.bool, torch.int16):
            for name in names:
                yield f"{name} {a} {b}", lambda d, n=name, a=a, b=b: getattr(tensor(d, 3, dtype=a), n)(tensor(d, 3, dtype=b))


def of_padding() -> Iterator[tuple[str, Program]]:
    wide = [(-1, 1, 0, 0), (-1, -1, -1, -1), (1, 1, -2, -2), (-4, 0, 1, 1), (4, 1, 1, 1), (-2, -2, 0, 0), (-2, -2, -2, -2), (1, 1)]
    narrow = [(-1, 1), (-1, -1), (-2, -2), (-3, -2), (-4, 0), (4, 0), (-5, 1), (5, 1)]
    for mode in ("reflect", "replicate", "circular", "constant"):
        for shape, all_pads in (((1, 1, 4), narrow), ((1, 1, 4, 4), wide), ((4,), [(1, 1), (-1, -1)])):
            for pads in all_pads:
                yield f"{mode} {shape} {pads}", lambda d, m=mode, s=shape, p=pads: F.pad(tensor(d, *s), p, mode=m)


PROGRAMS = [*of_scans(), *of_ranges(), *of_bits(), *of_padding()]


def outcome(program: Program, device: str) -> Any:
    try:
        result = program(device)
    except Exception as error:  # noqa: BLE001  whatever the CPU raises
        return type(error), str(error).split("\n")[0]
    results = result if isinstance(result, tuple) else (result,)
    return [(t.shape, t.dtype, t.cpu().tolist()) for t in results]


@pytest.mark.parametrize("group", ["scans", "ranges", "bits", "padding"])
def test_as_on_the_cpu(group: str) -> None:
    programs = list({"scans": of_scans, "ranges": of_ranges, "bits": of_bits, "padding": of_padding}[group]())
    wrong = []
    for name, program in programs:
        expected, actual = outcome(program, "cpu"), outcome(program, "weft")
        if expected != actual:
            wrong.append((name, expected, actual))
    assert wrong == []


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask) * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "weft"])
def test_attention_of_sizes_that_change(backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(attended, backend=backend, dynamic=True)
    for length in (3, 5, 8):
        q, k, v = (tensor("weft", 2, 4, length, 8).sin().requires_grad_() for _ in range(3))
        there = [t.detach().cpu().requires_grad_() for t in (q, k, v)]
        mask = tensor("weft", length, length)
        for given in (None, mask):
            ours, expected = compiled(q, k, v, given), attended(*there, None if given is None else given.cpu())
            torch.testing.assert_close(ours.cpu(), expected)
        ours.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(q.grad.cpu(), there[0].grad, rtol=1e-4, atol=1e-5)


def test_attention_is_exported_with_sizes_that_change() -> None:
    class Module(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return attended(q, k, v)

    length = torch.export.Dim("length", min=2, max=64)
    q = tensor("weft", 2, 4, 6, 8)
    sizes = {name: {2: length} for name in "qkv"}
    program = torch.export.export(Module(), (q, q, q), dynamic_shapes=sizes)
    x = tensor("weft", 2, 4, 9, 8)
    torch.testing.assert_close(program.module()(x, x, x).cpu(), attended(x.cpu(), x.cpu(), x.cpu()))
