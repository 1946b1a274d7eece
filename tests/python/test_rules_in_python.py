"""Patterns, and rules with functions of Python, on the engine of C++."""

import pathlib

import pytest

import weft
from weft.ir import Arena, AxisType, Ops, Pat, Rule, RuleSet, UOp, dtypes, graph_rewrite, rule, symbolic

x, y, c, d = Pat.var("x"), Pat.var("y"), Pat.const("c"), Pat.const("d")
n, m = UOp.variable("n", 0, 99), UOp.variable("m", 0, 99)
f = UOp.variable("f", 0, 9, dtypes.int32)


def rewritten(u: UOp, *rules: Rule, **options: object) -> str:
    return str(u.rewrite(RuleSet(rules), **options))


def test_a_function_gets_what_the_pattern_bound() -> None:
    seen = []

    def body(x: UOp, c: UOp) -> UOp:
        seen.append((str(x), c.arg))
        return x - c.arg

    assert rewritten(n + 5, rule(x + c, body)) == "n - 5"
    assert rewritten(5 + n, rule(x + c, body)) == "n - 5"
    assert seen == [("n", 5), ("n", 5)]


def test_a_function_takes_only_what_it_names() -> None:
    assert rewritten(n + 5, rule(x + c, lambda x: x)) == "n"
    assert rewritten(n + 5, rule(x + c, lambda **names: names["x"] * names["c"].arg)) == "n*5"
    assert rewritten(n + 5, rule(x + c, lambda root: root.src[0] * 2)) == "n*2"
    assert rewritten(n + 5, rule(x + c, lambda x, other=3: x * other)) == "n*3"
    assert rewritten(n + 5, rule(x + c, lambda: m)) == "m"
    with pytest.raises(TypeError, match="the function wants z; the pattern binds x, c"):
        rule(x + c, lambda x, z: x)
    with pytest.raises(TypeError, match="cannot be given by name"):
        rule(x + c, lambda x, /: x)


def test_none_is_no_match() -> None:
    tried = []

    def body(x: UOp, y: UOp) -> None:
        tried.append((str(x), str(y)))

    assert rewritten(n + m, rule(x + y, body)) == "n + m"
    assert tried == [("n", "m"), ("m", "n")]  # both orders of a commutative op
    with pytest.raises(TypeError, match="what the rule wrong returns must be a UOp, not int"):
        rewritten(n + m, rule(x + y, lambda: 3, name="wrong"))


def test_a_replacement_may_be_a_pattern() -> None:
    assert rewritten((n + 3) + 4, rule((x + c) + d, x + Pat.fold(c + d))) == "n + 7"
    assert rewritten(n * 2, rule(x * 2, x << 1)) == "n << 1"
    assert rewritten(n - n, rule(x - x, 0)) == "0"
    with pytest.raises(ValueError, match="uses y, which the pattern does not bind"):
        rule(x + 1, y)
    for wrong in [Pat.any(), Pat.rest(), Pat.op({Ops.ADD, Ops.SUB}, x, x), Pat.either(x, x), x.of(dtypes.int8),
                  Pat.fold(x + 1), Pat.op(Ops.SINK, *[x] * 9), Pat.op(Ops.NEG, x, x), x.cast(dtypes.int8)]:
        with pytest.raises(ValueError, match=r"\[rule\]"):
            rule(x + 1, wrong)


