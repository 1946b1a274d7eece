"""Values that are equal have memory of their own, and realising changes nothing but when things run."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import Tensor


def test_a_clone_is_not_written_with_its_tensor() -> None:
    a = Tensor([-5.0, 9.0, -3.0])
    b, view = a.clone(), a.flatten()
    a[:1] *= 3
    part = b.expand(3)
    assert (view.tolist(), part.tolist(), b.tolist()) == ([-15, 9, -3], [-5, 9, -3], [-5, 9, -3])


def test_a_clone_of_what_is_not_there_yet() -> None:
    a = Tensor([1.0, 2.0]) + 1
    b = a.clone()
    b[:1] += 10
    b.realize()
    assert (a.tolist(), b.tolist()) == ([2, 3], [12, 3])


def test_values_that_simplify_to_one_another() -> None:
    a = Tensor.arange(2).float()
    b = a.roll(2)
    b[:1] = 5
    (b * 2).realize()
    assert a.tolist() == [0, 1]

    a = Tensor([-5, 3, -4]) + 1
    b = a.minimum(a)
    a[1:] = 7
    a.realize(b)
    assert (a.tolist(), b.tolist()) == ([-4, 7, 7], [-4, 4, -3])

    a = Tensor.ones(4)
    b = (Tensor([True]) & True).where(a, a)
    a[2:] = 0
    assert ((b + a).tolist(), b.tolist()) == ([2, 2, 1, 1], [1, 1, 1, 1])


def test_realising_a_part_leaves_it_a_part() -> None:
    part = Tensor.arange(6).float()[::2]
    part.realize()
    copy = part.contiguous()
    copy[0] = 50
    assert part.tolist() == [0, 2, 4]

    wide = Tensor([1.0, 2.0, 3.0])[1].expand(3)
    wide.realize()
    with pytest.raises(weft.ShapeError):
        wide += 8


def test_a_part_realised_twice_at_once() -> None:
    part = (Tensor.arange(20).float() + 1)[1:20:3]
    part.realize(part, part)
    assert part.tolist() == [2, 5, 8, 11, 14, 17, 20]


def test_tensors_without_elements() -> None:
    a = Tensor.zeros(2, 0, 3)
    a[1] = 5
    a += 1
    assert (a + 1).cast("int32").tolist() == [[], []]


@pytest.mark.parametrize("shape", [(7,), (7, 4), (3, 2, 2)])
@pytest.mark.parametrize("is_realised", [False, True])
def test_loops_over_rows(shape: tuple[int, ...], is_realised: bool) -> None:
    n = shape[0]
    start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def loops(a: Tensor | np.ndarray, realize: bool) -> list[Tensor | np.ndarray]:
        results = []
        for body in (lambda i: a[i - 1] + 1, lambda i: a[(i + 1) % n], lambda i: a[i - 1] * 2 - 1, lambda i: a[n - 1 - i],
                     lambda i: i, lambda i: a[0] + i, lambda i: a[i // 2]):
            for i in range(n):
                a[i] = body(i)
            results.append(a * 1)
            if realize:
                results[-1].realize()
        return results

    tensor = Tensor(start)
    for result, expected in zip(loops(tensor, is_realised), loops(start.copy(), False)):
        np.testing.assert_array_equal(result.numpy(), expected)


def test_operands_that_change_places_of_use() -> None:
    a = Tensor(np.array([5, -1, -5, 9, 0, 2, 5, 1, 5, 8, -5, 8, 4, -3, 6, 4, 2, 1], np.int32).reshape((6, 3)))
    b = a.unfold(1, 2, 3) + a[5, 2]
    least = a.flatten().min(axis=0)
    c = b[2:-3, -1, :1:2]
    d = (least > 1).where(c + -2, least.reshape((1, 1)))
    e = (c[:] > 1).where(c[0:1], c[::2, -1::2]) - -2
    e.realize(d, e)
    assert (d.tolist(), e.tolist()) == ([[-5]], [[8]])
