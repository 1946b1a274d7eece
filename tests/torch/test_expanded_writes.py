"""Writes through expanded tensors: what PyTorch's CPU computes is computed, what it refuses raises."""

import pytest
import torch
from on_both_devices import complexes, numbers, raises_on_both, same_on_both

pytestmark = pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors")


def expanded(d):
    a = numbers(d, 6, first=0)
    return a, a.view(6, 1).expand(6, 2)


@same_on_both
def test_masked_fill_writes_where_one_of_the_elements_is_chosen(d):
    a, e = expanded(d)
    e.masked_fill_(e > 2, 7.0)
    first = a.clone()
    e.masked_fill_(torch.tensor([True, False], device=d), -1.0)
    return first, a, e


@same_on_both
def test_masked_fill_through_windows(d):
    a = numbers(d, 6)
    w = a.unfold(0, 3, 1)
    w.masked_fill_(torch.eye(4, 3, device=d) > 0, 0.0)
    return a, w


@same_on_both
def test_triangles_are_cleared(d):
    a, e = expanded(d)
    e.tril_()
    b, f = expanded(d)
    f.triu_()
    c = numbers(d, 2, 1, 3)
    c.expand(2, 3, 3).triu_(1)
    return a, b, c


@same_on_both
def test_complex_triangles_are_cleared(d):
    a = complexes(d, 4)
    a.view(4, 1).expand(4, 2).tril_()
    return a


@same_on_both
def test_items_are_set(d):
    idx = torch.tensor([1, 4, 1], device=d)
    (a, e), (b, f), (c, g), (h, i) = expanded(d), expanded(d), expanded(d), expanded(d)
    e[e > 3] = 1
    f[idx] = 9.0
    g[:, torch.tensor([0, 1, 1], device=d)] = 4.0
    i[torch.arange(6, device=d) % 2 == 0] = torch.tensor([5.0, 5.0], device=d)
    return a, b, c, h


@same_on_both
def test_items_accumulate(d):
    idx = torch.tensor([1, 4, 1], device=d)
    a, e = expanded(d)
    e.index_put_((idx,), torch.tensor(1.0, device=d), accumulate=True)
    b = torch.zeros(6, dtype=torch.bool, device=d)
    b.view(6, 1).expand(6, 2).index_put_((idx,), torch.tensor(True, device=d), accumulate=True)
    return a, b


@same_on_both
def test_index_fill(d):
    (a, e), (b, f) = expanded(d), expanded(d)
    e.index_fill_(0, torch.tensor([1, 4], device=d), 9.0)
    f.index_fill_(1, torch.tensor([1], device=d), 9.0)
    c = complexes(d, 4)
    c.view(4, 1).expand(4, 2).index_fill_(0, torch.tensor([1], device=d), 2j)
    n = torch.arange(6, device=d)
    n.expand(3, 6).index_fill_(1, torch.tensor([-1], device=d), 7)
    return a, b, c, n


@same_on_both
def test_complex_numbers_are_filled(d):
    a, b, c = complexes(d, 4), complexes(d, 4), complexes(d, 4).to(torch.complex128)
    a.view(4, 1).expand(4, 2)[1:3].zero_()
    b.view(4, 1).expand(4, 2).fill_(1)
    b.mul_(2)
    c.view(4, 1).expand(4, 2)[1:3].fill_(3j)
    return a, b, c


@same_on_both
def test_an_identity_is_written(d):
    a, e = expanded(d)
    torch.eye(6, 2, out=e)
    return a


@raises_on_both(RuntimeError)
def test_a_tensor_does_not_fill(d):
    _, e = expanded(d)
    e.fill_(torch.tensor(3.0, device=d))


@raises_on_both(RuntimeError)
def test_sums_are_refused(d):
    _, e = expanded(d)
    e.add_(1)


@raises_on_both(RuntimeError)
def test_copies_are_refused(d):
    _, e = expanded(d)
    e.copy_(torch.ones(6, 2, device=d))


@same_on_both
def test_thresholds(d):
    a, e = expanded(d)
    torch.nn.functional.threshold_(e, 3.0, -1.0)
    return a


@same_on_both
def test_the_last_of_cumulative_extremes_counts(d):
    a, e = expanded(d)
    torch.cummax(numbers(d, 6, 2), 1, out=(e, torch.empty(6, 2, dtype=torch.long, device=d)))
    return a


@same_on_both
def test_triangles_are_written_to_outputs(d):
    (a, e), (b, f) = expanded(d), expanded(d)
    torch.tril(numbers(d, 6, 2), out=e)
    torch.triu(numbers(d, 6, 2), out=f)
    return a, b


@raises_on_both(RuntimeError)
def test_many_small_matrices_are_copied_and_refused(d):
    numbers(d, 2, 2, 3, 1).expand(2, 2, 3, 3).tril_()


def outputs_that_are_refused(d):
    x, y, place = numbers(d, 6, 2), numbers(d, 2, 2), torch.empty(6, 2, dtype=torch.long, device=d)
    return {
        "cumsum": lambda e: torch.cumsum(x, 1, out=e),
        "cumsum_": lambda e: e.cumsum_(0),
        "mm": lambda e: torch.mm(x, y, out=e),
        "addmm_": lambda e: e.addmm_(x, y),
        "sort": lambda e: torch.sort(x, 1, out=(e, place)),
        "topk": lambda e: torch.topk(x, 2, 1, out=(e, place)),
        "mean": lambda e: torch.mean(numbers(d, 6, 2, 3), 2, out=e),
        "abs": lambda e: torch.abs(torch.complex(x, x), out=e),
        "linspace": lambda e: torch.linspace(0, 1, 2, out=e[0]),
        "normal_": lambda e: e.normal_(),
        "rrelu_": lambda e: torch.nn.functional.rrelu_(e),
        "put_": lambda e: e.put_(torch.tensor([1], device=d), torch.ones(1, device=d)),
    }


@pytest.mark.parametrize("name", list(outputs_that_are_refused("cpu")))
def test_what_differs_is_not_written_twice(name):
    for d in ("cpu", "weft"):
        a, e = expanded(d)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            outputs_that_are_refused(d)[name](e)
    assert a.tolist() == [0, 1, 2, 3, 4, 5]  # on weft


@same_on_both
def test_a_mask_names_its_own_elements(d):
    a = torch.tensor([True, False, True], device=d)
    a[a] = False
    b = numbers(d, 6)
    b[b > 2] = b[:1]
    return a, b


@raises_on_both(RuntimeError)
def test_operators_of_the_cpu_see_what_shares_memory(d):
    z = complexes(d, 6)
    torch.gather(z, 0, torch.zeros(6, dtype=torch.long, device=d), out=z)


@same_on_both
def test_operators_of_the_cpu_write_what_shares_memory(d):
    z = complexes(d, 4)
    w = z.view(4, 1).expand(4, 2)
    w.tril_()
    part = z[1:3]
    torch.sum(z, 0, out=torch.view_as_real(z)[0, 1])
    return z, w, part
