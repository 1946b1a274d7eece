"""Tensors of the device leave and come back: files, pickles, copies, loaders, DLPack, printing, threads."""

import copy
import io
import pickle
import threading

import numpy as np
import pytest
import torch
from on_both_devices import complexes, numbers, same_on_both
from torch.utils.data import DataLoader, TensorDataset


def saved(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@same_on_both
def test_a_deep_copy_keeps_aliases(d):
    a = numbers(d, 4)
    copied, view = copy.deepcopy([a, a[1:]])
    view.zero_()
    a.add_(1)
    return copied, view, a


@same_on_both
def test_save_and_load_keep_aliases(d):
    a = numbers(d, 4)
    b, v = torch.load(saved([a, a.view(2, 2)]))
    v.zero_()
    return b, v, a


def test_load_to_the_device():
    assert torch.load(saved(numbers("cpu", 4)), map_location="weft").device == torch.device("weft", 0)


def test_load_to_the_cpu():
    loaded = torch.load(saved(numbers("weft", 2, 2).t()), map_location="cpu")
    assert loaded.device.type == "cpu" and loaded.tolist() == [[1, 3], [2, 4]]


def test_load_with_a_map():
    loaded = torch.load(saved({"a": numbers("weft", 2)}), map_location={"weft:0": "cpu"})
    assert loaded["a"].device.type == "cpu"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_files_keep_dtypes(dtype):
    a = numbers("cpu", 4).to(dtype)
    b = torch.load(saved(a.to("weft")))
    assert b.device.type == "weft" and b.dtype == dtype and torch.equal(b.cpu(), a)


def test_pickle():
    a = numbers("weft", 2, 2)
    b = pickle.loads(pickle.dumps(a))
    assert b.device.type == "weft" and torch.equal(a.cpu(), b.cpu())


def test_a_copy_of_a_parameter_is_a_parameter():
    p = torch.nn.Parameter(numbers("weft", 2))
    q = copy.deepcopy(p)
    assert isinstance(q, torch.nn.Parameter) and q.device.type == "weft" and q.requires_grad


def test_printing():
    assert str(numbers("weft", 2, 2)) == "tensor([[1., 2.],\n        [3., 4.]], device='weft:0')"
    assert str(torch.empty(0, device="weft")) == "tensor([], device='weft:0')"
    assert f"{numbers('weft', 1)[0]:.2f}" == "1.00"
    assert "requires_grad=True" in str(torch.nn.Parameter(numbers("weft", 2)))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.bfloat16, torch.int64, torch.complex64, torch.float64])
def test_printing_other_dtypes(dtype):
    a = numbers("cpu", 3).to(dtype)
    assert str(a.to("weft")) == str(a).replace("])", "], device='weft:0')").replace("], dtype", "], device='weft:0', dtype")


def test_printing_a_large_tensor():
    a = torch.arange(4000.0)
    assert str(a.to("weft"))[:60] == str(a)[:60]


def test_numbers_of_python():
    a = numbers("weft", 2, 2)
    assert bool(a[0, 0] > 0) and int(a[0, 1]) == 2 and float(a[1, 0]) == 3 and len(a) == 2
    assert [row.tolist() for row in a] == [[1, 2], [3, 4]]


def test_numpy_needs_the_cpu():
    with pytest.raises(TypeError, match="can't convert weft:0 device type tensor to numpy"):
        numbers("weft", 2).numpy()
    with pytest.raises(TypeError):
        np.asarray(numbers("weft", 2))


def test_from_numpy():
    a = torch.as_tensor(np.arange(3.0), device="weft")
    assert a.dtype == torch.float64 and a.tolist() == [0, 1, 2]


def test_dlpack_shares_memory():
    a = numbers("weft", 4)
    b = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(a))
    b[0] = 9
    assert b.device.type == "weft" and b.data_ptr() == a.data_ptr() and a.tolist() == [9, 2, 3, 4]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pinned", [False, True])
