// Cutting kernels out of the graph, sources before users.
#include "schedule/rangeify/split_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/print.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "schedule/kernel_table.h"
#include "schedule/rangeify/kernel_context.h"
#include "schedule/rangeify/kernel_units.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {

// "r_64_8" reduces to 64 x 8 elements, "e_256" computes 256 without a reduction.
std::string name_of_kernel(UOp ast, const KernelFacts& facts) {
  std::string sizes;
  const UOp first = ast.src(0);
  for (UOp r : first.is(Op::END) ? first.srcs().subspan(1) : std::span<const UOp>()) {
    sizes += r.src(0).is_const() ? fmt::format("_{}", r.src(0).const_int()) : "_n";
  }
  if (ast.src_count() > 1) sizes += fmt::format("_x{}", ast.src_count());
  return (facts.reduces ? "r" : "e") + sizes;
}

class Splitter {
 public:
  Splitter(UOp sink, const std::vector<KernelUnit>& kernels, const std::string& device,
           KernelTable asts, Trace* trace)
      : trace_(trace),
        sink_(sink),
        arena_(sink.arena()),
        kernels_(kernels),
        default_device_(device),
        device_(device),
        asts_(std::move(asts)),
        kernel_of_(arena_),
        made_(arena_),
        memories_(arena_) {
    for (size_t k = 0; k < kernels.size(); k++) {
      for (const StoredValue& w : kernels[k]) kernel_of_.put_number(w.node, k + 1);
    }
  }

  KernelGraph run() {
    for (uint32_t k = 0; k < kernels_.size(); k++) cut(k);
    std::vector<UOp> srcs;
    for (UOp s : sink_.srcs()) srcs.push_back(memory_after(s));
    return {arena_.with_srcs(sink_, srcs), std::move(asts_)};
  }

 private:
  void cut(uint32_t k) {
    std::vector<UOp> effects;
    for (const StoredValue& w : kernels_[k]) {
      if (!is_outer_end(w.node)) {
        throw InternalError("a write stands in loops that are open:\n" + neighbourhood(w.node));
      }
      effects.push_back(w.node);
    }
    std::vector<UOp> memories, variables;
    // Most of what a kernel is on its way is not needed afterwards.
    const auto scratch = std::make_shared<Arena>();
    if (trace_ != nullptr) trace_->owners.push_back(scratch);
    const UOp ast =
        split_store(*scratch, sink(arena_, effects), kernel_of_, k, memories, variables, trace_);
    const uint32_t number = asts_.number(ast);
    std::vector<UOp> srcs{index_const(arena_, number)};
    device_ = device_of(memories);
    for (UOp m : memories) srcs.push_back(memory_after(m));
    srcs.insert(srcs.end(), variables.begin(), variables.end());
    const UOp kernel = arena_.make(Op::KERNEL, dtypes::void_, srcs,
                                   Arg::name(name_of_kernel(ast, asts_.facts(number))));
    for (UOp effect : effects) made_.put(effect, kernel);
    if (Origins* const origins = origins_of_thread()) note_origins(*origins, kernels_[k], kernel);
  }

  // A KERNEL comes from all lines that it computes something of.
  static void note_origins(Origins& origins, const KernelUnit& unit, UOp kernel) {
    for (const StoredValue& write : unit) {
      origins.follow(write.node, kernel);
      origins.follow(write.version, kernel);
      origins.follow(write.store(), kernel);
      visit_computation(write.roots(), [&](UOp n) {
        if (!is_read(n)) origins.follow(n, kernel);
      });
    }
  }

  // Where a kernel runs, and what it makes lies: where memory lies that exists when it starts. What
  // it writes comes first.
  std::string device_of(std::span<const UOp> memories) const {
    for (size_t i = memories.size(); i-- > 0;) {
      const UOp base = memory_of(memories[i]);
      const UOp known = memories_.has(base) ? memories_.get(base) : base;
      if (known.is(Op::BUFFER)) return std::string(known.src(1).name());
    }
    return default_device_;
  }

