// The passes of codegen, in order.
#include "codegen/lower.h"

#include <optional>
#include <span>
#include <string>

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
#include "rewrite/pass_list.h"
#include "rewrite/trace.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

using Notes = std::string*;

UOp optimise(UOp n, const Lowering& with, Trace*, Notes notes) {
  const OptList chosen =
      with.opts ? OptList(with.opts->begin(), with.opts->end()) : choose_opts(n, with.target);
  if (notes != nullptr) {
    *notes = "  " + (chosen.empty() ? "no optimisation" : print(chosen)) + "\n";
  }
  return apply_opts(n, chosen);
}

// Passes that take a graph, and those that ask for the target.
template <UOp (*pass)(UOp)>
UOp plain(UOp n, const Lowering&, Trace*, Notes) {
  return pass(n);
}
template <UOp (*pass)(UOp, const Target&)>
UOp targeted(UOp n, const Lowering& with, Trace*, Notes) {
  return pass(n, with.target);
}
UOp simplify_kernel(UOp n, const Lowering&, Trace* trace, Notes) {
  return simplify(n, trace, Loads::kStay);
}
UOp decompose_ops(UOp n, const Lowering& with, Trace* trace, Notes) {
  return decompose(n, with.target, trace);
}

constexpr std::optional<Stage> kKernels = Stage::kKernel, kPrograms = Stage::kProgram;

// clang-format off
constexpr CodegenPass kPasses[] = {
    {{"canonical", "sizes simplified, one RANGE per reduction", kKernels, kKernels}, plain<canonical>},
    {{"gate loads", "WHERE around a LOAD into the LOAD's gate", kKernels, kKernels}, plain<gate_loads>},
    {{"optimise", "loops cut, ordered and marked", kKernels, kKernels}, optimise},
    {{"sum in blocks", "long sums of floats as sums of blocks", kKernels, kKernels}, targeted<sum_in_blocks>},
    {{"expand", "unrolled and upcast loops into copies", kKernels, kKernels}, plain<expand>},
    {{"reduce to registers", "REDUCE into a register and a loop", kKernels, kKernels}, targeted<reduce_to_registers>},
    {{"gpudims", "loops of workgroups into SPECIAL indices", kKernels, kKernels}, targeted<gpudims>},
    {{"simplify kernel", "its indices in their simplest form", kKernels, kKernels}, simplify_kernel},
    {{"vectorize", "lane loops into vectors", kKernels, kKernels}, plain<vectorize>},
    {{"widen loads", "neighbouring LOADs into wide ones", kKernels, kKernels}, targeted<widen_loads>},
    {{"widen stores", "neighbouring STOREs into wide ones", kKernels, kKernels}, targeted<widen_stores>},
    {{"devectorize", "vectors into what the target has", kKernels, kKernels}, targeted<devectorize>},
    {{"index width", "indices into integers of the target", kKernels, kKernels}, targeted<index_width>},
    {{"decompose", "ops that the target lacks into others", kKernels, kKernels}, decompose_ops},
    {{"idle loops", "loops that nothing depends on", kKernels, kKernels}, plain<settle_idle_loops>},
    {{"linearize", "the graph into a list", kKernels, kPrograms}, plain<linearize>},
    {{"insert barriers", "BARRIERs between uses of local memory", kPrograms, kPrograms}, targeted<insert_barriers>},
};
// clang-format on

UOp run_passes_on(UOp graph, const Lowering& with, Trace* trace) {
  for (const CodegenPass& pass : kPasses) {
    graph = run_pass(pass.info, graph, trace,
                     [&](UOp n, Trace* t, Notes notes) { return pass.run(n, with, t, notes); });
    if (kVerifyByDefault == Verify::kEveryPass || pass.info.after == kPrograms) {
      verify(graph, *pass.info.after, pass.info.name);
    }
  }
  return graph;
}

}  // namespace

UOp lower(UOp ast, const Target& target, Trace* trace) {
  return run_passes_on(ast, {target, std::nullopt}, trace);
}

UOp lower(UOp ast, const Target& target, std::span<const Opt> opts, Trace* trace) {
  return run_passes_on(ast, {target, opts}, trace);
}

std::span<const CodegenPass> codegen_passes() { return kPasses; }

}  // namespace weft
