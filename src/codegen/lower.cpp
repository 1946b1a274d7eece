// The passes of codegen, in order.
#include "codegen/lower.h"

#include <span>

#include "codegen/expand.h"
#include "codegen/gate_loads.h"
#include "codegen/index_width.h"
#include "codegen/linearize.h"
#include "codegen/opt/choose_opts.h"
#include "codegen/opt/opt.h"
#include "codegen/reduce_to_registers.h"
#include "codegen/target.h"
#include "codegen/vectorize.h"
#include "ir/node.h"
#include "rewrite/trace.h"
#include "symbolic/simplify.h"

namespace weft {

UOp lower(UOp ast, const Target& target, Trace* trace) {
  return lower(ast, target, choose_opts(ast, target), trace);
}

UOp lower(UOp ast, const Target& target, std::span<const Opt> opts, Trace* trace) {
  ast = gate_loads(ast);
  ast = apply_opts(ast, opts);
  ast = expand(ast);
  ast = reduce_to_registers(ast, target);
  ast = simplify(ast, trace);
  ast = vectorize(ast);
  ast = index_width(ast);
  return linearize(ast);
}

}  // namespace weft
