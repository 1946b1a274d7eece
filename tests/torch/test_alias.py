"""Every alias of a storage sees every write: PyTorch's views on device weft."""

import torch
from on_both_devices import numbers, raises_on_both, same_on_both


@same_on_both
def test_a_view_and_its_base_see_each_other(d):
    a = numbers(d, 2, 3)
    v = a.view(3, 2)
    v.add_(10)
    a.mul_(2)
    return a, v


@same_on_both
def test_a_slice_is_written_in_place(d):
    a = numbers(d, 4)
    s = a[1:]
    s += 1
    a[0] = 9
    s[0].mul_(3)
    return a, s


@same_on_both
def test_a_transposed_view_is_written(d):
    a = numbers(d, 2, 3)
    t = a.t()
    t.add_(numbers(d, 3, 2))
    a[0].zero_()
    return a, t


@same_on_both
def test_a_diagonal_is_written(d):
    a = numbers(d, 3, 3)
    main, above = a.diagonal(), a.diagonal(1)
    main.fill_(7)
    above.mul_(main[:2])
    return a, main, above


@same_on_both
def test_a_view_of_a_view_of_a_view_is_written(d):
    a = numbers(d, 4, 6)
    v = a.view(2, 2, 6)[1].t()[1:5:2].unsqueeze(0).permute(2, 0, 1)
    v.mul_(-1).add_(100)
    a.view(-1)[::5].relu_()
    v[0].copy_(numbers(d, 1, 2))
    return a, v


@same_on_both
def test_a_view_made_before_a_slice_is_zeroed_sees_it(d):
    a = numbers(d, 4)
    v = a.view(2, 2)
    a[1:].zero_()
    return a, v


@same_on_both
def test_reads_through_strides_that_overlap(d):
    a = numbers(d, 6)
    o = a.as_strided((3, 3), (1, 1))
    a[2] = 100
    return a, o, o.sum(), o + o.t()


@same_on_both
def test_rows_of_as_strided_are_written(d):
    a = numbers(d, 6)
    o = a.as_strided((2, 3), (3, 1))
    o[1].add_(o[0])
    return a, o


@same_on_both
def test_an_expanded_view_sees_its_base(d):
    a = numbers(d, 1, 3)
    e = a.expand(2, 3)
    a.add_(1)
    return a, e


@same_on_both
def test_zero_through_an_expanded_view(d):
    a = numbers(d, 1, 3)
    e = a.expand(2, 3)
    e.zero_()
    return a, e


@same_on_both
def test_fill_through_an_expanded_view(d):
    a = numbers(d, 3, 1)
    a.expand(3, 2).fill_(4)
    return a


@same_on_both
def test_windows_of_unfold_are_written(d):
    a = numbers(d, 8)
    u = a.unfold(0, 3, 2)
    a[2] = -1
    u[0].mul_(2)
    return a, u


@same_on_both
def test_parts_of_split_and_chunk_are_written(d):
    a = numbers(d, 6, 2)
    x, y = a.split(3)
    x.add_(y)
    y.zero_()
    p, q = a.chunk(2, 1)
    p.fill_(4)
    for row in a.unbind(0)[:2]:
        row.add_(1)
    return a, x, y, p, q


@same_on_both
def test_moved_axes_and_narrow_are_written(d):
    a = numbers(d, 2, 3, 4)
    m = a.movedim(0, 2).flatten(0, 0).squeeze().swapaxes(0, 1)
    m[0].add_(1)
    n = a.narrow(1, 1, 2)
    n.mul_(2)
    return a, m, n


@same_on_both
def test_reshape_is_a_view_or_a_copy_as_strides_allow(d):
    a = numbers(d, 2, 3)
    view, copy = a.reshape(6), a.t().reshape(6)
    view[0] = 50
    copy[1] = -1
    return a, view, copy


@same_on_both
def test_alias_and_contiguous(d):
    a = numbers(d, 2, 3)
    b = torch.ops.aten.alias(a)
    b.add_(1)
    same = a.contiguous()
    same[0] = 0
    copy = a.t().contiguous()
    copy[0] = 1
    return a, b, same, copy


@same_on_both
def test_a_view_of_another_dtype_is_written(d):
    a = numbers(d, 4)
    a.view(torch.int32).add_(1)
    return a


@same_on_both
def test_a_view_of_narrower_elements_is_written(d):
    a = numbers(d, 2)
    bytes_ = a.view(torch.uint8)
    bytes_[3] = 64
    halves = a.view(torch.int16)
    a.mul_(2)
    return a, bytes_, halves


@same_on_both
def test_a_view_of_wider_elements_is_written(d):
    a = torch.arange(4, dtype=torch.int32).to(d)
    a.view(torch.int64)[0] = (3 << 32) + 5
    return a


@same_on_both
def test_empty_views_of_a_written_base(d):
    a = numbers(d, 4)
    e = a[2:2]
    e.add_(1)
    a.add_(1)
    return a, e, e.view(0, 3)


@same_on_both
def test_a_number_is_a_view_of_a_vector(d):
    a = numbers(d, 3)
    x = a[1]
    x += 5
    a[1] *= 2
    return a, x


