// Nodes times loops.
#include "runtime/kernel_flops.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "schedule/rangeify/buffer_cost.h"

namespace weft {
namespace {

uint64_t to_count(double operations) {
  return operations < 0x1p64 ? uint64_t(operations) : UINT64_MAX;
}

double rounds(UOp range) { return double(std::max<int64_t>(bounds(range.src(0)).hi, 0)); }

// How often the loops of n, and those of `closed` that are not among them, go round together.
double rounds_around(UOp n, std::span<const UOp> closed = {}) {
  const std::span<const UOp> open = ranges_of(n);
  double product = 1;
  for (UOp range : open) product *= rounds(range);
  for (UOp range : closed) {
    if (std::find(open.begin(), open.end(), range) == open.end()) product *= rounds(range);
  }
  return product;
}

// Indices, and what is true of them: what is computed to find data, not of data.
class Addresses {
 public:
  // Sources first.
  bool add(UOp n) {
    const std::span<const UOp> srcs = n.srcs();
    const bool is_condition =
        n.dtype().is_bool() && is_elementwise(n.op()) && !srcs.empty() &&
        std::all_of(srcs.begin(), srcs.end(), [&](UOp s) { return s.is(Op::CONST) || has(s); });
    return (n.dtype().is_index() || is_condition) && nodes_.insert(n).second;
  }

 private:
  bool has(UOp n) const { return nodes_.contains(n); }

  std::unordered_set<UOp> nodes_;
};

}  // namespace

uint64_t kernel_flops(UOp ast) {
  Addresses addresses;
  double operations = 0;
  for (UOp n : toposort(ast)) {
    if (addresses.add(n)) continue;
    if (n.is(Op::REDUCE)) {
      operations += rounds_around(n.src(0), n.srcs().subspan(1));
    } else if (is_elementwise(n.op())) {
      operations += weight_of(n.op()) * rounds_around(n) * n.dtype().lanes;
    }
  }
  return to_count(operations);
}

uint64_t tensor_flops(UOp sink) {
  double operations = 0;
  const auto elements = [](UOp n) {
    double count = 1;
    for (const Dim size : shape_of(n)) count *= double(size.value());
    return count;
  };
  for (UOp n : toposort(sink)) {
    if (n.dtype().is_index()) continue;
    if (n.is(Op::REDUCE_AXIS)) {
      operations += elements(n.src(0));
    } else if (is_elementwise(n.op())) {
      operations += weight_of(n.op()) * elements(n);
    }
  }
  return to_count(operations);
}

}  // namespace weft
