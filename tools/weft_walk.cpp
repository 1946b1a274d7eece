// Prints docs/walk.md: one expression through all phases of the scheduler, with its dumps.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/walk.h"
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

// e = exp(x); e / e.sum(axis=1, keepdim=True), of four rows of three.
UOp example(Arena& arena) {
  const std::vector<Dim> rows{4, 3};
  const std::vector<int64_t> axis{1};
  const UOp x = reshape(buffer(arena, dtypes::float32, 12, "CPU", 0), rows);
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

}  // namespace

int main() {
  const KernelLimits limits;
  Arena arena;
  UOp graph = example(arena);
  say(R"(# A walk through the scheduler

This page follows one expression, the exponentials of a matrix divided by the sums of its rows,

    e = x.exp()
    y = e / e.sum(axis=1, keepdim=True)

from the tensor graph to its kernel. `weft_walk` prints it, and a test keeps it true. The passes are
those of `src/schedule/rangeify/pipeline.cpp`, in their order; [schedule.md](schedule.md) says what each
is for.

## The tensor graph

Every node is a whole tensor. `x` is in memory: a BUFFER, one-dimensional, seen as (4, 3). What is to
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
weighed (`buffer_cost.h`): to compute an exponential twice costs less than to write it and to read it
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
  say(R"(## The schedule

The graph of kernels in an order that can run, and the memory that it needs. Here that is one kernel: the
row loop outside, in it the sum, then the columns.
)");
  Arena fresh;
  const Schedule schedule = make_schedule(example(fresh));
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
}
