"""Complex tensors: their real and imaginary parts are views, conjugates and negatives are views with a bit."""

import torch
from on_both_devices import assert_same, complexes, numbers, raises_on_both, same_on_both


@same_on_both
def test_a_complex_view_of_reals_is_written(d):
    a = numbers(d, 4)
    c = torch.view_as_complex(a.view(2, 2))
    c.mul_(2)
    torch.view_as_real(c)[0, 1] = 9
    return a, c


@same_on_both
def test_real_and_imaginary_parts_are_written(d):
    c = complexes(d, 3)
    c.real.add_(1)
    c.imag.zero_()
    return c, c.real, c.imag


@same_on_both
def test_writes_through_a_conjugate(d):
    c = complexes(d, 2)
    k = c.conj()
    k.add_(1j)
    k[0] = 2 + 3j
    return c, k, k.resolve_conj()


@same_on_both
def test_writes_through_the_imaginary_part_of_a_conjugate(d):
    c = complexes(d, 2)
    negative = c.conj().imag
    negative.mul_(3)
    negative[0] = 11
    return c, negative, negative.resolve_neg()


@same_on_both
def test_copies_into_a_conjugate(d):
    c = complexes(d, 2)
    c.conj().copy_(complexes(d, 2, first=5))
    return c


@same_on_both
def test_copies_of_a_conjugate_into_a_conjugate(d):
    c = complexes(d, 2)
    c.conj().copy_(complexes(d, 2, first=5).conj())
    return c


@same_on_both
def test_copies_from_the_cpu_into_conjugates_and_negatives(d):
    c = complexes(d, 2)
    k = c.conj()
    k.copy_(complexes("cpu", 2, first=5).conj())
    k.imag.copy_(torch.tensor([5.0, 6.0]))
    return c


@same_on_both
def test_conjugates_and_negatives_move_to_the_cpu(d):
    k = complexes(d, 2).conj()
    return k.cpu().tolist(), k.imag.cpu().tolist()


@same_on_both
def test_a_conjugate_of_a_slice_of_a_conjugate(d):
    c = complexes(d, 3, 2)
    inner = c.conj()[1:].t().conj()
    inner.add_(1)
    inner.conj().imag.fill_(4)
    return c, inner


@same_on_both
def test_negatives_take_part_in_arithmetic(d):
    n = complexes(d, 3).conj().imag
    return n + 1, n * n, n.sum(), -n, n.abs()


@same_on_both
def test_conjugates_take_part_in_products(d):
    a, b = complexes(d, 2, 3), complexes(d, 3, 2)
    return a @ b, a.conj() @ b, a @ a.mH, torch.vdot(a[0], b[:, 0]), torch.dot(a[0].conj(), b[:, 0])


@same_on_both
def test_complex_arithmetic(d):
    a, b = complexes(d, 3), complexes(d, 3, first=2)
    return a + b, a - 1j, a * 2, a.sum(), a == b, a.clone(), torch.zeros_like(a), torch.cat([a, b])


@same_on_both
def test_a_complex_tensor_is_filled(d):
    a = complexes(d, 2)
    a[0] = 1 - 2j
    b = torch.full((2,), 3j, device=d)
    return a, b, a.to(torch.complex128), b.real.contiguous()


def test_norms_of_complex_numbers():
    z = complexes("cpu", 3, 2, first=-3)
    for p in (0, 1, 2, 3.5, float("inf"), -float("inf")):
        expected = torch.linalg.vector_norm(z, p, dim=1)
        assert_same(expected, torch.linalg.vector_norm(z.to("weft"), p, dim=1), rtol=1e-6, atol=0)
    assert_same(z.norm(), z.to("weft").norm(), rtol=1e-6, atol=0)


def test_the_gradient_of_the_largest_complex_number_goes_to_it():
    torch.manual_seed(0)
    z = torch.randn(64, 5, dtype=torch.complex64)
    expected = torch.where(z.abs() == z.abs().amax(1, keepdim=True), z.sgn(), 0)
    here = z.to("weft").requires_grad_()
    torch.linalg.vector_norm(here, float("inf"), dim=1).sum().backward()
    torch.testing.assert_close(here.grad.cpu(), expected)


@same_on_both
def test_reals_are_computed_into_complex_outputs(d):
    bools, ints = torch.tensor([True, False], device=d), torch.tensor([3, -2], device=d)
    out = torch.zeros(2, dtype=torch.complex64, device=d)
    results = [torch.mul(bools, bools, out=out.clone()), torch.add(ints, bools, out=out.clone()),
               torch.sum(ints, 0, out=out[0].clone()), torch.cat([bools[:1], bools[:1]], out=out.clone())]
    return results


@raises_on_both(RuntimeError)
def test_sizes_of_reals_are_not_complex(d):
    torch.abs(numbers(d, 2), out=torch.zeros(2, dtype=torch.complex64, device=d))
