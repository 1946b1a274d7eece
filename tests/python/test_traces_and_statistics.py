"""What rewrites did, and how often each rule was tried."""

import json
from collections.abc import Iterator

import pytest

from weft.ir import Ops, Pat, RuleSet, Trace, UOp, reset_rule_statistics, rule, rule_statistics, set_stats

x = Pat.var("x")
n = UOp.variable("n", 0, 9)
one, two = rule(x * 1, lambda x: x, name="times-one"), rule(x + 0, lambda x: x, name="plus-zero")
RULES = RuleSet([one, two], name="tidy")


@pytest.fixture
def counting() -> Iterator[None]:
    old = set_stats(1)
    reset_rule_statistics()
    yield
    set_stats(old)
    reset_rule_statistics()


def test_steps() -> None:
    trace = Trace()
    u = n * 1 + 0
    assert trace.passes == []
    assert u.rewrite(RULES, trace=trace) == n and n.rewrite(RULES, trace=trace, name="again") == n
    first, second = trace.passes
    assert (first.name, first.before, first.after) == ("tidy", u, n) and first.nanoseconds > 0
    assert (second.name, second.steps) == ("again", [])
    assert [(s.rule, str(s.before), str(s.after), s.file, s.line) for s in first.steps] == [
        ("times-one", "n*1", "n", one.file, one.line), ("plus-zero", "n + 0", "n", two.file, two.line)]


def test_text_and_json() -> None:
    trace = Trace()
    (n * 1 + 0).rewrite(RULES, trace=trace)
    assert trace.text().splitlines()[0] == "pass tidy: 2 steps" and "n*1 -> n" in trace.text()
    data = json.loads(trace.json())
    assert data["passes"][0]["name"] == "tidy" and data["passes"][0]["after"].startswith("%0 = CONST")
    assert data["passes"][0]["steps"][0]["rule"] == "times-one"


def test_json_of_any_name() -> None:
    for name in ["größe" * 100, "a" + "ö" * 300, "\udcff"]:  # text is cut at a number of bytes
        trace = Trace()
        variable = UOp.new(Ops.VARIABLE, n.dtype, n.src, name)
        (variable * 1).rewrite(RULES, trace=trace)
        assert json.loads(trace.json())["passes"][0]["steps"] and trace.text()


def test_a_failed_pass_is_in_the_trace() -> None:
    trace = Trace()

    def fail(x: UOp) -> UOp:
        raise KeyError("no")

    with pytest.raises(KeyError):
        ((n * 1) + 5).rewrite(RuleSet([one, rule(x + 5, fail, name="fails")]), trace=trace)
    assert [s.rule for s in trace.passes[0].steps] == ["times-one"]


def test_statistics(counting: None) -> None:
    ((n * 1 + 0) * (n * 3 + 7)).rewrite(RULES)
    found = {s.name: s for s in rule_statistics()}
    assert found["times-one"].fired == 1 and found["times-one"].tried >= 1
    assert found["plus-zero"].fired == 1 and found["plus-zero"].tried >= 1
    assert found["times-one"].nanoseconds > 0 and found["times-one"].file == one.file
    assert repr(found["times-one"]).startswith("times-one: tried ")
    reset_rule_statistics()
    assert rule_statistics() == []


def test_statistics_outlive_their_rules(counting: None) -> None:
    (n * 3).rewrite(RuleSet([rule(x * 3, lambda x: x, name="short-lived")]))
    assert [s.name for s in rule_statistics()] == ["short-lived"]


def test_nothing_is_counted_by_default() -> None:
    assert set_stats(0) == 0
    reset_rule_statistics()
    (n * 1).rewrite(RULES)
    assert rule_statistics() == []


def test_levels() -> None:
    with pytest.raises(ValueError, match="0, 1 or 2"):
        set_stats(3)