@same_on_both
def test_data_shares_memory(d):
    a = numbers(d, 3).requires_grad_()
    a.data.add_(5)
    b = a.data
    b[0] = 0
    return a, b


@same_on_both
def test_detach_shares_memory_and_versions(d):
    a = numbers(d, 3).requires_grad_()
    b = a.detach()
    b.mul_(2)
    return a, b, a._version, b._version


@same_on_both
def test_assigning_data_leaves_old_views(d):
    p = torch.nn.Parameter(numbers(d, 3))
    q = numbers(d, 3) * 2
    old = p.data
    p.data = q
    q[0] = 77
    p.data.add_(1)
    return p, q, old


@same_on_both
def test_values_that_were_read_stay(d):
    a = numbers(d, 3)
    b = a + 1
    a.zero_()
    c = a + b
    b.fill_(9)
    return a, b, c


@same_on_both
def test_what_was_read_of_a_cpu_tensor_stays(d):
    a = numbers(d, 3)
    factor = torch.tensor(2.0)
    b = a * factor
    factor.fill_(100)
    source = torch.ones(3)
    a.copy_(source)
    source.fill_(5)
    return a, b


@same_on_both
def test_versions_and_addresses(d):
    a = numbers(d, 3)
    v = a[1:]
    v.add_(1)
    a.mul_(2)
    return (a._version, v._version, v._is_view(), v._base is a, v.data_ptr() - a.data_ptr(),
            v.untyped_storage()._cdata == a.untyped_storage()._cdata, torch._C._is_alias_of(a, v))


@same_on_both
def test_versions_of_each_kind_of_write(d):
    a = numbers(d, 4)
    versions = [a._version]
    for write in (lambda: a.add_(1), lambda: a[0].zero_(), lambda: torch.mul(a, 2, out=a), lambda: a.copy_(a + 1),
                  lambda: a.data.add_(1), lambda: a.index_fill_(0, torch.tensor([1]).to(d), 3),
                  lambda: torch._foreach_add_([a], 1)):
        write()
        versions.append(a._version)
    return versions


@same_on_both
def test_channels_last_is_kept(d):
    a = numbers(d, 2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    b = a + a
    c = torch.relu(a)
    return a, b, c, b.is_contiguous(memory_format=torch.channels_last), a.clone(), torch.empty_like(a).stride()


@same_on_both
def test_foreach_writes_through_views(d):
    a = [numbers(d, 2), numbers(d, 3)]
    v = [t.view(-1) for t in a]
    torch._foreach_add_(v, 1.0)
    torch._foreach_mul_(a, [numbers(d, 2), numbers(d, 3)])
    torch._foreach_copy_(a[:1], [numbers(d, 2)])
    return a, v, torch._foreach_norm(a, 1), torch._foreach_lerp(a, v, 0.5)


@same_on_both
def test_indexed_writes_reach_views(d):
    a = numbers(d, 3, 3)
    v = a.view(9)
    a[torch.tensor([0, 2]).to(d)] = -1
    a[a > 5] = 0
    v.masked_fill_(v == 0, 8)
    a.scatter_(1, torch.tensor([[0], [1], [2]]).to(d), 99.0)
    v.index_add_(0, torch.tensor([1]).to(d), numbers(d, 1))
    return a, v


@same_on_both
def test_index_put_accumulates(d):
    a = numbers(d, 4)
    rows = torch.tensor([0, 0, 3]).to(d)
    a.index_put_((rows,), numbers(d, 3), accumulate=True)
    return a


@same_on_both
def test_indexed_writes_through_a_transposed_view(d):
    a = numbers(d, 3, 4)
    a.t()[torch.tensor([1, 3]).to(d)] = numbers(d, 2, 3, first=50)
    a.t()[0, torch.tensor([2]).to(d)] = -1
    return a


@raises_on_both(RuntimeError)
def test_add_in_place_of_an_expanded_view_raises(d):
    numbers(d, 1, 3).expand(2, 3).add_(1)


@raises_on_both(RuntimeError)
def test_copy_into_an_expanded_view_raises(d):
    numbers(d, 1, 3).expand(2, 3).copy_(numbers(d, 2, 3))


@raises_on_both(RuntimeError)
def test_a_view_that_strides_do_not_allow_raises(d):
    numbers(d, 2, 3).t().view(6)


@raises_on_both(RuntimeError)
def test_a_view_of_another_number_of_elements_raises(d):
    numbers(d, 2, 3).view(4, 2)


@raises_on_both(IndexError)
def test_an_axis_out_of_range_raises(d):
    numbers(d, 2, 3).select(2, 0)


@raises_on_both(IndexError)
def test_an_index_out_of_range_raises(d):
    numbers(d, 2, 3)[2]


@raises_on_both(RuntimeError)
def test_shapes_that_do_not_broadcast_raise(d):
    numbers(d, 2) + numbers(d, 3)


@raises_on_both(RuntimeError)
def test_a_result_that_does_not_fit_in_place_raises(d):
    numbers(d, 3).add_(numbers(d, 2, 3))


@raises_on_both(RuntimeError)
def test_a_float_result_in_an_integer_in_place_raises(d):
    torch.arange(3, device=d).add_(1.5)
