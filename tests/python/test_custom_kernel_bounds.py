"""Kernels of users that are known to leave their memory are refused where they are called."""

from collections.abc import Callable

import pytest

import weft
from weft import Tensor, custom_kernel
from weft.ir import UOp, dtypes

N = 8
Build = Callable[[UOp, UOp], UOp]


def copy_at(to: Callable[[UOp], UOp | int], of: Callable[[UOp], UOp | int], count: int = N) -> Build:
    def build(out: UOp, x: UOp) -> UOp:
        i = UOp.range(count, 0)
        return out.index(to(i)).assign(x.index(of(i)).load()).end(i)

    return build


def same(i: UOp) -> UOp:
    return i


def tiled(out: UOp, x: UOp) -> UOp:
    i, j = UOp.range(4, 0), UOp.range(3, 1)
    return out.index(i * 2 + j).assign(x.index(i).load()).end(i, j)


def in_vectors(at: Callable[[UOp], UOp]) -> Build:
    def build(out: UOp, x: UOp) -> UOp:
        i = UOp.range(2, 0)
        place = out.index(at(i)).cast(out.dtype.vec(4))
        return place.assign(x.index(i * 4).cast(x.dtype.vec(4)).load()).end(i)

    return build


def triangle(width: int) -> Build:
    def build(out: UOp, x: UOp) -> UOp:
        i = UOp.range(4, 0)
        j = UOp.range(i + 1, 1)
        return out.index(i * width + j).assign(x.index(i + j).load()).end(i, j)

    return build


def gated(most: int) -> Build:
    def build(out: UOp, x: UOp) -> UOp:
        i = UOp.range(20, 0)
        return out.index(i).assign(x.index(i * 0).load(), i < most).end(i)

    return build


