"""Bools whose bytes are not 0 or 1, as they come from memory of others and from views of bytes: true, in every operator."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("weft.torch", reason="the build has no weft.torch", exc_type=ImportError)

import torch

BYTES = torch.tensor([255, 0, 2, 1, 128, 0], dtype=torch.uint8)
TRUE = BYTES != 0


def moved() -> torch.Tensor:
    return BYTES.view(torch.bool).to("weft")


def copied() -> torch.Tensor:
    return torch.zeros(6, dtype=torch.bool, device="weft").copy_(BYTES.view(torch.bool))


def from_a_buffer() -> torch.Tensor:
    return torch.frombuffer(bytearray(BYTES.tolist()), dtype=torch.bool).to("weft")


def viewed() -> torch.Tensor:
    return BYTES.to("weft").view(torch.bool)


def viewed_when_computed() -> torch.Tensor:
    return (BYTES.to("weft") + 0).view(torch.bool)


def part() -> torch.Tensor:
    return torch.cat([BYTES, BYTES]).to("weft").view(torch.bool)[6:]


@pytest.mark.parametrize("make", [moved, copied, from_a_buffer, viewed, viewed_when_computed, part])
def test_any_byte_but_0_is_true(make) -> None:
    m = make()
    assert m.tolist() == TRUE.tolist() and m.sum().item() == 4 and m[0].item() is True
    assert torch.where(m, 1, 2).tolist() == [1, 2, 1, 1, 1, 2]
    for got, expected in ((~m, ~TRUE), (m | m, TRUE), (m & m, TRUE), (m ^ m, TRUE ^ TRUE), (m == True, TRUE),  # noqa: E712
                          (m.logical_not(), ~TRUE), (m.clone(), TRUE), (m.to(torch.int32), TRUE.int()), (m.float(), TRUE.float()),
                          (torch.stack([m, m]), torch.stack([TRUE, TRUE])), (m.flip(0), TRUE.flip(0)), (m.nonzero(), TRUE.nonzero())):
        assert got.dtype == expected.dtype and got.tolist() == expected.tolist()
    assert (~m).view(torch.uint8).tolist() == [0, 1, 0, 0, 0, 1]
    assert torch.arange(6, device="weft")[m].tolist() == [0, 2, 3, 4]
    assert torch.arange(6.0, device="weft").masked_fill(m, -1).tolist() == [-1, 1, -1, -1, -1, 5]
    assert torch.arange(6, device="weft")[make().cpu()].tolist() == [0, 2, 3, 4]


def test_a_view_of_bytes_keeps_them() -> None:
    x = BYTES.to("weft")
    m = x.view(torch.bool)
    assert m.view(torch.uint8).tolist() == BYTES.tolist()
    m[1], m[0] = True, False
    assert x.tolist() == [0, 1, 2, 1, 128, 0]
    x[5] = 7
    assert m.tolist() == [False, True, True, True, True, True]
