"""The road from a tensor graph to source, pass by pass: every pass is in the list, in the trace, and can be run."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy
import pytest

from weft.ir import (
    Arena,
    Ops,
    Pipeline,
    Stage,
    Trace,
    UOp,
    bufferize_to_store,
    dtypes,
    form_kernels,
    graph_rewrite,
    inline_buffers,
    lower,
    make_schedule,
    order_kernels,
    plan_memory,
    rangeify,
    render,
    rules_of,
    run_kernel_split_pipeline,
    run_pass,
    run_rangeify,
    split_store,
    transform,
)

X = numpy.linspace(-1, 2, 32, dtype=numpy.float32)


def softmax_like() -> UOp:
    """exp2(x) / sum over rows, and a second output, the sums themselves."""
    x = UOp.buffer(dtypes.float32, 32, "CPU", 0).reshape(4, 8)
    e = x.exp2()
    total = e.reduce_axis(Ops.ADD, 1)
    return UOp.sink((e / total.expand(4, 8)).contiguous(), total.contiguous())


def expected() -> tuple[numpy.ndarray, numpy.ndarray]:
    e = numpy.exp2(X.reshape(4, 8))
    return e / e.sum(axis=1, keepdims=True), e.sum(axis=1, keepdims=True)


def check(graph: UOp) -> None:
    for got, want in zip(graph.evaluate({0: X}), expected()):
        numpy.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-5)


def test_a_trace_has_every_pass_of_the_scheduler() -> None:
    trace = Trace()
    make_schedule(softmax_like(), trace=trace)
    assert [p.name for p in trace.passes] == [p.name for p in Pipeline.schedule_passes()]
    assert all(p.before.op is Ops.SINK and p.after.op is Ops.SINK for p in trace.passes)
    notes = {p.name: p.notes for p in trace.passes}
    for name in ("rangeify", "form kernels", "order kernels", "share kernels", "plan memory"):
        assert notes[name], name


def test_a_trace_has_every_pass_of_codegen() -> None:
    trace = Trace()
    kernel = make_schedule(softmax_like()).kernels[0]
    lower(kernel, trace=trace)
    assert [p.name for p in trace.passes] == [p.name for p in Pipeline.codegen_passes()]
    assert trace.passes[-1].after.op is Ops.LINEAR


@pytest.mark.parametrize("writes", [1, 64], ids=["few writes", "a loop program"])
def test_debug_6_prints_every_pass(writes: int) -> None:
    script = f"""
from weft import Tensor
a = Tensor.zeros(256, device="CPU").realize()
for i in range({writes}):
    a[i] = float(i % 7) * 1.0078125
