// The passes of codegen, in order.
#include "codegen/lower.h"

#include <span>
#include <string>
#include <string_view>

#include "codegen/canonical.h"
#include "codegen/decompose.h"
#include "codegen/devectorize.h"
#include "codegen/expand.h"
#include "codegen/gate_loads.h"
#include "codegen/gpudims.h"
#include "codegen/idle_loops.h"
#include "codegen/index_width.h"
#include "codegen/insert_barriers.h"
#include "codegen/linearize.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/reduce_to_registers.h"
#include "codegen/sum_in_blocks.h"
#include "codegen/target.h"
#include "codegen/vectorize.h"
#include "codegen/widen_loads.h"
#include "codegen/widen_stores.h"
#include "ir/node.h"
#include "ir/spec.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/trace.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

// Runs passes one after the other and records what each did.
class Passes {
 public:
  Passes(UOp graph, Trace* trace) : graph_(graph), trace_(trace) {}

  template <class Pass>
  void run(std::string_view name, Pass&& pass, Stage stage = Stage::kKernel) {
    const UOp before = graph_;
    graph_ = pass(graph_);
    if (trace_ != nullptr) trace_->passes.push_back({std::string(name), before, graph_, 0, {}});
    if (kVerifyByDefault == Verify::kEveryPass || stage == Stage::kProgram) {
      verify(graph_, stage, name);
    }
  }
  UOp graph() const { return graph_; }

 private:
  UOp graph_;
  Trace* trace_;
};

}  // namespace

UOp lower(UOp ast, const Target& target, Trace* trace) {
  ast = canonical(ast);
  return lower(ast, target, choose_opts(gate_loads(ast), target), trace);
}

UOp lower(UOp ast, const Target& target, std::span<const Opt> opts, Trace* trace) {
  Passes passes(ast, trace);
  passes.run("canonical", canonical);
  passes.run("gate loads", gate_loads);
  passes.run("optimise", [&](UOp n) { return apply_opts(n, opts); });
  passes.run("sum in blocks", [&](UOp n) { return sum_in_blocks(n, target); });
  passes.run("expand", expand);
  passes.run("reduce to registers", [&](UOp n) { return reduce_to_registers(n, target); });
  passes.run("gpudims", [&](UOp n) { return gpudims(n, target); });
  passes.run("simplify", [](UOp n) { return simplify(n, nullptr, Loads::kStay); });
  passes.run("vectorize", vectorize);
  passes.run("widen loads", [&](UOp n) { return widen_loads(n, target); });
  passes.run("widen stores", [&](UOp n) { return widen_stores(n, target); });
  passes.run("devectorize", [&](UOp n) { return devectorize(n, target); });
  passes.run("index width", [&](UOp n) { return index_width(n, target); });
  passes.run("decompose", [&](UOp n) { return decompose(n, target); });
  passes.run("idle loops", settle_idle_loops);
  passes.run("linearize", linearize, Stage::kProgram);
  passes.run("insert barriers", [&](UOp n) { return insert_barriers(n, target); }, Stage::kProgram);
  return passes.graph();
}

}  // namespace weft
