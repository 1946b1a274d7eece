"""Elements that tensors name: what is read and written by them on device weft."""

import pytest
import torch
from on_both_devices import close_on_both, numbers, raises_on_both, same_on_both


@same_on_both
def test_indices_may_lie_on_the_cpu(d):
    a = numbers(d, 4, 3)
    b = a.clone()
    b[torch.tensor([0, -1])] = a[torch.tensor([1, 2])]
    return a[torch.tensor([2, 0])], a[:, torch.tensor([True, False, True])], a[[0, 1], [1, 2]], b


@same_on_both
def test_indices_apart_come_first(d):
    a = numbers(d, 2, 3, 4)
    i, j = torch.tensor([0, 1, 0], device=d), torch.tensor([3, 0, 1], device=d)
    return a[i, :, j], a[:, i, j], a.transpose(0, 2)[j], a[i.view(3, 1), :, j]


@same_on_both
def test_the_last_of_equal_indices_stays(d):
    a = numbers(d, 4)
    i = torch.tensor([1, 1, 3, 1], device=d)
    return a.index_put((i,), numbers(d, 4) * 10), a.scatter(0, i, numbers(d, 4) * 100)


@same_on_both
def test_accumulating_adds_all(d):
    a = numbers(d, 4, 2)
    i = torch.tensor([1, 1, 3, 1], device=d)
    a.index_put_((i,), torch.ones(4, 2, device=d), accumulate=True)
    b = torch.zeros(4, dtype=torch.bool, device=d)
    b.index_put_((i,), torch.tensor([True, False, True, False], device=d), accumulate=True)
    return a, b


@same_on_both
def test_a_mask_is_written_through_a_view(d):
    a = numbers(d, 4, 4)
    v = a[1:3, ::2]
    v[v > 6] = -1
    v.masked_fill_(v < 0, 5)
    return a, v


@same_on_both
def test_masks_choose_in_order(d):
    a = numbers(d, 3, 4)
    m = a % 3 == 0
    b = torch.zeros_like(a)
    b.masked_scatter_(m, a.flatten().flip(0))
    return a.masked_select(m), b, m.nonzero(), torch.nonzero_static(m, size=3), torch.where(m, a, b)


@raises_on_both(RuntimeError)
def test_an_expanded_tensor_is_not_scattered_to(d):
    a = numbers(d, 1, 4).expand(3, 4)
    a.scatter_(0, torch.zeros(1, 4, dtype=torch.long, device=d), 1.0)


@raises_on_both(RuntimeError)
def test_what_is_put_has_the_same_dtype(d):
    numbers(d, 4).index_put_((torch.tensor([0], device=d),), torch.tensor([1], device=d))


@pytest.mark.parametrize("index", [4, -1])
def test_an_index_out_of_range_is_an_error_when_it_is_read(index):
    a = torch.arange(4.0, device="weft")
    i = torch.zeros(2, dtype=torch.long, device="weft") + index
    with pytest.raises(IndexError, match=str(index)):
        a.gather(0, i).cpu()


@same_on_both
def test_rows_are_unique_in_their_order(d):
    a = torch.tensor([[2, 1], [0, 5], [2, 1], [0, 4], [0, 5]], device=d)
    return torch.unique(a, dim=0, return_inverse=True, return_counts=True), a.unique(return_counts=True)


@same_on_both
def test_long_sequences_are_searched(d):
    a = torch.arange(0, 600, 3, device=d)
    x = torch.tensor([[-1, 0, 1], [299, 300, 900]], device=d)
    return torch.searchsorted(a, x), torch.searchsorted(a, x, right=True), torch.bucketize(x, a, out_int32=True)


@same_on_both
def test_complex_elements_are_moved_whole(d):
    z = torch.complex(numbers(d, 3, 2), -numbers(d, 3, 2))
    i = torch.tensor([2, 0], device=d)
    return z[i], z.flip(0), torch.cat([z, numbers(d, 1, 2)]), z.roll(1), z.index_select(1, i[1:]), torch.where(z.real > 2, z, 0)


@close_on_both
def test_short_transforms_are_products(d):
    x = torch.sin(numbers(d, 3, 10))
    results = torch.fft.fft(x), torch.fft.rfft2(x), torch.fft.irfft(torch.fft.rfft(x), n=10), torch.fft.fft(x).abs()
    return [r.contiguous() for r in results]


@same_on_both
def test_gradients_of_parts_are_zero_elsewhere(d):
    results = []
    for part in (lambda a: a[1:3], lambda a: a[:, 1:9:3], lambda a: a[-1], lambda a: a[:, -2], lambda a: a[5:5]):
        a = numbers(d, 5, 10).requires_grad_()
        p = part(a)
        p.backward(numbers(d, *p.shape))
        results.append(a.grad)
    return results


@raises_on_both(IndexError)
def test_roll_of_an_axis_of_a_scalar_raises(d):
    torch.tensor(1.0, device=d).roll(0, 0)


@raises_on_both(RuntimeError)
def test_masked_scatter_by_bytes_raises(d):
    ones = torch.ones(3, device=d)
    ones.masked_scatter_(ones.to(torch.uint8), ones)


@raises_on_both(RuntimeError)
def test_an_imaginary_value_does_not_fill_integers(d):
    whole = torch.ones(3, dtype=torch.int64, device=d)
    whole.masked_fill(whole > 0, torch.tensor(1j, device=d))


@raises_on_both(RuntimeError)
def test_nothing_is_gathered_from_nothing(d):
    torch.zeros(0, 2, device=d).gather(0, torch.zeros(1, 1, dtype=torch.int64, device=d))


@pytest.mark.parametrize("value", [1.0, torch.tensor(1.0)])
def test_nothing_is_filled_along_an_axis_of_size_0(value):
    @raises_on_both(IndexError)
    def program(d):
        torch.zeros(4, 2, device=d)[:0].index_fill_(0, torch.tensor([3], device=d), value)

    program()
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 0"):
        torch.zeros(0, 2, device="weft").index_fill_(0, torch.tensor([3], device="weft"), value)


@raises_on_both(IndexError)
def test_an_index_that_fills_nothing_is_of_int64(d):
    torch.zeros(0, 2, device=d).index_fill_(0, torch.tensor([], dtype=torch.int32, device=d), 1.0)


@same_on_both
def test_nothing_is_filled_where_another_axis_has_size_0(d):
    i = torch.tensor([0], device=d)
    return torch.zeros(0, 2, device=d).index_fill_(1, i, 1.0), torch.zeros(2, 0, device=d).index_fill_(0, i[:0], 1.0)


@raises_on_both(RuntimeError)
def test_index_select_along_an_axis_without_elements(d):
    torch.zeros(0, 3, device=d).index_select(0, torch.tensor([0], device=d))
