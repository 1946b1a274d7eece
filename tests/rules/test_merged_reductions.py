"""The corrections of merged reductions, proved: what is left of a sum when its maximum, or its mean, becomes another one.

Each is proved for a sum of one element that is there and one that comes; sums are linear in their elements.
"""

import pytest

z3 = pytest.importorskip("z3")


def proved(claim: object, *given: object) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(*given, z3.Not(claim))
    return bool(solver.check() == z3.unsat)


def test_exponentials() -> None:
    """e(m - m') sum_j e(x_j - m) v_j + e(x - m') v == sum_j e(x_j - m') v_j + e(x - m') v"""
    e = z3.Function("e", z3.RealSort(), z3.RealSort())
    x, v, new_x, new_v, old_base, base = z3.Reals("x v new_x new_v old_base base")
    power = e((old_base - base) + (x - old_base)) == e(old_base - base) * e(x - old_base)  # e(a + b) == e(a) e(b)
    so_far = e(x - old_base) * v
    corrected = so_far * e(old_base - base) + e(new_x - base) * new_v
    formula = e(x - base) * v + e(new_x - base) * new_v
    assert proved(corrected == formula, power)
    assert not proved(corrected == formula)  # of any function it is not so


def test_a_base_of_zero_where_nothing_counts() -> None:
    """With e(-inf) == 0 for all that came, any factor is right."""
    factor, so_far = z3.Reals("factor so_far")
    assert proved(so_far * factor == 0, so_far == 0)


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_squared_deviations(before: int, block: int) -> None:
    """sum_old + sum_block + (mean_block - mean_old)^2 n m / (n + m) == sum of all (x - mean)^2"""
    old = z3.Reals(" ".join(f"a{i}" for i in range(before)))
    new = z3.Reals(" ".join(f"b{i}" for i in range(block)))
    n, m = z3.RealVal(block), z3.RealVal(before)

    def mean(xs: list[object]) -> object:
        return z3.Sum(xs) / len(xs)

    def spread(xs: list[object]) -> object:
        return z3.Sum([(x - mean(xs)) * (x - mean(xs)) for x in xs])

    distance = mean(new) - mean(old)
    merged = spread(old) + spread(new) + distance * distance * (n * (m / (n + m)))
    difference = z3.simplify(merged - spread(old + new), som=True)
    assert proved(difference == 0)


def test_a_factor_of_the_row_leaves_the_sum() -> None:
    """sum_j (x_j / l) v_j == (sum_j x_j v_j) / l"""
    x, v, y, w, row = z3.Reals("x v y w row")
    assert proved((x / row) * v + (y / row) * w == (x * v + y * w) / row, row != 0)
