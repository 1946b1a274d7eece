"""The intermediate representation: graphs of UOps, and the rules that rewrite them.

>>> from weft.ir import *

Graphs are built with checks, by UOp's constructors, operators and methods; `UOp.new` and `parse` build
anything. A graph can be walked (`src`, `toposort`), printed and parsed, checked against the spec of a
stage (`verify`), simplified, rewritten by rules, and evaluated.

>>> x = UOp.variable("x", 0, 1023)
>>> u = (x // 8 * 8 + x % 8) * 4 % 16
>>> print(u.simplify())
x%4*4

Rules are patterns with a replacement, which is a pattern too or a function of Python:

>>> a, b = Pat.var("a"), Pat.var("b")
>>> rules = RuleSet([rule(a + b, lambda a, b: a.max(b), name="add-to-max")])
>>> print((x + 7).rewrite(rules))
max(x, 7)

Every match can be traced, counted, and a loop of rules is reported as the loop that it is:

>>> back = RuleSet([rule(a.max(b), a + b, name="max-to-add")])
>>> try:
...     (x + 7).rewrite(rules + back)
... except RewriteLoopError as e:
...     print(e.kind, [step.rule for step in e.steps])
cycle ['add-to-max', 'max-to-add']

A kernel, such as one of Tensor.schedule(), can be optimised by hand, lowered and rendered:

>>> kernel = parse((Tensor([1.0, 2.0, 3.0]) * 2).schedule()[0].graph)
>>> program = lower(kernel, opts="VECTOR(0, 2)", target="C")
>>> render(program, "c").count("*(f32x2m*)")  # a read and a write of two neighbours
2

The road from a tensor graph to kernels is functions, too: rangeify() and run_kernel_split_pipeline(), or each
pass by name (run_pass(), and those that return what they found out). Pipeline() lists all of them, and
takes passes and rules of users.

>>> graph, context = rangeify(UOp.sink((Tensor([1.0, 2.0, 3.0]) * 2).uop))
>>> kernels, cut = run_kernel_split_pipeline(graph)
>>> cut.names
['e_3']
"""

from weft import dtypes
from weft._core import (
    AddrSpace,
    Arena,
    AxisType,
    Decision,
    DType,
    IndexingContext,
    KernelCall,
    KernelContext,
    Ops,
    RangeifyContext,
    Rule,
    RuleSet,
    RuleStatistic,
    Schedule,
    ScheduledBuffer,
    Stage,
    Summary,
    Trace,
    TracePass,
    TraceStep,
    UOp,
    apply_opts,
    bufferize_to_store,
    choose_opts,
    form_kernels,
    graph_rewrite,
    inline_buffers,
    live_arenas,
    lower,
    make_schedule,
    order_kernels,
    parse,
    plan_memory,
    rangeify,
    render,
    reset_rule_statistics,
    rule_statistics,
    rules_of,
    run_kernel_split_pipeline,
    run_pass,
    run_rangeify,
    set_stats,
    split_store,
    symbolic_rules,
    transform,
    why_not,
)
from weft._patterns import Pat, rule
from weft._pipeline import PassContext, PassInfo, Pipeline
from weft.errors import LoopStep, RewriteLoopError

symbolic: RuleSet = symbolic_rules()
"""The rules of UOp.simplify()."""

__all__ = [
    "AddrSpace",
    "Arena",
    "AxisType",
    "DType",
    "Decision",
    "IndexingContext",
    "KernelCall",
    "KernelContext",
    "LoopStep",
    "Ops",
    "PassContext",
    "PassInfo",
    "Pat",
    "Pipeline",
    "RangeifyContext",
    "RewriteLoopError",
    "Rule",
    "RuleSet",
    "RuleStatistic",
    "Schedule",
    "ScheduledBuffer",
    "Stage",
    "Summary",
    "Trace",
    "TracePass",
    "TraceStep",
    "UOp",
    "apply_opts",
    "bufferize_to_store",
    "choose_opts",
    "dtypes",
    "form_kernels",
    "graph_rewrite",
    "inline_buffers",
    "live_arenas",
    "lower",
    "make_schedule",
    "order_kernels",
    "parse",
    "plan_memory",
    "rangeify",
    "render",
    "reset_rule_statistics",
    "rule",
    "rule_statistics",
    "rules_of",
    "run_kernel_split_pipeline",
    "run_pass",
    "run_rangeify",
    "set_stats",
    "split_store",
    "symbolic",
    "transform",
    "why_not",
]
