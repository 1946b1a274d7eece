"""When kernels run: an operator records, and a value that is asked for computes."""

import gc

import pytest
import torch
from on_both_devices import numbers
from torch.utils._python_dispatch import TorchDispatchMode


def pending(*tensors: torch.Tensor) -> list[bool]:
    return [torch.weft.is_pending(t) for t in tensors]


def test_an_operator_records():
    a = numbers("weft", 4)
    b = (a * 2).view(2, 2).t() + 1
    assert pending(b) == [True]


def test_a_chain_of_writes_records():
    a = numbers("weft", 4)
    torch.weft.realize(a)
    for _ in range(10):
        a[1:].add_(1)
    assert pending(a) == [True]
    assert a.tolist() == [1, 12, 13, 14]
    assert pending(a) == [False]


@pytest.mark.parametrize("ask", [
    lambda t: t.item(), lambda t: t.cpu(), str, lambda t: t.tolist(), bool, torch.weft.realize,
    lambda t: torch.weft.synchronize(),
], ids=["item", "cpu", "print", "tolist", "bool", "realize", "synchronize"])
def test_a_value_that_is_asked_for_is_computed(ask):
    a = numbers("weft", 1) + 1
    assert pending(a) == [True]
    ask(a)
    assert pending(a) == [False]


def test_realize_computes_what_it_is_given():
    a = numbers("weft", 4)
    torch.weft.realize(a)
    b, c = a + 1, a + 2
    torch.weft.realize(b)
    assert pending(b, c) == [False, True]


def test_synchronize_computes_everything():
    a, b = numbers("weft", 4) + 1, numbers("weft", 3) * 2
    torch.weft.synchronize()
    assert pending(a, b) == [False, False]


def test_a_view_waits_with_its_base():
    a = numbers("weft", 4)
    torch.weft.realize(a)
    a[0] = 7
    assert pending(a[2:]) == [True]


def test_an_alias_sees_a_write_that_was_recorded_after_the_base_was_computed():
    a = numbers("weft", 4)
    v = a.view(2, 2)
    torch.weft.realize(a)
    a.add_(1)
    assert v.tolist() == [[2, 3], [4, 5]]


def test_a_long_chain_of_writes_does_not_recurse():
    a = numbers("weft", 4)
    for _ in range(20_000):
        a.add_(1)
    assert a.tolist() == [20_001, 20_002, 20_003, 20_004]


def test_a_long_chain_that_nobody_reads_is_dropped():
    gc.collect()
    a = numbers("weft", 4)
    for _ in range(20_000):
        a = a + 1
    del a


class Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


def test_computing_dispatches_nothing():
    a = numbers("weft", 3, 3)
    b = torch.relu(a @ a).sum(0) + a.t()[1]
    with Recorder() as recorder:
        torch.weft.realize(b)
    assert recorder.names == []


def test_natively_done_operators_are_counted():
    torch.weft.reset_counters()
    a = numbers("weft", 3) + 1
    a.mul_(2)
    counters = torch.weft.counters()
    assert counters["native"]["add.Tensor"] == 1 and counters["native"]["mul_.Tensor"] == 1
    assert counters["fallback"] == {}


def test_fallbacks_are_counted_by_name():
    torch.weft.reset_counters()
    torch.linalg.eig(numbers("weft", 2, 2))
    assert torch.weft.counters()["fallback"] == {"linalg_eig": 1}


def test_fallbacks_can_be_forbidden():
    a = numbers("weft", 2, 2)
    torch.weft.allow_fallbacks(False)
    try:
        with pytest.raises(NotImplementedError, match="no kernel for linalg_eig, and falling back to the CPU is forbidden"):
            torch.linalg.eig(a)
    finally:
        torch.weft.allow_fallbacks(True)


def test_a_fallback_writes_through_views():
    a = torch.zeros(2, 2, device="weft", dtype=torch.complex64)
    row = a[0]
    row.add_(1j)
    assert a.cpu().tolist() == [[1j, 1j], [0, 0]]
