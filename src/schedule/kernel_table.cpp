// Kernels by the hash of their graphs.
#include "schedule/kernel_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/spec.h"
#include "ir/walk.h"

namespace weft {
namespace {

size_t count_written(UOp ast) {
  int64_t most = -1;
  for (UOp n : toposort(ast)) {
    if (!n.is(Op::STORE) || !n.dtype().is_void()) continue;
    most = std::max(most, place_of(n.src(0)).base.number());
  }
  return size_t(most + 1);
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
  written_.push_back(count_written(kernel.root));
  by_hash_.emplace(ast.hash(), number);
  kernels_.push_back(std::move(kernel));
  return number;
}

}  // namespace weft
