"""Prints docs/rangeify.md: the five phases of the scheduler, one worked graph each, with dumps made by weft.ir."""

from __future__ import annotations

from weft.ir import (
    Ops,
    Pipeline,
    UOp,
    bufferize_to_store,
    dtypes,
    form_kernels,
    graph_rewrite,
    inline_buffers,
    order_kernels,
    plan_memory,
    rangeify,
    rules_of,
    run_kernel_split_pipeline,
    run_pass,
    run_rangeify,
    transform,
)

# Fixed limits: the page is the same on every machine.
TARGET = "CUDA"


def show(text: str) -> None:
    print(f"```\n{text.rstrip()}\n```\n")


def rows(table: list[tuple[str, str]]) -> None:
    print("| pass | what it does |\n| --- | --- |")
    for name, what in table:
        print(f"| {name} | {what} |")
    print()


def matrix(number: int, *shape: int) -> UOp:
    count = 1
    for size in shape:
        count *= size
    return UOp.buffer(dtypes.float32, count, "CPU", number).reshape(*shape)


def phase_1() -> None:
    print("""## Phase 1: which indices

From the SINK down, each value is told at which indices its users want it; movement ops on the way are followed. If
all of them want the same, it is computed there. If not, it gets RANGEs of its own and *may* be stored; if the graph asks
for memory (CONTIGUOUS, COPY), or a kernel would be too large, it *must* be.

`x.T + x`, whose `x` is an exponential: the sum wants it at (i, j) and at (j, i).
""")
    x = matrix(0, 4, 4).exp2()
    graph = UOp.sink((x.permute(1, 0) + x).contiguous())
    show(graph.print())
    print("""`run_rangeify(graph)` returns an `IndexingContext`, which says this of every node that computes:
""")
    show(str(run_rangeify(graph, TARGET)))


def phase_2() -> None:
    print("""## Phase 2: ranges instead of shapes

`transform(context)` makes every node one element. The movement ops are gone: a FLIP and a SHRINK are arithmetic on the
index. REDUCE_AXIS is REDUCE over a RANGE. A value that is stored, or may be, is BUFFERIZE over its RANGEs, and a use of
it INDEX; CONTIGUOUS inside says that it must be stored.

`x.flip(0)[2:5].sum()` of eight numbers:
""")
    x = matrix(0, 8)
    graph = UOp.sink(x.flip(0).shrink(((2, 5),)).reduce_axis(Ops.ADD, 0).contiguous())
    show(graph.print())
    show(transform(run_rangeify(graph, TARGET)).print())


def phase_3() -> None:
    print("""## Phase 3: store, or compute again

First the rules of `rules_of("bufferize")`: an axis that a value does not depend on is dropped, a stored copy of stored
memory is that memory. Then `inline_buffers` weighs every BUFFERIZE that is not CONTIGUOUS, users before sources, by the least time
that the machine needs either way. Each decision has the rule or bound that decided, and the numbers it compared.

`e / e.sum(1)` with `e = exp2(x)`, and a product of matrices whose rows are summed:
""")
    x = matrix(0, 64, 64)
    e = x.exp2()
    product = (matrix(1, 64, 1, 64).expand(64, 64, 64) * matrix(2, 1, 64, 64).expand(64, 64, 64)).reduce_axis(Ops.ADD, 2)
    graph = UOp.sink((e / e.reduce_axis(Ops.ADD, 1).expand(64, 64)).contiguous(),
                     product.reshape(64, 64).reduce_axis(Ops.ADD, 1).contiguous())
    step = graph_rewrite(transform(run_rangeify(graph, TARGET)), rules_of("bufferize"))
    step, decisions = inline_buffers(step, TARGET)
    show("\n".join(str(d) for d in decisions))
    print("Only what is stored is left as BUFFERIZE:\n")
    show("\n".join(u.short(100) for u in step.toposort() if u.op is Ops.BUFFERIZE))


def phase_4() -> None:
    print("""## Phase 4: simpler indices

The rules of [symbolic.md](symbolic.md) on every index, on the gates of what is padded, and on integers that are computed.
Sixteen numbers, padded by two on both sides and cut by one, before and after:
""")
    graph = UOp.sink(matrix(0, 16).pad(((2, 2),)).shrink(((1, 19),)).contiguous())
    step, _ = inline_buffers(graph_rewrite(transform(run_rangeify(graph, TARGET)), rules_of("bufferize")), TARGET)
    simple = run_pass("simplify", step, TARGET)
    for graph_now in (step, simple):
        show("\n".join(u.short(120) for u in graph_now.toposort() if u.op is Ops.BUFFERIZE))


def phase_5() -> None:
    print("""## Phase 5: memory, writes, kernels

`bufferize_to_store` makes memory, a STORE for every place of the RANGEs, and an END that closes them. `form_kernels` groups
writes; `split_kernels` cuts each group out with a numbering of its own. `run_kernel_split_pipeline(graph)` does all three and
returns the graph of KERNELs and a `KernelContext`.

`x + 1` and `x * 2`, which share their loops, and the sums of the rows of x, which have others:
""")
    x = matrix(0, 8, 4)
    graph = UOp.sink((x + 1.0).contiguous(), (x * 2.0).contiguous(), x.reduce_axis(Ops.ADD, 1).contiguous())
    step, _ = rangeify(graph, TARGET)
    stores = bufferize_to_store(run_pass("before split", step, TARGET))
    show("\n".join(u.short(110) for u in stores.toposort() if u.op is Ops.END))
    units, decisions = form_kernels(stores, TARGET)
    print(f"{sum(map(len, units))} writes in {len(units)} kernels, and why they are not one:\n")
    show("\n".join(str(d) for d in decisions))
    kernels, context = run_kernel_split_pipeline(step, TARGET)
    show("\n".join(u.short(160) for u in kernels.toposort() if u.op is Ops.AFTER))
    print("""`order_kernels(context)` puts them into an order that can run, `plan_memory` lets buffers share memory:
""")
    show(str(plan_memory(order_kernels(context))))


def main() -> None:
    print("""# Rangeify: the five phases

A tensor graph becomes kernels in five phases. Every phase is a function of `weft.ir` that takes a graph and returns one,
with what it decided; this page is printed by `tools/rangeify_page.py`, and a test keeps it true. [walk.md](walk.md)
follows one expression through all of them down to machine code, [schedule.md](schedule.md) explains the decisions,
[passes.md](passes.md) shows how to put a pass of your own between them.

    from weft.ir import *
    graph, context = rangeify(UOp.sink(tensor.uop))       # phases 1 to 4
    kernels, cut = run_kernel_split_pipeline(graph)       # phase 5
    print(context)                                        # what was decided, and why

The whole list, as `Pipeline.schedule_passes()` has it; `make_schedule(graph, trace=Trace())` records each, and
`WEFT_DEBUG=6` prints each:
""")
    rows([(p.name, p.what) for p in Pipeline.schedule_passes()])
    phase_1()
    phase_2()
    phase_3()
    phase_4()
    phase_5()


if __name__ == "__main__":
    main()
