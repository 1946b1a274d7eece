// Lower, render, and read the SPECIALs of the list.
#include "runtime/gpu/gpu_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "render/renderer.h"
#include "rewrite/trace.h"
#include "runtime/debug.h"

namespace weft {

Launch::Launch(UOp linear, UOp ast) {
  std::set<std::string> given;
  for (UOp n : toposort(ast)) {
    if (n.is(Op::VARIABLE)) given.emplace(n.name());
  }
  names_.assign(given.begin(), given.end());
  const Signature signature = signature_of(linear);
  local_bytes_ = signature.scratch_bytes;
  for (UOp n : signature.globals) globals_.push_back(uint32_t(n.number()));
  for (const Signature::BoxedArray& a : signature.boxed) {
    const auto at = std::ranges::find(signature.globals, a.memory);
    boxed_.push_back({uint32_t(at - signature.globals.begin()), a.memory.dtype().pointee(), a.box});
  }
  for (UOp n : signature.variables) {
    const auto at = std::ranges::find(names_, n.name());
    variables_.push_back({uint32_t(std::distance(names_.begin(), at)), n.dtype()});
  }
  for (UOp n : linear.srcs()) {
    if (!n.is(Op::SPECIAL)) continue;
    const auto dimension = size_t(n.name().back() - '0');
    const bool is_thread = n.name().starts_with('l');
    if (n.src(0).is_const()) {
      (is_thread ? constant_.threads : constant_.groups)[dimension] = n.src(0).const_int();
    } else {
      formulas_.push_back({dimension, own(n.src(0))});
    }
  }
}

LaunchSize Launch::size(std::span<const int64_t> variables) const {
  LaunchSize out = constant_;
  if (formulas_.empty()) return out;
  Bindings bindings;
  for (size_t i = 0; i < names_.size(); i++) bindings.variables[names_[i]] = variables[i];
  const std::lock_guard lock(mutex_);
  for (const Formula& f : formulas_) {
    const int64_t size = evaluate(f.size.root, bindings).at(0).ints().at(0);
    out.groups[f.dimension] = std::max<int64_t>(size, 0);
  }
  return out;
}

GpuKernel make_gpu_kernel(UOp ast, std::string_view name, const Target& target,
                          const std::function<RenderFunction>& render, const OptList* opts) {
  const Graph kernel = own(ast);
  Trace trace;
  const bool is_shown = opts == nullptr;
  Trace* traced = is_shown && shows(6) ? &trace : nullptr;
  const UOp linear = opts == nullptr ? lower(kernel.root, target, traced)
                                     : lower(kernel.root, target, *opts, traced);
  std::string source = render(linear, name);
  if (is_shown && shows(3)) {
    show_lowered({name, kernel.root, linear, target, source, trace, opts});
  }
  return {std::move(source), Launch(linear, ast)};
}

GpuKernel make_gpu_kernel_of_list(UOp linear, std::string_view name,
                                  const std::function<RenderFunction>& render) {
  return {render(linear, name), Launch(linear, linear)};
}

}  // namespace weft