def test_decorator() -> None:
    @rule(x // c)
    def div_to_shift(x: UOp, c: UOp) -> UOp | None:
        return x >> 3 if c.arg == 8 else None

    assert isinstance(div_to_shift, Rule) and div_to_shift.name == "div-to-shift"
    assert rewritten(n // 8 + n // 7, div_to_shift) == "(n >> 3) + n//7"


def test_rules_know_where_they_were_made() -> None:
    r = rule(x + c, x, name="drop")
    line = test_rules_know_where_they_were_made.__code__.co_firstlineno + 1
    assert pathlib.Path(r.file) == pathlib.Path(__file__) and r.line == line
    assert repr(r).startswith("Rule(drop, ")


def test_repeated_names_match_the_same_node() -> None:
    double = rule(x + x, lambda x: x * 2)
    assert rewritten(n + n, double) == "n*2" and rewritten(n + m, double) == "n + m"
    same = rule((x * c) + (y * c), lambda x, y, c: (x + y) * c)
    assert rewritten(n * 3 + m * 3, same) == "(n + m)*3" and rewritten(n * 3 + m * 4, same) == "n*3 + m*4"


def test_literals() -> None:
    assert rewritten(n * 0, rule(x * 0, lambda x: x)) == "n" and rewritten(n * 1, rule(x * 0, lambda x: x)) == "n*1"
    flag = UOp.const(dtypes.float32, 3).eq(4)
    assert rewritten(flag.where(n, m), rule(Pat.any().where(x, y), y)) == "m"
    zero, minus = UOp.const(dtypes.float32, 0.0), UOp.const(dtypes.float32, -0.0)
    plus_zero = rule(-Pat.literal(-0.0), lambda: UOp.const(dtypes.float32, 7))
    assert rewritten(-zero, plus_zero) == "neg(0.0)" and rewritten(-minus, plus_zero) == "7.0"
    with pytest.raises(ValueError, match="64 bits"):
        Pat.literal(2**63)


def test_dtypes() -> None:
    only = rule(Pat.var("x", dtypes.int32) + Pat.any(), lambda x: x)
    assert rewritten(n + 1, only) == "n + 1" and rewritten(f + 1, only) == "f"
    floats = rule(-Pat.var("x", dtypes.floats), lambda x: x)
    assert rewritten(-f, floats) == "neg(f)" and rewritten(-f.cast(dtypes.float32), floats) == "cast.float32(f)"
    of = rule((x + 1).of(dtypes.index), lambda x: x)
    assert rewritten(n + 1, of) == "n" and rewritten(f + 1, of) == "f + 1"
    assert rewritten(f.cast(dtypes.int8), rule(x.cast(dtypes.int8), lambda: UOp.const(dtypes.int8, 1))) == "1"
    with pytest.raises(ValueError, match="element types"):
        Pat.var("x", dtypes.float32.vec(4))


def test_sets_of_ops() -> None:
    either = rule(Pat.op({Ops.ADD, Ops.SUB}, x, c, name="sum"), lambda sum, x, c: x * c if sum.op is Ops.ADD else None)
    assert rewritten(n + 3, either) == "n*3" and rewritten(n - 3, either) == "n - 3"
    with pytest.raises(ValueError, match="empty"):
        Pat.op([], x)


def test_names_of_inner_nodes() -> None:
    inner = rule((x + y).named("sum") * c, lambda sum, c: sum - c)
    assert rewritten((n + m) * 3, inner) == "n + m - 3"
    with pytest.raises(ValueError, match="cannot have a name"):
        Pat.either(x, y).named("z")


def test_rest() -> None:
    sink = rule(Pat.op(Ops.SINK, x, Pat.rest("more")), lambda x, more: UOp.sink(*more) if more else None)
    assert rewritten(UOp.sink(n + 1, m + 1, n), sink) == "sink(n)"
    every = rule(Pat.op(Ops.SINK, Pat.rest("all")), lambda all: UOp.sink(*reversed(all)) if len(all) == 3 else None)
    with pytest.raises(weft.RewriteLoopError):
        rewritten(UOp.sink(n, m, f), every)
    assert rewritten(n + 1, rule(Pat.op(Ops.ADD, x, Pat.rest("r")), lambda x, r: x * r[0])) == "n*1"
    assert rewritten(UOp.range(9, 0), rule(Pat.op(Ops.RANGE, Pat.rest(), name="r"), lambda r: r.replace(
        arg=(r.arg[0], AxisType.GLOBAL)) if r.arg[1] is AxisType.LOOP else None)) == "r0"
    for wrong in [Pat.op(Ops.SINK, Pat.rest(), x), Pat.op(Ops.SINK, Pat.op(Ops.ADD, Pat.rest("a")), Pat.rest("b")),
                  Pat.op(Ops.SINK, Pat.either(Pat.rest(), x))]:
        with pytest.raises(ValueError, match="rest"):
            rule(wrong, lambda: n)


def test_either() -> None:
    mod = rule(Pat.either(x % c, x) // 4, lambda x: x)
    assert rewritten(n % 8 // 4, mod) == "n" and rewritten(n // 4, mod) == "n"
    with pytest.raises(TypeError, match="the function wants c"):
        rule(Pat.either(x % c, x) // 4, lambda x, c: x)
    second = rule(Pat.either(x * 2, x + 2) // 4, lambda x: x)
    assert rewritten((n + 2) // 4, second) == "n" and rewritten((n - 2) // 4, second) == "(n - 2)//4"


def test_any_and_nonconst() -> None:
    assert rewritten((n + m) * f.cast(dtypes.index), rule(Pat.any() * Pat.any(), lambda: n)) == "n"
    moved = rule(c + Pat.nonconst("x"), lambda x, c: x * c)
    assert rewritten(n + 1, moved) == "n*1" and rewritten(UOp.const(dtypes.index, 3) + 1, moved) == "3 + 1"
    assert rewritten((n + 2) * 3, rule((x + Pat.const()) * Pat.const(), lambda x: x)) == "n"


def test_too_many_names() -> None:
    names = [Pat.var(f"v{i}") for i in range(7)]
    six = Pat.op(Ops.SINK, *names[:6])
    assert rewritten(UOp.sink(n, m, n, m, n, m), rule(six, lambda v5: v5)) == "m"
    with pytest.raises(ValueError, match="at most 6 nodes"):
        rule(Pat.op(Ops.SINK, *names), lambda: n)
    with pytest.raises(ValueError, match="one for all that have no name: a pattern names at most 6 nodes"):
        rule(Pat.op(Ops.SINK, *names[:6], Pat.any()), lambda: n)
    with pytest.raises(ValueError, match="at most 4 constants"):
        rule(Pat.op(Ops.SINK, *(Pat.const(f"c{i}") for i in range(5))), lambda: n)
    with pytest.raises(ValueError, match="at most 18"):
        rule(Pat.op(Ops.SINK, *(x + y for _ in range(6))), lambda: n)
    with pytest.raises(ValueError, match="two kinds"):
        rule(Pat.var("a") + Pat.const("a"), lambda: n)
    with pytest.raises(ValueError, match="start with an op"):
        rule(x, lambda: n)
    with pytest.raises(TypeError, match="a Pat is needed"):
        rule(n + 1, lambda: n)


def test_context() -> None:
    counts: dict[str, int] = {}

    def count(ctx: dict[str, int], x: UOp) -> None:
        ctx[str(x)] = ctx.get(str(x), 0) + 1

    assert rewritten((n + 1) * (m + 1), rule(x + 1, count), ctx=counts) == "(n + 1)*(m + 1)"
    assert counts == {"n": 1, "m": 1}


def test_gate_stops_descent() -> None:
    u = (n + 1) * UOp.sink(m + 1).src[0]
    plain = rule(x + 1, lambda x: x)
    assert rewritten(u, plain) == "n*m"
    assert rewritten(u, plain, gate=lambda node: node.op is not Ops.MUL) == "(n + 1)*(m + 1)"
    with pytest.raises(ZeroDivisionError):
        rewritten(u, plain, gate=lambda node: 1 // 0)


def test_orders() -> None:
    seen = []
    watch = rule(Pat.op({Ops.ADD, Ops.MUL}, Pat.rest(), name="node"), lambda node: seen.append(str(node)))
    u = (n + 1) * 2
    rewritten(u, watch)
    assert seen == ["n + 1", "(n + 1)*2"]
    seen.clear()
    rewritten(u, watch, order="top-down")
    assert seen[:2] == ["(n + 1)*2", "n + 1"]
    with pytest.raises(ValueError, match="bottom-up or top-down"):
        rewritten(u, watch, order="sideways")


def test_exceptions_pass_through() -> None:
    class Special(Exception):
        pass

    def body(x: UOp) -> UOp:
        raise Special("from the rule")

    with pytest.raises(Special, match="from the rule") as error:
        rewritten((n + 1) * 2, rule(x + 1, body))
    assert error.traceback[-1].name == "body"
    assert rewritten((n + 1) * 2, rule(x + 1, lambda x: x)) == "n*2"  # nothing is left behind


def test_results_of_other_arenas_are_imported() -> None:
    with Arena():
        other = UOp.variable("other", 0, 9) * 3
    u = (n + 1) * 2
    result = u.rewrite(RuleSet([rule(x + 1, lambda: other)]))
    assert str(result) == "other*3*2" and {node.arena for node in result.toposort()} == {u.arena}


def test_rules_may_rewrite() -> None:
    inner = RuleSet([rule(x - c, lambda x: x)])
    assert rewritten((n - 3) + (m - 4), rule(x + y, lambda root: root.rewrite(inner), name="outer")) == "n + m"
    assert rewritten((n * 4) // 4 + 1, rule(x + 1, lambda x: x.simplify())) == "n"


def test_sets_add_up() -> None:
    first, second = RuleSet([rule(x * 7, lambda x: x << 3, name="odd")], name="first"), RuleSet([], name="second")
    both = first + second + symbolic
    assert both.names[0] == "odd" and len(both) == len(symbolic) + 1 and both.name == "first+second+symbolic"
    assert str(graph_rewrite((n * 1) * 7, both)) == "n << 3"
    assert len(both + both) == len(both) == len(RuleSet([first, symbolic]))
    assert repr(symbolic) == f"RuleSet(symbolic, {len(symbolic)} rules)"
    with pytest.raises(ValueError, match="two rules named odd"):
        first + RuleSet([rule(x * 9, lambda x: x, name="odd")])
    with pytest.raises(TypeError, match="rules and sets"):
        RuleSet([x])
    with pytest.raises(TypeError):
        first + [1]
    with pytest.raises(TypeError, match="a RuleSet is needed"):
        n.rewrite([rule(x * 7, x)])


def test_rules_without_a_name_get_one() -> None:
    rules = RuleSet([rule(x + 1, lambda x: x), rule(x + 2, lambda x: x), rule(x * y, x + y)])
    line = test_rules_without_a_name_get_one.__code__.co_firstlineno + 1
    assert rules.names == [f"lambda:{line}", f"lambda:{line}-2", "x * y"]


def test_rules_of_cpp_are_kept_from_illegal_nodes() -> None:
    broken = rule(x + 77, lambda root: root.replace(src=root.src[:1]), name="breaks")
    with pytest.raises(weft.SpecError, match="number of sources"):
        (n + 77).rewrite(RuleSet([broken]) + symbolic)
    assert (n + 77).rewrite(RuleSet([broken])).src == (n,)


def test_patterns_show_themselves() -> None:
    assert repr((x + c) * 2) == "Pat((x + c) * 2)" and repr(-x) == "Pat(NEG(x))"
    assert repr(Pat.either(x, Pat.any()) < 1.5) == "Pat(either(x, any) < 1.5)"
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(x < y)
    with pytest.raises(TypeError, match="a Pat or a number"):
        x + n
