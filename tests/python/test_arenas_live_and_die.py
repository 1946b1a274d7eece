"""A UOp keeps its graph alive, graphs of different arenas combine, and nothing leaks."""

import concurrent.futures
import gc
import resource
import threading
from collections.abc import Callable

import pytest

import weft
from weft.ir import (Arena, Ops, Pat, RewriteLoopError, RuleSet, Trace, UOp, dtypes, graph_rewrite, live_arenas, parse,
                     rule)


@pytest.fixture(autouse=True)
def nothing_leaks():
    gc.collect()
    before = live_arenas()
    yield
    gc.collect()
    assert live_arenas() == before


def in_a_new_thread(body: Callable[[], None]) -> None:
    """Runs the body where no graph is alive in the thread's arena."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(body).result()


def test_leaves_share_the_arena_of_the_thread() -> None:
    a = UOp.variable("a", 0, 9)
    assert UOp.range(4, 0).arena == a.arena == (a + 1).arena == parse("%0 = CONST index 1").arena


def test_an_arena_dies_with_its_last_uop() -> None:
    def body() -> None:
        before = live_arenas()
        u = UOp.variable("a", 0, 9) + 1
        assert live_arenas() == before + 1
        v = u.src[0]
        del u
        assert live_arenas() == before + 1 and v.arg == "a"
        del v
        assert live_arenas() == before
        UOp.range(4, 0)  # a new one, gone at once
        assert live_arenas() == before

    in_a_new_thread(body)


def test_scopes_choose_the_arena() -> None:
    outside = UOp.range(4, 0)
    with Arena() as first:
        a = UOp.range(4, 0)
        with Arena() as second:
            b = UOp.range(4, 0)
        c = UOp.range(5, 1)
    assert a.arena == c.arena == first and b.arena == second and outside.arena not in (first, second)
    assert a == b == outside and first.size == 4 and second.size == 2 and second.bytes > 0
    assert first.fresh_id() == 2 and "4 nodes" in repr(first)
    with pytest.raises(ValueError, match="entered last"):
        first.__exit__()


def test_scopes_end_with_exceptions() -> None:
    arena = Arena()
    with pytest.raises(ZeroDivisionError), arena:
        1 // 0
    assert UOp.range(4, 0).arena != arena


def test_the_right_operand_is_imported() -> None:
    with Arena() as left:
        a = UOp.variable("a", 0, 9)
    with Arena() as right:
        b = UOp.variable("b", 0, 9) * 2
        c = UOp.variable("c", 0, 1).cast(dtypes.bool)
    size = right.size
    total = a + b
    assert total.arena == left and right.size == size and str(total) == "a + b*2"
    assert (b + a).arena == right
    for u in [total.max(b), total.mulacc(b, b), c.where(a, b), UOp.sink(a, b), a.substitute({a: b}),
              a.replace(op=Ops.ADD, src=(a, b), arg=None), UOp.new(Ops.ADD, a.dtype, (a, b))]:
        arenas = {n.arena for n in u.toposort()}
        assert len(arenas) == 1, u
    assert UOp.sink(a, b).arena == left and c.where(a, b).arena == right


def test_equality_across_arenas() -> None:
    def build(n: int) -> UOp:
        with Arena():
            UOp.range(7, 7)  # other ids for the same structure
            r = UOp.range(8, 0)
            return (r * 2 + n) % 5 + UOp.variable("größe", 0, n).max(r)

    assert build(3) == build(3) and build(3) != build(4) and hash(build(3)) == hash(build(3))
    assert len({build(1), build(2), build(1)}) == 2
    buffer = [UOp.buffer(dtypes.int8, 4, "CPU", 0).reshape(2, 2) for _ in "ab"]
    with Arena():
        other = UOp.buffer(dtypes.int8, 4, "CPU", 0).reshape(2, 2)
    assert buffer[0].permute(1, 0) == other.permute(1, 0) != other.permute(0, 1)
    assert buffer[0].reduce_axis(Ops.ADD, 0) != other.reduce_axis(Ops.MAX, 0)


def test_each_thread_has_its_own_arena() -> None:
    here, there = UOp.range(4, 0), []

    def work() -> None:
        there.append(UOp.range(4, 0))
        with Arena():
            there.append(UOp.range(4, 0) + here)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert there[0].arena != here.arena and there[1].arena not in (here.arena, there[0].arena)
    assert there[0] == here and there[1].src[1] == here


def test_cycles_through_rules_are_collected() -> None:
    x = Pat.var("x")

    def body() -> None:
        before = live_arenas()
        make()
        gc.collect()
        assert live_arenas() == before

    def make() -> None:
        u = UOp.range(4, 0) + 1
        trace = Trace()
        holder = []
        rules = RuleSet([rule(x * 3, lambda x: u if holder else x, name="keeps-u")])
        holder.extend([rules, trace])
        (u * 3).rewrite(rules, trace=trace)

    in_a_new_thread(body)


def test_errors_release_what_they_hold() -> None:
    before = live_arenas()
    in_a_new_thread(raise_errors)
    gc.collect()
    assert live_arenas() == before


def raise_errors() -> None:
    x, y = Pat.var("x"), Pat.var("y")
    with pytest.raises(RewriteLoopError):
        (UOp.range(4, 0) + 1).rewrite(RuleSet([rule(x + y, lambda x, y: y + x, name="swap")]))
    with pytest.raises(weft.SpecError) as error:
        (UOp.range(4, 0) + 1).verify(weft.ir.Stage.TENSOR)
    assert error.value.node is not None and error.value.node.op is Ops.RANGE


def test_a_trace_keeps_its_graphs_and_rules() -> None:
    trace = Trace()
    x = Pat.var("x")

    def run() -> None:
        with Arena():
            u = UOp.range(4, 0) + 1
        graph_rewrite(u, RuleSet([rule(x + 1, lambda x: x * 2, name="gone-soon")]), trace=trace)

    run()
    gc.collect()
    step = trace.passes[0].steps[0]
    del trace
    gc.collect()
    assert step.rule == "gone-soon" and str(step.before) == "r0 + 1" and str(step.after) == "r0*2"


def test_many_graphs_leave_nothing() -> None:
    def work(times: int) -> int:
        for _ in range(times):
            with Arena():
                UOp.sink(*(UOp.range(4, i) * 3 for i in range(10))).simplify()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes

    before = work(1000)
    assert work(3000) - before < 20_000
