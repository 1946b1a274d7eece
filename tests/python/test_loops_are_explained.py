"""Rules that never come to rest are reported as the loop that they are."""

import time

import pytest

import weft
from weft.ir import LoopStep, Ops, Pat, RuleSet, UOp, dtypes, rule

x, y = Pat.var("x"), Pat.var("y")
n = UOp.variable("n", 0, 9)


def loop_of(u: UOp, rules: RuleSet, order: str = "bottom-up") -> weft.RewriteLoopError:
    start = time.monotonic()
    with pytest.raises(weft.RewriteLoopError) as error:
        u.rewrite(rules, order=order, name="the-pass")
    assert time.monotonic() - start < 3
    assert error.value.pass_name == "the-pass" and "the-pass" in str(error.value)
    return error.value


@pytest.mark.parametrize("order", ["bottom-up", "top-down"])
def test_ping_pong(order: str) -> None:
    there, back = rule(x + y, lambda x, y: x.max(y), name="there"), rule(x.max(y), lambda x, y: x + y, name="back")
    e = loop_of((n + 3) * 2, RuleSet([there, back]), order)
    assert e.kind == "cycle" and e.ends_in == "n + 3"
    assert e.steps == [LoopStep("n + 3", "there", there.file, there.line),
                       LoopStep("max(n, 3)", "back", back.file, back.line)]
    assert f"{__file__}:{there.line}" in str(e)


def test_growth_on_the_way_up() -> None:
    e = loop_of(n + 1, RuleSet([rule(x + 1, lambda x: (x + 1) * 2, name="doubles")]))
    assert e.kind == "growth" and {s.rule for s in e.steps} == {"doubles"} and e.steps[0].node == "n + 1"


def test_growth_on_the_way_down() -> None:
    def more(x: UOp, c: UOp) -> UOp:
        return (x + (c.arg + 1)) * 2

    e = loop_of(n + 1, RuleSet([rule(x + Pat.const("c"), more, name="more")]), "top-down")
    assert e.kind == "growth" and len(e.steps) >= 3
    numbers = [int(s.node.split("+ ")[1].split(")")[0]) for s in e.steps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.parametrize("order", ["bottom-up", "top-down"])
def test_terms_of_a_large_graph_can_be_told_apart(order: str) -> None:
    big = n
    for i in range(200):
        big = (big * 3 + i).max(i)
    deepens = rule(Pat.op(Ops.MAX, x, Pat.const("c")), lambda x, c: (x + 1).max(c.arg), name="deepens")
    e = loop_of(big, RuleSet([deepens]), order)
    shown = [s.node for s in e.steps]
    assert e.kind == "growth" and len(set(shown)) == len(shown) >= 3 and all(len(s) <= 160 for s in shown)


def test_counting_without_end() -> None:
    up = rule(Pat.op(Ops.ADD, x, Pat.const("c")), lambda x, c: x + (c.arg + 1) % 2**40, name="counts")
    e = loop_of(n + 1, RuleSet([up]))
    assert e.kind == "growth" and e.steps[0].rule == "counts"


def test_the_graph_is_usable_after_a_loop() -> None:
    u = (n + 3) * 2
    loop_of(u, RuleSet([rule(x + y, lambda x, y: y + x, name="swap")]))
    assert str(u.simplify()) == "n*2 + 6"
    assert u.rewrite(RuleSet([rule(x + 3, lambda x: x)])) == n * 2


def test_long_chains_of_rules_are_no_loop() -> None:
    down = rule(Pat.op(Ops.ADD, x, Pat.const("c")), lambda x, c: x + (c.arg - 1) if c.arg > 0 else None)
    assert (n.cast(dtypes.int64) + 3000).rewrite(RuleSet([down])).src[1].arg == 0
