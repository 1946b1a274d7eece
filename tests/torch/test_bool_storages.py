"""A storage of bools is one of bytes: copies, pickles and views see it as both."""

import copy
import io
import pickle

import torch
from on_both_devices import numbers, raises_on_both, same_on_both


def bools(d, *shape):
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) % 3 == 0).to(d)


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


@same_on_both
def test_copies(d):
    a = bools(d, 2, 6)
    v = copy.deepcopy([a])[0]
    chosen = v[torch.tensor([1, 1], device=d)][0:2].flatten()
    w = pickle.loads(pickle.dumps(a))
    w.logical_not_()
    return v, chosen, chosen[0].item(), w, w.sum()


@same_on_both
def test_an_output_that_was_empty_is_saved(d):
    a = bools(d, 2, 3)
    out = torch.empty(0, dtype=torch.bool, device=d)
    torch.add(a, a, out=out)
    out.index_fill_(1, torch.tensor([1], device=d), 1)
    return out, saved(a.permute(1, 0)), saved([out, out[0]])


@same_on_both
def test_bytes_of_bools_are_written(d):
    a = bools(d, 6)
    b = a.view(torch.uint8)
    b.bitwise_xor_(1)
    b[2:4].fill_(0)
    a[5] = True
    c = a.view(torch.int8)
    return a, b, c, a & (b == 1), (a.view(2, 3) | a.view(2, 3)).sum(1)


@same_on_both
def test_bytes_are_seen_as_bools(d):
    bytes_ = torch.tensor([0, 1, 1, 0, 1, 0], dtype=torch.uint8).to(d)
    a = bytes_.view(torch.bool)
    a[0:2].logical_not_()
    a.masked_fill_(torch.tensor([False, False, True, True, False, False], device=d), True)
    numbers_ = numbers(d, 6)
    return bytes_, a, numbers_[a], ~a, a.view(3, 2).any(1)


@same_on_both
def test_bools_as_wider_integers(d):
    a = bools(d, 8)
    wide = a.view(torch.int32)
    wide[1:] = 0
    return a, wide


@raises_on_both(RuntimeError)
def test_a_number_that_a_byte_does_not_hold(d):
    torch.zeros(3, dtype=torch.uint8, device=d).fill_(300)


@raises_on_both(RuntimeError)
def test_a_number_that_a_byte_does_not_hold_at_a_place(d):
    torch.zeros(3, dtype=torch.uint8, device=d).index_fill_(0, torch.tensor([1], device=d), 300)


@raises_on_both(RuntimeError)
def test_a_number_that_a_byte_does_not_hold_by_a_mask(d):
    x = torch.zeros(3, dtype=torch.uint8, device=d)
    x.masked_fill_(x == 0, -1.5)


def test_bits_of_floats_are_refused_at_the_call():
    """And nothing is lost."""
    for d in ("cpu", "weft"):
        x = torch.ones(3, device=d)
        for program in (lambda: x.__ixor__(1), lambda: x & x, lambda: x << x, lambda: torch.gcd(x, x)):
            try:
                program()
            except NotImplementedError:
                continue
            raise AssertionError("it was not refused")
        assert x.tolist() == [1, 1, 1]


@same_on_both
def test_a_complex_number_is_true_unless_both_parts_are_0(d):
    z = torch.tensor([0j, 1j, 1 + 0j]).to(d)
    a = torch.zeros(3, dtype=torch.bool, device=d)
    a.copy_(z)
    return a, z.bool(), z.conj().to(torch.bool), torch.zeros(2, dtype=torch.bool, device=d).fill_(z[1])
