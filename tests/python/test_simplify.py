"""simplify() from Python, on what reshapes and slices make."""

import random

import pytest

from weft.ir import Trace, UOp, dtypes, symbolic

x, y = UOp.variable("x", 0, 99), UOp.variable("y", 0, 7)


@pytest.mark.parametrize(("expression", "text"), [
    (x // 4 * 4 + x % 4, "x"), (x * 4 % 4, "0"), ((x * 8 + y) // 8, "x"), ((x * 8 + y) % 8, "y"),
    (x + 3 - 3, "x"), (x * 1 + 0, "x"), ((x < 100) & (y < 5), "y < 5"), (x // 4 // 5, "x//20"),
    ((x + x).max(x + x), "x*2"), ((x < 200).where(x, y), "x"), (y % 8, "y"), (x // 100, "0"),
])
def test_examples(expression: UOp, text: str) -> None:
    assert str(expression.simplify()) == text


def test_simplifying_again_changes_nothing() -> None:
    u = ((x * 12 + y * 4 + 3) // 4 % 3 + x * 12).simplify()
    assert u.simplify() == u == u.rewrite(symbolic)


def test_the_trace_says_why() -> None:
    trace = Trace()
    (x * 1 + 0).simplify(trace=trace)
    assert [(p.name, [s.rule for s in p.steps]) for p in trace.passes] == [("simplify", ["mul-one", "add-zero"])]
    assert all(s.file.endswith(".cpp") and s.line > 0 for s in trace.passes[0].steps)


def test_values_stay() -> None:
    choose = random.Random(1)
    for _ in range(300):
        u = random_expression(choose, 4)
        simple = u.simplify()
        for _ in range(5):
            point = {"x": choose.randrange(100), "y": choose.randrange(8)}
            assert u.evaluate(variables=point) == simple.evaluate(variables=point), (u, simple, point)


def random_expression(choose: random.Random, depth: int) -> UOp:
    if depth == 0 or choose.random() < 0.1:
        return choose.choice([x, y, UOp.const(dtypes.index, choose.randrange(-9, 33))])
    a, b = random_expression(choose, depth - 1), random_expression(choose, depth - 1)
    c = choose.randrange(1, 17)
    return choose.choice([lambda: a + b, lambda: a - b, lambda: a * c, lambda: a // c, lambda: a % c, lambda: a.max(b),
                          lambda: a.min(b), lambda: (a < b).where(a, b)])()
