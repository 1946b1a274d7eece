"""Graphs of a million nodes: built from Python, walked, rewritten and dropped, without recursion."""

import gc
import sys
import time

from weft.ir import Arena, Ops, Pat, RuleSet, Stage, UOp, dtypes, live_arenas, parse, rule

NODES = 1_000_000


def chain(length: int = NODES) -> UOp:
    x, y = UOp.variable("x", 0, 9, dtypes.int32), UOp.variable("y", 0, 9, dtypes.int32)
    u = x
    for i in range(length // 2):
        u = (u + y) * x
    return u


def test_a_chain_huge() -> None:
    assert sys.getrecursionlimit() < NODES
    before = live_arenas()
    with Arena():
        u = chain()
    assert len(u.toposort()) == NODES + 4
    summary = u.summary()
    assert summary.nodes == NODES + 4 and summary.depth == NODES + 2 and summary.by_op[Ops.MUL] == NODES // 2
    assert str(u).endswith("...") and len(repr(u)) < 200
    assert len(u.key) == 32 and u.shape == () and u.ranges == () and u.vmin is not None
    UOp.sink(UOp.define_global(dtypes.int32, None, 0).assign(u)).verify(Stage.KERNEL)
    with Arena():
        other = UOp.const(dtypes.int32, 1) + u
    assert other.src[1] == u and hash(other.src[1]) == hash(u)
    node = u
    while node.op is not Ops.VARIABLE:
        node = node.src[0]
    assert node.arg == "x"
    start = time.monotonic()
    del u, other, node
    gc.collect()
    assert live_arenas() == before and time.monotonic() - start < 2


def test_a_rule_in_python_on_a_huge_chain() -> None:
    a, b = Pat.var("a"), Pat.var("b")
    with Arena():
        u = chain(200_000)
    v = u.rewrite(RuleSet([rule(a * b, lambda a, b: a - b)]))
    assert v.summary().by_op[Ops.SUB] == 100_000 and Ops.MUL not in v.summary().by_op
    assert u.simplify().simplify() == u.simplify()


def test_text_of_a_huge_chain() -> None:
    with Arena():
        u = chain(200_000)
    with Arena():
        assert parse(u.print()) == u


def test_a_wide_huge_node() -> None:
    with Arena():
        u = UOp.sink(*(UOp.const(dtypes.int32, i) for i in range(200_000)))
    assert len(u.src) == 200_000 and u.src[-1].arg == 199_999 and u.summary().edges == 200_000
    assert len(u.simplify().src) == 200_000
