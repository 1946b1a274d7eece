"""out=, copies between views of one storage, set_ and resize_."""

import warnings

import torch
from on_both_devices import numbers, raises_on_both, same_on_both


@same_on_both
def test_out_writes_views(d):
    a = numbers(d, 2, 3)
    o = torch.zeros(4, 3, device=d)
    torch.add(a, a, out=o[1:3])
    torch.mul(a, 2, out=o[::2])
    return o


@same_on_both
def test_out_of_a_transposed_view(d):
    o = torch.zeros(3, 2, device=d)
    torch.add(numbers(d, 2, 3), 1, out=o.t())
    return o


@same_on_both
def test_out_is_resized_when_empty(d):
    a = numbers(d, 2, 3)
    o = torch.empty(0, device=d)
    returned = torch.mul(a, a, out=o)
    return o, returned is o


@same_on_both
def test_out_that_is_an_input(d):
    a = numbers(d, 4)
    torch.add(a, 1, out=a)
    return a


@same_on_both
def test_out_of_another_dtype(d):
    o = torch.empty(3, dtype=torch.float64, device=d)
    torch.add(numbers(d, 3), 1, out=o)
    return o


@same_on_both
def test_out_of_matmul_into_a_slice(d):
    o = torch.zeros(4, 4, device=d)
    torch.mm(numbers(d, 2, 3), numbers(d, 3, 4), out=o[1:3])
    return o


@same_on_both
def test_out_of_a_reduction_and_of_cat(d):
    o = torch.zeros(5, device=d)
    torch.sum(numbers(d, 2, 3), 1, out=o[:2])
    torch.cat([numbers(d, 1), numbers(d, 2)], out=o[2:])
    return o


@same_on_both
def test_two_outputs(d):
    values, indices = torch.empty(0, device=d), torch.empty(0, dtype=torch.long, device=d)
    torch.max(numbers(d, 2, 3), 1, out=(values, indices))
    return values, indices


@raises_on_both(RuntimeError)
def test_out_that_overlaps_an_input_raises(d):
    a = numbers(d, 4)
    torch.add(a[:-1], 1, out=a[1:])


@raises_on_both(RuntimeError)
def test_out_that_overlaps_itself_raises(d):
    torch.add(numbers(d, 2, 3), 1, out=numbers(d, 1, 3).expand(2, 3))


@raises_on_both(RuntimeError)
def test_out_of_a_dtype_that_cannot_hold_it_raises(d):
    torch.add(numbers(d, 2), 1, out=torch.empty(2, dtype=torch.long, device=d))


@raises_on_both(RuntimeError)
def test_copy_between_parts_that_overlap_raises(d):
    a = numbers(d, 5)
    a[1:].copy_(a[:-1])


@same_on_both
def test_copy_between_parts_that_do_not_overlap(d):
    a = numbers(d, 6)
    a[3:].copy_(a[:3])
    return a


@same_on_both
def test_copy_to_itself(d):
    a = numbers(d, 3, 3)
    a.copy_(a)
    return a


@same_on_both
def test_copy_of_its_own_transpose(d):
    a = numbers(d, 3, 3)
    a.copy_(a.t().clone())
    return a


@same_on_both
def test_copy_broadcasts_and_casts(d):
    a = torch.zeros(2, 3, dtype=torch.long, device=d)
    a.copy_(numbers(d, 3) + 0.5)
    return a


@same_on_both
def test_copy_from_the_cpu_into_a_view(d):
    a = numbers(d, 3, 3)
    a.t()[1].copy_(torch.tensor([7.0, 8.0, 9.0]))
    a[0, :2].copy_(torch.tensor([1, 2]))
    return a


@same_on_both
def test_set_to_part_of_a_storage(d):
    a, b = numbers(d, 4), numbers(d, 2)
    v = a[1:]
    b.set_(a.untyped_storage(), 1, (2,), (2,))
    a.mul_(2)
    b.add_(1)
    return a, b, v, b.is_set_to(a)


@same_on_both
def test_set_to_a_tensor(d):
    a = numbers(d, 4)
    b = torch.empty(0, device=d)
    b.set_(a)
    b[0] = 5
    return a, b, b.is_set_to(a)


@same_on_both
def test_set_to_nothing(d):
    a = numbers(d, 4)
    v = a[1:]
    a.set_()
    v.add_(1)
    return a, v


@same_on_both
def test_growing_keeps_values_and_views(d):
    a = numbers(d, 4)
    v = a[1:]
    a.resize_(2, 3)
    a.view(-1)[4:] = 0
    v.add_(1)
    return a, v


@same_on_both
def test_shrinking_keeps_the_storage(d):
    a = numbers(d, 4)
    a.resize_(2)
    v = a + 1
    a.resize_(4)
    return a, v


@same_on_both
def test_a_storage_is_resized(d):
    a = numbers(d, 4)
    a.untyped_storage().resize_(8)
    return a.untyped_storage().nbytes(), a[:2]


@same_on_both
def test_a_storage_is_emptied_and_grown(d):
    a = numbers(d, 4)
    storage = a.untyped_storage()
    storage.resize_(0)
    storage.resize_(16)
    a.fill_(3)
    return a


@same_on_both
def test_out_of_another_shape_is_resized_with_a_warning(d):
    o = torch.ones(5, device=d)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.add(numbers(d, 2, 3), 1, out=o)
    return o, [str(w.message).split(".")[0] for w in caught]


@same_on_both
def test_a_storage_is_read_and_written_by_bytes(d):
    a = numbers(d, 2)
    storage = a.untyped_storage()
    storage[3] = 0
    return a, storage[7], storage.tolist(), storage.clone().tolist()


@same_on_both
def test_a_storage_is_filled_and_copied(d):
    a, b = numbers(d, 2), numbers(d, 2)
    a.untyped_storage().fill_(0)
    b.untyped_storage().copy_(torch.ones(2).untyped_storage())
    return a, b


@same_on_both
def test_part_of_a_storage_shares_memory(d):
    a = numbers(d, 4)
    part = torch.empty(0, device=d).set_(a.untyped_storage()[4:12])
    part.fill_(7)
    return a, part


@raises_on_both(RuntimeError)
def test_copy_of_a_shape_that_does_not_broadcast_raises(d):
    numbers(d, 4, 6).copy_(numbers(d, 24))


@raises_on_both(RuntimeError)
def test_copy_of_more_than_there_is_raises(d):
    numbers(d, 3).copy_(numbers(d, 2, 3))


@raises_on_both(RuntimeError)
def test_copy_into_nothing_raises(d):
    numbers(d, 0, 3).copy_(numbers(d, 2, 3))