a.tolist()
"""
    done = subprocess.run([sys.executable, "-c", script], text=True, check=True, capture_output=True,
                          env={**os.environ, "WEFT_DEBUG": "6", "WEFT_CACHE_DIR": ""})
    shown = [p for p in Pipeline.schedule_passes() if f"after {p.name}:\n" in done.stderr]
    names = [p.name for p in Pipeline.schedule_passes()]
    if writes == 1:
        assert [p.name for p in shown] == names
    else:  # what runs as loops is not cut once more
        assert {"loops", "order kernels", "plan memory"} <= {p.name for p in shown}
    assert all(f"after {p.name}:\n" in done.stderr for p in Pipeline.codegen_passes())


def test_phase_after_phase_is_the_pipeline() -> None:
    with Arena():  # RANGEs are numbered as they are made
        context = run_rangeify(softmax_like())
        step = transform(context)
        step = graph_rewrite(step, rules_of("bufferize"))
        step, decisions = inline_buffers(step)
        step = run_pass("simplify", step)
    with Arena():
        whole, made = rangeify(softmax_like())
    assert step == whole
    assert [str(d) for d in decisions] == [str(d) for d in made.decisions if d.what in ("stored", "recomputed")]
    assert "at (" in str(context) and "recomputed" in str(made)


def test_each_stage_can_be_evaluated() -> None:
    graph = softmax_like()
    check(graph)
    ranges, _ = rangeify(graph)
    ranges.verify(Stage.RANGEIFIED)
    check(ranges)
    stores = bufferize_to_store(run_pass("before split", ranges))
    stores.verify(Stage.RANGEIFIED)
    units, _ = form_kernels(stores)
    assert sum(len(unit) for unit in units) >= 2
    ast, memories, variables = split_store(stores, kernel=0)
    ast.verify(Stage.KERNEL)
    assert len(memories) == sum(u.op is Ops.DEFINE_GLOBAL for u in ast.toposort()) and variables == ()


def test_kernels_run_in_the_order_of_calls() -> None:
    graph = softmax_like()
    kernels, context = run_kernel_split_pipeline(rangeify(graph)[0])
    kernels.verify(Stage.RANGEIFIED)
    schedule = plan_memory(order_kernels(context))
    assert [c.name for c in schedule.calls] == context.names
    assert context.range_count > 0 and context.local_count == 0
    assert context.global_count == sum(len(b) for b in context.buffers)
    assert "slot" in str(schedule) and "kernels" in str(context)
    memory = [X.copy() if b.kind == "input" else numpy.zeros(b.size, numpy.float32) for b in schedule.buffers]
    for call in schedule.calls:
        own = {i: memory[b] for i, b in enumerate(call.arguments)}
        schedule.kernels[call.kernel].evaluate(own)
        for i, b in enumerate(call.arguments):
            memory[b] = own[i]
    for output, want in zip(schedule.outputs, expected()):
        numpy.testing.assert_allclose(memory[output].reshape(want.shape), want, rtol=1e-5)


def test_every_pass_from_graph_to_graph_runs_by_name() -> None:
    graph: UOp = softmax_like()
    for info in Pipeline.schedule_passes():
        if info.before is None or info.after is None:
            continue
        if info.name == "bufferize":
            graph = transform(run_rangeify(graph))
        graph = run_pass(info.name, graph)
        graph.verify(info.after)
    kernel = make_schedule(softmax_like()).kernels[0]
    step = kernel
    for info in Pipeline.codegen_passes():
        step = run_pass(info.name, step)
    assert render(step, "c") == render(lower(kernel), "c")
    with pytest.raises(ValueError, match="no pass from a graph to a graph"):
        run_pass("form kernels", graph)


@pytest.mark.parametrize(("target", "sign"), [
    ("C", "void"), ("LLVM", "define"), ("CUDA", "__global__"), ("PTX", ".entry"), ("OPENCL", "__kernel"),
    ("WGSL", "@compute"), ("METAL", "kernel void"), ("HIP", "__global__"), ("TRITON", "@triton.jit")])
def test_every_target_has_text(target: str, sign: str) -> None:
    i = UOp.range(64, 0)
    x, y = (UOp.define_global(dtypes.float32, 64, n) for n in range(2))
    kernel = UOp.sink(x.index(i).assign(y.index(i).load() * 2).end(i))
    assert sign in render(lower(kernel, target=target), target.lower())


def test_why_two_kernels_are_not_one() -> None:
    x = UOp.buffer(dtypes.float32, 64, "CPU", 0).reshape(8, 8)
    graph = UOp.sink((x + 1.0).contiguous(), x.reduce_axis(Ops.ADD, 1).contiguous())
    _, context = run_kernel_split_pipeline(rangeify(graph)[0])
    [pair] = [d for d in context.decisions if d.what == "two kernels"]
    assert pair.why == "their loops differ" and pair.other is not None


def test_why_a_value_is_stored_has_the_numbers() -> None:
    x = UOp.buffer(dtypes.float32, 1 << 16, "CPU", 0).reshape(256, 256)
    s = x.exp2().sin().log2().exp2().sin().reduce_axis(Ops.ADD, 0).expand(256, 256)
    _, context = rangeify(UOp.sink((s * x).reduce_axis(Ops.ADD, 1).contiguous()))
    decided = [d for d in context.decisions if d.what in ("stored", "recomputed")]
    assert decided and all(d.why for d in decided)
    assert any(d.numbers for d in decided)
