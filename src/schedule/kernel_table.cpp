// Kernels by the hash of their graphs.
#include "schedule/kernel_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "schedule/skeleton.h"

namespace weft {
namespace {

KernelFacts facts_of(UOp ast) {
  KernelFacts facts;
  int64_t most = -1;
  const std::vector<UOp> order = toposort(ast);
  for (UOp n : order) {
    facts.reduces = facts.reduces || n.is(Op::REDUCE);
    if (n.is(Op::VARIABLE)) facts.variables.emplace(n.name());
    if (!n.is(Op::STORE) || !n.dtype().is_void()) continue;
    const UOp memory = place_of(n.src(0)).base;
    if (memory.is(Op::DEFINE_GLOBAL)) most = std::max(most, memory.number());
  }
  facts.written = size_t(most + 1);
  const Skeleton skeleton = skeleton_of(order, Scalars::kByNode);
  facts.skeleton = skeleton.hash;
  facts.scalars.reserve(skeleton.scalars.size());
  for (UOp scalar : skeleton.scalars) facts.scalars.push_back(scalar.bits());
  return facts;
}

}  // namespace

uint32_t KernelTable::number(UOp ast) {
  const auto [first, last] = by_hash_.equal_range(ast.hash());
  for (auto at = first; at != last; ++at) {
    if (graph_hash(kernels_[at->second].root) == graph_hash(ast)) return at->second;
  }
  Graph kernel = own(ast);
  verify(kernel.root, Stage::kKernel, "split");
  const uint32_t number = uint32_t(kernels_.size());
  facts_.push_back(facts_of(kernel.root));
  by_hash_.emplace(ast.hash(), number);
  kernels_.push_back(std::move(kernel));
  return number;
}

}  // namespace weft
