// Prints docs/walk.md: one expression through all phases of the scheduler and of codegen, to its
// source, with its dumps.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codegen/decompose.h"
#include "codegen/expand.h"
#include "codegen/gate_loads.h"
#include "codegen/index_width.h"
#include "codegen/linearize.h"
#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/reduce_to_registers.h"
#include "codegen/target.h"
#include "codegen/vectorize.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "render/render.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/rangeify/bufferize_to_store.h"
#include "schedule/rangeify/indexing.h"
#include "schedule/rangeify/inline_buffers.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/patterns.h"
#include "schedule/rangeify/split_kernel.h"
#include "schedule/rangeify/transform.h"
#include "schedule/schedule.h"
#include "symbolic/simplify.h"

namespace {

using namespace weft;

void say(const char* text) { fmt::print("{}\n", text); }
void show(const std::string& text) { fmt::print("```\n{}```\n\n", text); }

// e = exp(x); e / e.sum(axis=1, keepdim=True), of four rows of eight.
UOp example(Arena& arena) {
  const std::vector<Dim> rows{4, 8};
  const std::vector<int64_t> axis{1};
  const UOp x = reshape(buffer(arena, dtypes::float32, 32, "CPU", 0), rows);
  const UOp e = unary(Op::EXP, x);
  const UOp sum = expand(reduce_axis(Op::ADD, e, axis), rows);
  return sink(contiguous(binary(Op::FDIV, e, sum)));
}

std::string indices_of(UOp sink, const IndexingContext& context) {
  static constexpr const char* kStoring[] = {"", "may be stored", "is stored"};
  std::string out;
  const std::vector<UOp> order = toposort(sink);
  for (size_t k = 0; k < order.size(); k++) {
    if (!context.has(order[k])) continue;
    const Assigned& a = context[order[k]];
    std::string at, over;
    for (UOp i : context.tuple(a.at)) at += (at.empty() ? "" : ", ") + short_form(i);
    for (UOp r : context.tuple(a.reduced)) over += " over " + short_form(r);
    out += fmt::format("%{:<3} {:<12} at ({}){:<10} {}", k, name_of(order[k].op()), at, over,
                       kStoring[size_t(a.storing)]);
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

std::string first_lines(const std::string& text, size_t count) {
  size_t at = 0;
  for (; count > 0 && at != std::string::npos; count--) at = text.find('\n', at) + 1;
  return at < text.size() ? text.substr(0, at) + "...\n" : text;
}

// From the tensor graph to the graph of kernels.
void walk_schedule() {
  const KernelLimits limits;
  Arena arena;
  UOp graph = example(arena);
  say(R"(# A walk through the compiler

This page follows one expression, the exponentials of a matrix divided by the sums of its rows,

    e = x.exp()
    y = e / e.sum(axis=1, keepdim=True)

from the tensor graph to its source. `weft_walk` prints it, and a test keeps it true. The passes are
those of `src/schedule/rangeify/pipeline.cpp` and `src/codegen/lower.cpp`, in their order;
[schedule.md](schedule.md) and [codegen.md](codegen.md) say what each is for.

## The tensor graph

Every node is a whole tensor. `x` is in memory: a BUFFER, one-dimensional, seen as (4, 8). What is to
exist at the end is a source of the SINK; CONTIGUOUS says that it has memory of its own.
)");
  show(print(graph));
  say(R"(## Phase 1: indices

From the SINK down, every value is told at which indices its users want it. The result is stored, so it
has RANGEs of its own, one per axis. `e` is wanted by the division at its row and column, and by the
sum at its row and another column, the one that the sum runs over: users disagree, so `e` gets ranges of
its own and may be stored. So may the sum, which every column of a row uses again.
)");
  graph = graph_rewrite(graph, early_rules());
  IndexingContext context(arena, limits, "CPU");
  run_rangeify(graph, context);
  show(indices_of(graph, context));
  say(R"(## Phase 2: ranges instead of shapes

Every node is one element now. The movement ops are gone, into the indices of INDEX; REDUCE_AXIS is
REDUCE over a RANGE; a value that is stored, or may be, is BUFFERIZE, and CONTIGUOUS inside says that it
must be.
)");
  graph = transform_to_ranges(graph, context);
  show(print(graph));
  say(R"(## Phase 3: store, or compute again

First what needs no thought: an axis that a value does not depend on is dropped, and a stored copy of
stored memory is that memory. Then, from users to sources, each BUFFERIZE that is not CONTIGUOUS is
weighed (`machine.h`): to compute an exponential twice takes less time than to write it and to read it
twice; the sum of a row is computed once per row, in the loop over rows, whatever the columns do. Both
go into their users.
)");
  graph = graph_rewrite(graph, bufferize_rules());
  graph = inline_buffers(graph, limits);
  show(print(graph));
  say(R"(## Phase 4: simpler indices

The rules of [symbolic.md](symbolic.md), on every index.
)");
  graph = simplify(graph);
  show(print(graph));
  say(R"(## Phase 5: memory, writes, kernels

The one BUFFERIZE that is left becomes memory, a STORE to it for every place of the ranges, and END,
which closes them. Reads of what the schedule stores are LOADs.
)");
  graph = bufferize_to_store(graph);
  show(print(graph));
  say(R"(Writes are grouped into kernels. Each is cut out with its own numbering, DEFINE_GLOBAL i for argument i
and RANGEs from 0, so that equal kernels are equal nodes. In the graph of kernels, memory stands AFTER
the KERNELs that write it.
)");
  graph = with_asts(split_kernels(graph, form_kernels(graph, limits), "CPU"));
  show(print(graph));
}

// The one kernel of its schedule.
KernelCall walk_kernel(const Schedule& schedule) {
  say(R"(## The schedule

The graph of kernels in an order that can run, and the memory that it needs. Here that is one kernel: the
row loop outside, in it the sum, then the columns.
)");
  std::string text;
  for (const KernelCall& call : schedule.calls) {
    text += fmt::format("{} on", call.name);
    for (const uint32_t a : call.arguments) {
      const ScheduledBuffer& b = schedule.buffers[a];
      text += fmt::format(" {}[{}]{}", b.dtype.name(), b.size,
                          b.kind == ScheduledBuffer::Kind::kInput ? " (input)" : " (output)");
    }
    text += "\n" + short_form(call.ast, 1000) + "\n";
  }
  show(text);
  return schedule.calls.at(0);
}

// From the kernel to C and LLVM IR.
void walk_program(const KernelCall& call) {
  const Graph kernel = own(call.ast);
  const Target target = llvm_target();
  say(R"(## Optimisations

`choose_opts` looks at the loops and the target and gives a list; here it is given by hand: the columns (range 1)
in vectors of 4 lanes, the sum (range 2) in vectors of 4 lanes, too.

    VECTOR(1, 4) VECTOR(2, 4)

A loop that is cut has two parts, the inner one of axis type lane. The kernel is still a graph; what a lane
is shows in the names of its axes alone.
)");
  UOp graph = apply_opts(gate_loads(kernel.root), parse_opts("VECTOR(1, 4) VECTOR(2, 4)"));
  show(print(graph));
  say(R"(## Registers

A REDUCE becomes a register: it is set before the loop, each iteration adds to it, and what comes after reads it
AFTER the loop has ended. Its lanes are still to be summed, by the REDUCE that is left.
)");
  graph = simplify(reduce_to_registers(expand(graph), target));
  show(print(graph));
  say(R"(## Vectors

What stands in a lane range is a vector: four neighbours are one LOAD, the register has four lanes, and the
sum over lanes adds halves until one lane is left. Indices have 64 bits.
)");
  graph = index_width(vectorize(graph));
  show(print(graph));
  say(R"(## The program

The target has no exponential: `decompose` makes it of multiplications, additions and integer arithmetic on the
bits of floats. Then the nodes get an order, in which RANGE opens a loop and END closes it. The list begins
like this:
)");
  graph = linearize(decompose(graph, target));
  verify(graph, Stage::kProgram);
  const std::string list = print(graph);
  show(first_lines(list, 24));
  fmt::print("and so on: it has {} nodes.\n\n", graph.src_count());
  say(R"(## Source

From the list to text is one step. In C:
)");
  show(render_c(lower(kernel.root, c_target(), parse_opts("VECTOR(1, 4) VECTOR(2, 4)")), "r_4_8"));
  say(R"(The same as LLVM IR begins so:
)");
  show(first_lines(render_llvm(graph, "r_4_8"), 48));
}

}  // namespace

int main() {
  walk_schedule();
  Arena arena;
  const Schedule schedule = make_schedule(example(arena));
  walk_program(walk_kernel(schedule));
}