def test_loaders(workers, pinned):
    data = TensorDataset(torch.arange(20.0).reshape(10, 2), torch.arange(10))
    loader = DataLoader(data, 3, num_workers=workers, pin_memory=pinned)
    sums = [(x.to("weft", non_blocking=True).sum() + y.to("weft").sum()).item() for x, y in loader]
    assert sum(sums) == 190 + 45


def test_a_loader_of_tensors_of_the_device():
    loader = DataLoader(TensorDataset(numbers("weft", 4)), 2)
    assert [x.tolist() for x, in loader] == [[1, 2], [3, 4]]


def test_pinned_memory():
    a = numbers("cpu", 3).pin_memory()
    assert a.is_pinned() and a.to("weft", non_blocking=True).tolist() == [1, 2, 3]


def test_methods_of_the_device():
    a = numbers("cpu", 3).weft()
    assert a.is_weft and a.device == torch.device("weft:0") and not a.cpu().is_weft
    assert torch.nn.Linear(2, 2).weft().weight.is_weft


def test_the_device_is_an_accelerator():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("weft")
    assert torch.weft.device_count() == 1 and torch.weft.is_available()


def test_the_device_has_a_name():
    assert torch.weft.get_device_name().startswith("weft on ")


def test_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError):
        torch.ones(1, device="weft:1")


def test_tensors_of_two_devices_do_not_meet():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        numbers("weft", 3) + numbers("cpu", 3)


def test_a_number_of_the_cpu_meets_tensors_of_the_device():
    assert (numbers("weft", 3) * torch.tensor(2.0)).tolist() == [2, 4, 6]


def test_the_device_as_default():
    with torch.device("weft"):
        assert torch.zeros(3).is_weft and torch.nn.Linear(2, 2).weight.is_weft


@same_on_both
def test_factories(d):
    return (torch.zeros(2, device=d), torch.ones(2, device=d), torch.full((2,), 3.0, device=d),
            torch.arange(5, device=d), torch.eye(3, device=d), torch.linspace(0, 1, 5, device=d),
            torch.tensor([1.0, 2], device=d), torch.empty_like(numbers(d, 2)).fill_(1), numbers(d, 3).new_tensor([1]),
            torch.tril_indices(3, 3, device=d), torch.as_tensor([1, 2], device=d), torch.scalar_tensor(3.0, device=d),
            torch.stack([numbers(d, 2), numbers(d, 2)]), torch.asarray([1.0, 2], device=d), numbers(d, 2).new_zeros(3),
            torch.arange(1, 2, 0.25, device=d), torch.full((2,), True, device=d), torch.ones(2, dtype=torch.int8, device=d))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                                   torch.bfloat16, torch.float64, torch.bool, torch.complex64, torch.complex128])
def test_conversions_of_dtypes(dtype):
    a = torch.tensor([-1.5, 0.0, 0.25, 3.0]) if dtype != torch.uint8 else torch.tensor([0.0, 1.5, 3.0])
    there = a.to("weft").to(dtype)
    assert torch.equal(there.cpu(), a.to(dtype))
    assert torch.equal(there.to(torch.bool).cpu(), a.to(dtype).to(torch.bool))


def test_complex_tensors_move():
    a = complexes("cpu", 3)
    assert torch.equal(a.to("weft").cpu(), a) and torch.equal(a.conj().to("weft").cpu(), a.conj())


def test_threads_that_train():
    results = []

    def train() -> None:
        x = numbers("weft", 8, 8).mul_(0.01).requires_grad_()
        for _ in range(5):
            torch.relu(x @ x).sum().backward()
        results.append(x.grad.sum().item())

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(set(results)) == 1


def test_threads_that_write_parts_of_one_tensor():
    a = torch.zeros(4, 100, device="weft")

    def write(row: int) -> None:
        for _ in range(50):
            a[row].add_(row)

    threads = [threading.Thread(target=write, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert a.sum(1).tolist() == [0, 5000, 10000, 15000]