LEAVING: dict[str, tuple[Build, str]] = {
    "one past the end": (copy_at(same, lambda i: i * 0, N + 1), "writes memory 0 .* from 0 to 8; memory 0 has 8"),
    "one before the start": (copy_at(lambda i: i - 1, same), "from -1 to 6"),
    "a constant": (copy_at(lambda i: i * 0 + 8, same), "from 8 to 8"),
    "a read": (copy_at(same, lambda i: i + 1), "reads memory 1 .* from 1 to 8"),
    "a read far away": (copy_at(same, lambda i: i * 1000), "from 0 to 7000"),
    "a stride": (copy_at(lambda i: i * 2, same, 5), "from 0 to 8"),
    "backwards": (copy_at(lambda i: 6 - i, same), "from -1 to 6"),
    "a quotient": (copy_at(lambda i: i // 2 + 5, same), "from 5 to 8"),
    "a remainder": (copy_at(lambda i: i % 4 + 5, same), "from 5 to 8"),
    "a loop twice": (copy_at(lambda i: i + i, same, 5), "from 0 to 8"),
    "a loop that goes away": (copy_at(lambda i: i - i + 9, same), "from 9 to 9"),
    "tiles": (tiled, "from 0 to 8"),
    "vectors": (in_vectors(lambda i: i * 4 + 1), "writes 4 elements of memory 0 .* from 1 to 5"),
    "a triangle": (triangle(2), "element 8 at r0 = 3, r1 = 2"),
    "behind a gate": (gated(9), "element 8 at r0 = 8"),
    "a permutation": (copy_at(lambda i: i * 3 % 8 + 1, same), "element 8 at r0 = 5"),
    "a choice": (copy_at(lambda i: (i < 5).where(i, i + 1), same), "element 8 at r0 = 7"),
    "many places": (copy_at(lambda i: (i * 5 % 7 + i) // 3 % 9, same, 10**6), "element 8 at r0 = "),
    "very far": (copy_at(lambda i: i + 2**40, same), "from 1099511627776"),
}


@pytest.mark.parametrize("device", ["CPU", "REF"])
@pytest.mark.parametrize("name", LEAVING)
def test_a_kernel_that_leaves_its_memory(name: str, device: str) -> None:
    build, text = LEAVING[name]
    x = Tensor([1.0] * N, device=device)
    with pytest.raises(weft.IndexError, match=rf"\[custom_kernel\] .*{text}"):
        custom_kernel(build, [(N, "float32")], [x])


STAYING: dict[str, Build] = {
    "to the last": copy_at(same, same),
    "backwards": copy_at(lambda i: 7 - i, same),
    "wrapped": copy_at(same, lambda i: (i + 5) % 8),
    "of a product": copy_at(same, lambda i: (i * 3) % 8),
    "its difference": copy_at(same, lambda i: i * 2 - i),
    "of halves": copy_at(same, lambda i: i // 2 + 4),
    "vectors": in_vectors(lambda i: i * 4),
    "a triangle": triangle(1),
    "behind a gate": gated(8),
    "that wraps": copy_at(same, lambda i: ((i * 4).cast(dtypes.int8) * 64).cast(dtypes.index)),
    "both": copy_at(same, lambda i: (i // 4) * 4 + i % 4),
}


@pytest.mark.parametrize("name", STAYING)
def test_a_kernel_that_stays_within(name: str) -> None:
    x = Tensor([float(i) for i in range(N)])
    assert len(custom_kernel(STAYING[name], [(N, "float32")], [x]).tolist()) == N


def test_what_is_not_known_is_not_refused() -> None:
    def gathered(out: UOp, x: UOp, at: UOp) -> UOp:
        i = UOp.range(N, 0)
        return out.index(i).assign(x.index(at.index(i).load().cast(dtypes.index)).load()).end(i)

    def guarded(out: UOp, x: UOp) -> UOp:
        i = UOp.range(N, 0)
        zero = UOp.const(dtypes.float32, 0.0)
        return out.index(i).assign(x.index(i + 4).load(i < 4, zero)).end(i)

    def chosen(out: UOp, x: UOp) -> UOp:
        i = UOp.range(N, 0)
        zero = UOp.const(dtypes.float32, 0.0)
        return out.index(i).assign((i < 1).where(x.index(i * 3_000_000 + 4).load(), zero)).end(i)

    x = Tensor([float(i) for i in range(N)])
    at = Tensor([7, 6, 5, 4, 3, 2, 1, 0], dtype="int32")
    assert custom_kernel(gathered, [(N, "float32")], [x, at]).tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    assert custom_kernel(guarded, [(N, "float32")], [x]).tolist() == [4, 5, 6, 7, 0, 0, 0, 0]
    assert custom_kernel(chosen, [(N, "float32")], [x]).tolist() == [4, 0, 0, 0, 0, 0, 0, 0]


def test_memory_is_what_it_is_given() -> None:
    x = Tensor([1.0] * N)

    def larger(out: UOp, x: UOp) -> UOp:
        return copy_at(same, lambda i: i // 2, 2 * N)(UOp.define_global(dtypes.float32, 2 * N, 0), x)

    def wider(out: UOp, x: UOp) -> UOp:
        i = UOp.range(N, 0)
        return UOp.define_global(dtypes.float64, N, 0).index(i).assign(x.index(i).load().cast(dtypes.float64)).end(i)

    def variable(out: UOp, x: UOp) -> UOp:
        i = UOp.range(N, 0)
        v = UOp.variable("v", 0, 3)
        return out.index(i).assign(x.index(i).load() * v.cast(dtypes.float32)).end(i)

    with pytest.raises(weft.IndexError, match="memory 0 has 8 elements"):
        custom_kernel(larger, [(N, "float32")], [x])
    with pytest.raises(weft.SpecError, match="memory 0 has dtype float32, and is defined as float64"):
        custom_kernel(wider, [(N, "float32")], [x])
    with pytest.raises(weft.SpecError, match="variable v has no value"):
        custom_kernel(variable, [(N, "float32")], [x])
    assert (x + 1).tolist() == [2] * N
