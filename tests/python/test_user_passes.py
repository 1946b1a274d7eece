"""Passes and rules of users run inside of the compiler: where they are put, checked, counted and traced."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path

import numpy
import pytest

import weft
from weft import Tensor
from weft.ir import (
    Ops,
    Pat,
    PassContext,
    Pipeline,
    RuleSet,
    Stage,
    Trace,
    UOp,
    make_schedule,
    reset_rule_statistics,
    rule,
    rule_statistics,
    set_stats,
)

EXAMPLE = Path(__file__).parents[2] / "examples/python/python_target.py"


def numbers(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(7).random(shape, dtype=numpy.float32)


def fuse_single_reductions(graph: UOp, ctx: PassContext) -> UOp:
    """What one reduction alone reads, and it reads once, becomes part of its loops: also a matrix product."""
    for node in graph.toposort():
        if node.op is not Ops.INDEX or node.src[0].op is not Ops.BUFFERIZE:
            continue
        stored = node.src[0]
        if stored.src[0].op is Ops.REDUCE and len(ctx.users(stored)) == 1:
            inner = {r: i for r, i in zip(stored.src[1:], node.src[1:]) if r.op is Ops.RANGE}
            graph = graph.substitute({node: stored.src[0].substitute(inner)})
    return graph


def test_a_fusion_of_a_user() -> None:
    a, b = numbers(48, 32), numbers(32, 40)
    want = (a @ b).sum(axis=1)

    def program() -> Tensor:
        return (Tensor(a).realize() @ Tensor(b).realize()).sum(axis=1)

    assert program().kernel_count() == 2  # a contraction is faster alone
    with Pipeline().after("transform", fuse_single_reductions):
        assert program().kernel_count() == 1
        numpy.testing.assert_allclose(program().numpy(), want, rtol=1e-4)
    assert program().kernel_count() == 2
    numpy.testing.assert_allclose(program().numpy(), want, rtol=1e-4)


def test_a_target_of_a_user() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 80
    own = runpy.run_path(str(EXAMPLE))
    x = numbers(6, 5)
    y = Tensor(x).realize()
    got = own["run"]((y * y + 1).sum(axis=1).sqrt(), [x.ravel()])
    numpy.testing.assert_allclose(got, numpy.sqrt((x * x + 1).sum(axis=1)), rtol=1e-5)
    assert "for v" in own["render"](weft.ir.lower(make_schedule(UOp.sink((y * 2).uop), "C").kernels[0], "", "C"))


half_to_double = rule(Pat.var("x") * 0.5, lambda x: x * 2.0, name="half-to-double")


def test_a_rule_table_changes_what_runs_and_nothing_else() -> None:
    x = Tensor([1.0, 2.0, 3.0], device="CPU").realize()
    rules = RuleSet([half_to_double], name="wrong on purpose")
    assert (x * 0.5).tolist() == [0.5, 1.0, 1.5]
    with Pipeline().after("early", rules):
        assert (x * 0.5).tolist() == [2.0, 4.0, 6.0]
        assert (x * 0.5 + 0).tolist() == [2.0, 4.0, 6.0]
    assert (x * 0.5).tolist() == [0.5, 1.0, 1.5]
    with Pipeline().before("canonical", RuleSet([half_to_double], name="in codegen")):
        assert (x * 0.5).tolist() == [2.0, 4.0, 6.0]
    assert (x * 0.5).tolist() == [0.5, 1.0, 1.5]


def test_another_pipeline_is_another_key() -> None:
    x = Tensor([1.0, 2.0]).realize()
    seen: list[str] = []

    def note(text: str) -> Pipeline:
        def look(graph: UOp) -> UOp:
            seen.append(text)
            return graph
        return Pipeline().after("early", look)

    first, second = note("first"), note("second")
    for pipeline in (first, first, second):
        with pipeline:
            (x * 3.25).tolist()
    assert seen == ["first", "second"]  # the second run of the first one found its schedule


def test_it_runs_at_its_place_and_is_told_where() -> None:
    places: list[tuple[str, Stage, Ops]] = []

    def look(graph: UOp, ctx: PassContext) -> UOp:
        assert ctx.graph == graph and all(ctx.users(node) or node == graph for node in graph.toposort())
        places.append((ctx.name, ctx.stage, graph.op))
        return graph

    pipeline = Pipeline()
    for info in (*Pipeline.schedule_passes(), *Pipeline.codegen_passes()):
        if info.before is not None:
            pipeline.before(info.name, look, f"before {info.name}")
    with pipeline:
        (Tensor([1.0, 2.0], device="CPU").realize() * 6.5 + 1).tolist()
    assert [name for name, _, _ in places] == [n for n in pipeline.names if n.startswith("before ") and n != "before split"]
    assert {stage for _, stage, _ in places} == {Stage.TENSOR, Stage.RANGEIFIED, Stage.KERNEL, Stage.PROGRAM}


def test_ranges_in_scope_are_known() -> None:
    found: set[int] = set()

    @rule(Pat.op(Ops.EXP2, Pat.var("x"), name="e"), name="looks")
    def looks(x: UOp, e: UOp, ctx: PassContext) -> None:
        found.add(len(ctx.ranges(e)))

    with Pipeline().after("transform", RuleSet([looks], name="look at exp2")):
        Tensor(numbers(3, 4)).exp2().tolist()
    assert found == {2}


def test_what_is_illegal_is_reported_with_the_name_of_the_pass() -> None:
    def breaks(graph: UOp) -> UOp:
        return graph.replace(op=Ops.ADD)

    x = Tensor([1.0, 2.0]).realize()
    with Pipeline().after("early", breaks), pytest.raises(weft.SpecError, match="breaks"):
        (x * 8.5).tolist()
    assert (x * 8.5).tolist() == [8.5, 17.0]


def test_errors_of_a_pass_come_through() -> None:
    def fails(graph: UOp) -> UOp:
        raise KeyError("of the user")

    def realizes(graph: UOp) -> UOp:
        Tensor([1.0]).sum().item()
        return graph

    x = Tensor([1.0, 2.0], device="CPU").realize()
    for beside in ("early", "linearize"):
        with Pipeline().before(beside, fails), pytest.raises(KeyError, match="of the user"):
            (x * 9.5).tolist()
    with Pipeline().before("early", realizes), pytest.raises(weft.Error, match="a pass of a user is running"):
        (x * 9.5).tolist()
    with Pipeline().before("early", lambda graph: None), pytest.raises(TypeError, match="returned NoneType"):
        (x * 9.5).tolist()
    assert (x * 9.5).tolist() == [9.5, 19.0]


def test_it_is_counted_and_traced() -> None:
    x = UOp.buffer(weft.dtypes.float32, 8, "CPU", 0)
    trace, old = Trace(), set_stats(1)
    reset_rule_statistics()
    try:
        with Pipeline().after("early", RuleSet([half_to_double], name="mine")).after("early", lambda g: g, "same"):
            make_schedule(UOp.sink((x * 0.5).contiguous()), trace=trace)
        counted = {s.name: s for s in rule_statistics()}
    finally:
        set_stats(old)
        reset_rule_statistics()
    names = [p.name for p in trace.passes]
    assert names[names.index("early"):][:3] == ["early", "mine", "same"]
    assert [s.rule for p in trace.passes if p.name == "mine" for s in p.steps] == ["half-to-double"]
    assert counted["half-to-double"].fired == 1 and counted["mine"].fired == 1
    assert (counted["same"].tried, counted["same"].fired) == (1, 0) and counted["same"].file == __file__


def test_one_thread_or_the_process() -> None:
    x = Tensor([1.0, 2.0]).realize()
    results: list[list[float]] = []

    def elsewhere() -> None:
        results.append((x * 0.5 + 10).tolist())

    def in_thread() -> list[float]:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return results[-1]

    pipeline = Pipeline().after("early", RuleSet([half_to_double], name="mine"))
    with pipeline:
        assert in_thread() == [10.5, 11.0]
    pipeline.install()
    try:
        assert in_thread() == [12.0, 14.0] and Pipeline.current() is pipeline
    finally:
        Pipeline.reset()
    assert in_thread() == [10.5, 11.0] and Pipeline.current() is None


def test_what_cannot_be_inserted() -> None:
    with pytest.raises(ValueError, match="has no pass 'nothing'"):
        Pipeline().after("nothing", lambda g: g)
    with pytest.raises(ValueError, match="no pass may stand after 'rangeify'"):
        Pipeline().after("rangeify", lambda g: g)
    with pytest.raises(ValueError, match="there is a pass 'early' already"):
        Pipeline().after("early", lambda g: g, "early")
    with pytest.raises(TypeError, match="a RuleSet or a function"):
        Pipeline().after("early", 3)  # type: ignore[arg-type]
    text = str(Pipeline().after("early", fuse_single_reductions))
    assert f"fuse_single_reductions {__file__}:" in " ".join(text.split())