  // No order of the kernels is left in which each reads what it is to read.
  [[noreturn]] static void refuse_version(UOp version) {
    throw SpecError(fmt::format(
        "[split_kernels] {} is needed by a write that it waits for: a version of memory has one "
        "next version, and all that reads it comes before the writes of that\n{}",
        short_form(version, 60), neighbourhood(version)));
  }

  // Memory of the graph of writes, in the graph of kernels.
  UOp memory_after(UOp n) {
    std::vector<UOp> path;
    while (!memories_.has(n) && n.is(Op::AFTER)) {
      path.push_back(n);
      n = n.src(0);
    }
    UOp result = memories_.has(n) ? memories_.get(n) : buffer_of(n);
    for (size_t i = path.size(); i-- > 0;) {
      std::vector<UOp> srcs{result};
      for (UOp effect : path[i].srcs().subspan(1)) {
        const UOp kernel = made_.get(effect);
        if (!kernel) refuse_version(path[i]);
        if (std::find(srcs.begin(), srcs.end(), kernel) == srcs.end()) srcs.push_back(kernel);
      }
      // The making of memory and the writes that follow, in one kernel: it is AFTER that.
      const bool is_same = result.is(Op::AFTER) && srcs.size() == 2 && result.src(1) == srcs[1] &&
                           result.src_count() == 2;
      if (!is_same) result = after(result, std::span(srcs).subspan(1));
      memories_.put(path[i], result);
    }
    return result;
  }

  UOp buffer_of(UOp n) {
    const UOp result = n.is(Op::BUFFER) ? n
                                        : buffer(arena_, n.dtype().pointee(), n.src(0), device_,
                                                 arena_.fresh_id());
    memories_.put(n, result);
    return result;
  }

  Trace* trace_;
  UOp sink_;
  Arena& arena_;
  const std::vector<KernelUnit>& kernels_;
  std::string default_device_;
  std::string device_;  // of the kernel that is cut
  KernelTable asts_;
  NodeMap kernel_of_;  // write -> 1 + kernel
  NodeMap made_;       // write -> KERNEL
  NodeMap memories_;
};

}  // namespace

KernelGraph split_kernels(UOp sink, const std::vector<KernelUnit>& kernels,
                          const std::string& device, KernelTable asts, Trace* trace) {
  return Splitter(sink, kernels, device, std::move(asts), trace).run();
}

UOp with_asts(const KernelGraph& graph) {
  Arena& arena = graph.sink.arena();
  return rebuild(graph.sink, [&](UOp n, std::vector<UOp>& srcs) {
    if (n.is(Op::KERNEL)) {
      srcs[0] = import_graph(arena, graph.asts.ast(uint32_t(n.src(0).const_int())));
    }
    return arena.with_srcs(n, srcs);
  });
}

UOp split_store(Arena& into, UOp sink, const NodeMap& kernel_of, uint32_t kernel,
                std::vector<UOp>& memories, std::vector<UOp>& variables, Trace* trace) {
  KernelContext context{kernel_of, kernel};
  UOp ast = copy_kernel(into, sink, context);
  ast = graph_rewrite(ast, kernel_rules(), {.trace = trace, .pass = "split"});
  ast = expand_accumulation(ast);
  std::vector<UOp> order;
  ast = renumber_kernel(ast, order);
  for (UOp definition : order) {
    const auto at = std::find_if(context.memories.begin(), context.memories.end(),
                                 [&](const auto& m) { return m.first == definition; });
    memories.push_back(at->second);
  }
  variables = context.variables;
  return ast;
}

bool all_ranges_outer(UOp n) { return ranges_of(n).empty(); }

bool is_outer_end(UOp n) {
  return (n.is(Op::END) || (n.is(Op::STORE) && n.dtype().is_void())) && all_ranges_outer(n);
}

}  // namespace weft
