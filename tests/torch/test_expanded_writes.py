"""Writes through expanded tensors and windows: what PyTorch's CPU computes is computed, what it refuses raises."""

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


OUTPUTS = {
    "sum": lambda d, e: torch.sum(numbers(d, 6, 2, 3), 2, out=e),
    "amax": lambda d, e: torch.amax(numbers(d, 6, 2, 3), 2, out=e),
    "std": lambda d, e: torch.std(numbers(d, 6, 2, 3), 2, out=e),
    "norm": lambda d, e: torch.norm(numbers(d, 6, 2, 3), 2, 2, out=e),
    "mv": lambda d, e: torch.mv(numbers(d, 2, 2), numbers(d, 2), out=e[0]),
    "bmm": lambda d, e: torch.bmm(numbers(d, 6, 1, 4), numbers(d, 6, 4, 2), out=e.view(6, 1, 2)),
    "tril": lambda d, e: torch.tril(numbers(d, 3, 2, 2), out=e.unflatten(0, (3, 2))),
    "histc": lambda d, e: torch.histc(numbers(d, 6), 2, 0, 9, out=e[0]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_what_the_kernels_of_the_cpu_make_of_them(name):
    results = []
    for d in ("cpu", "weft"):
        a, e = expanded(d)
        OUTPUTS[name](d, e)
        results.append(a.cpu())
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float64,
                                   torch.complex128])
def test_windows_are_written_in_the_order_of_the_cpu(dtype):
    def written(d):
        tensors = [(torch.arange(7) % 3).to(dtype).to(d) for _ in range(6)]
        views = [t.unfold(0, 3, 1) for t in tensors]
        other = (torch.arange(15).view(5, 3) % 2).to(dtype).to(d)
        views[0].copy_(other)
        views[1].add_(other)
        torch.mul(other, 2, out=views[2]) if dtype != torch.bool else torch.logical_not(other, out=views[2])
        views[3][1:3] = other[0]
        views[4].t().index_copy_(0, torch.tensor([2, 0], device=d), other.t()[:2].contiguous())
        torch.cat([other[:2], other[2:]], out=views[5])
        return [t.cpu() for t in tensors]

    assert all(torch.equal(here, there) for here, there in zip(written("cpu"), written("weft")))


def test_what_a_kernel_of_the_cpu_writes_past_its_output_harms_nothing():
    a = torch.zeros(2, 1, 3, 1, device="weft")
    torch._C._nn.avg_pool3d(numbers("weft", 2, 2, 3, 4), 1, out=a.expand(2, 2, 3, 4))
    assert a.cpu().shape == (2, 1, 3, 1)


@same_on_both
def test_outputs_that_the_cpu_resizes_have_its_strides(d):
    matrix = torch.view_as_complex(torch.eye(3, device=d).unsqueeze(-1).repeat(1, 1, 2))
    factors, pivots = torch.linalg.lu_factor(matrix)
    out = torch.empty(0, dtype=torch.complex64, device=d)
    return torch.linalg.lu_solve(factors, pivots, complexes(d, 3, 2), out=out)


@same_on_both
def test_results_have_the_strides_of_operands_that_are_cast(d):
    a = torch.arange(12, dtype=torch.int32, device=d).view(2, 6, 1).expand(2, 6, 2)
    b = numbers(d, 2, 6).unfold(0, 1, 2).permute(0, 2, 1).as_strided((1, 6, 2), (6, 1, 6))
    z = torch.view_as_complex(numbers(d, 1, 6, 2, 2))
    every_second = torch.arange(24, device=d).view(2, 12).t()[::2]
    return a == b, a * b, torch.where(a > 3, a, b), z == a, torch.sqrt(every_second), every_second / 2


@same_on_both
def test_results_of_the_cpu_have_the_strides_of_operands_with_gaps(d):
    z = complexes(d, 6).view(2, 3).t()[:, ::2]
    w = complexes(d, 2).view(1, 2).expand(3, 2)
    return torch.logical_xor(z, w.t()[:1].t()), torch.exp(w), torch.logical_and(w, w), z.sqrt()
