"""A value that cannot be computed fails alone: what does not need it is computed, and each read of it says why."""

import pytest
import torch
from on_both_devices import numbers
from weft import Tensor

TOO_LARGE = 2**40  # elements


def too_large() -> torch.Tensor:
    return torch.ones(TOO_LARGE, device="weft") * 2


def assert_fails(read) -> str:
    with pytest.raises(RuntimeError) as raised:
        read()
    return str(raised.value)


def one_step(optimizer_type=torch.optim.SGD, **options):
    layer = torch.nn.Linear(3, 2).to("weft")
    optimizer = optimizer_type(layer.parameters(), lr=0.1, **options)
    before = layer.weight.detach().clone()
    layer(numbers("weft", 4, 3)).sum().backward()
    optimizer.step()
    assert not torch.weft.is_pending(layer.weight)
    assert not torch.equal(layer.weight.cpu(), before.cpu())


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_steps_do_not_need_it(optimizer):
    failed = too_large()
    for _ in range(3):
        one_step(optimizer)
    assert torch.weft.is_pending(failed)


def test_every_read_of_it_says_why():
    failed = too_large()
    first = assert_fails(lambda: failed[5].item())
    one_step()
    assert assert_fails(lambda: failed[5].item()) == first


def test_synchronize_computes_the_others():
    before = numbers("weft", 3) + 1
    failed = too_large()
    of_failed = failed + 1
    after = numbers("weft", 3) + 2
    torch.weft.synchronize()
    assert [torch.weft.is_pending(t) for t in (before, failed, of_failed, after)] == [False, True, True, False]
    assert_fails(lambda: torch.weft.realize(of_failed))
    assert after.tolist() == [3, 4, 5]


def test_written_anew_it_is_computed():
    x, large = numbers("weft", 3), too_large()
    x.copy_(large[:3])
    torch.weft.synchronize()
    torch.weft.synchronize()
    assert torch.weft.is_pending(x)
    x.fill_(7)
    torch.weft.synchronize()
    assert not torch.weft.is_pending(x) and x.tolist() == [7, 7, 7]


def test_an_index_out_of_range_fails_alone():
    bad = numbers("weft", 3)[torch.tensor([0, 3]).to("weft") * 2]
    good = numbers("weft", 3) + 1
    one_step()
    assert good.tolist() == [2, 3, 4]
    for _ in range(2):
        with pytest.raises(IndexError):
            bad.tolist()


@pytest.mark.parametrize("function", [
    torch.celu, torch.nn.functional.elu, torch.nn.functional.gelu, torch.nn.functional.silu, torch.nn.functional.mish,
    torch.nn.functional.softplus, torch.nn.functional.logsigmoid, torch.nn.functional.hardswish, torch.nn.functional.selu,
])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_what_the_cpu_refuses_at_the_call_is_refused_at_the_call(function, dtype):
    for device in ("cpu", "weft"):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            function(torch.ones(3, dtype=dtype, device=device))
    one_step()


def test_values_of_weft_fail_alone():
    failed = Tensor.ones(TOO_LARGE) * 2
    good = Tensor([1.0, 2.0])
    for _ in range(20):  # more than a write waits
        good += 1
        good.realize()
    assert good.tolist() == [21.0, 22.0]
    first = assert_fails(failed.realize)
    assert assert_fails(failed.realize) == first


def test_writes_of_weft_that_wait_fail_alone():
    failed = Tensor.ones(TOO_LARGE).contiguous()
    failed[3:] += 1  # it waits to be written
    good = Tensor([1.0, 2.0])
    for _ in range(40):
        good += 1
        good.realize()
    assert good.tolist() == [41.0, 42.0]
    for _ in range(2):
        assert_fails(failed.realize)
