"""Tensors on other devices: copied when they are asked for, as they were when they were moved."""

import pytest

import weft
from weft import Tensor, jit

DEVICES = ["REF", "CPU:C", "CPU"]


@pytest.mark.parametrize("to", DEVICES)
@pytest.mark.parametrize("of", DEVICES)
def test_values(of, to):
    x = Tensor([[1.5, 2.5], [3.5, 4.5]], device=of)
    y = (x * 2).T.to(to) + 1
    assert y.device == to and y.tolist() == [[4, 8], [6, 10]]
    assert y.to(of).tolist() == y.tolist()


def test_nothing_runs_before():
    x = Tensor.ones(3, device="REF") + 1
    weft.counters.reset()
    y = x.to("CPU:C")
    assert weft.counters.kernels == 0 and not y.is_realized() and not x.is_realized()
    assert y.kernel_count() == 1  # of x; the copy is none
    assert y.tolist() == [2, 2, 2] and weft.counters.kernels == 1


def test_versions():
    a = Tensor([1, 2, 3], device="REF")
    b = a.to("CPU:C")
    a[0] = 9
    b[1] = 7
    assert (a.tolist(), b.tolist(), a.to("CPU:C").tolist()) == ([9, 2, 3], [1, 7, 3], [9, 2, 3])


def test_itself():
    a = Tensor([1, 2], device="REF")
    assert a.to("REF") is a and a.to(None) is a
    assert not a.clone(device="REF").shares_memory_with(a)
    b = a.clone(device="CPU:C")
    assert b.device == "CPU:C" and b.tolist() == [1, 2]


def test_in_place():
    a = Tensor([1, 2], device="REF")
    view = a[:1]
    assert a.to_("CPU:C") is a and a.device == "CPU:C" and view.device == "REF"
    assert a.tolist() == [1, 2]


def test_back_and_forth():
    x = Tensor.arange(3, device="REF")
    for i in range(300):
        x = x.to(DEVICES[i % 3]) + 1
    assert x.tolist() == [300, 301, 302]


def test_two_of_one_source():
    x = Tensor([1.0, 2.0], device="REF") * 3
    a, b = x.to("CPU:C"), x.to("CPU")
    c = a.to("CPU") + b
    weft.counters.reset()
    assert c.tolist() == [6, 12] and weft.counters.kernels == 2  # x once


def test_realised_together():
    x, y = Tensor([1], device="REF") + 1, Tensor([1], device="CPU:C") + 2
    a, b = x.to("CPU:C") + y, y.to("REF") + x
    Tensor.realize(a, b)
    assert a.tolist() == b.tolist() == [5]


def test_empty_and_null():
    assert Tensor.zeros(0, 2, device="REF").to("CPU:C").tolist() == []
    assert Tensor.ones(2, device="REF").to("NULL").to("REF").tolist() == [0, 0]


def test_gradients():
    x = Tensor([1.0, 2.0], device="REF")
    x.requires_grad = True
    y = x.to("CPU:C") * Tensor([3.0, 4.0], device="CPU:C")
    (y * y).sum().backward()
    assert x.grad.device == "REF" and x.grad.tolist() == [18, 64]


def test_errors():
    with pytest.raises(weft.DeviceError, match="there is no device NOWHERE"):
        Tensor([1]).to("NOWHERE")
    with pytest.raises(weft.DeviceError, match="one tensor is on"):
        Tensor([1], device="REF") + Tensor([1], device="REF").to("CPU:C")
    function = jit(lambda x: x.to("CPU:C"))
    x = Tensor([1], device="REF").realize()
    function(x)
    with pytest.raises(weft.JitError, match=r"\[to\]"):
        function(x)
