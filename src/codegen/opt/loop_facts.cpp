// Facts read off single nodes.
#include "codegen/opt/loop_facts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {

bool is_access(UOp n) { return n.is(Op::LOAD) || (n.is(Op::STORE) && !is_register(n.src(0))); }

int64_t most_places(UOp range) { return bounds(range.src(0)).hi; }

double places_of(UOp n) {
  double places = 1;
  for (UOp r : ranges_of(n)) places *= double(most_places(r));
  return places;
}

size_t computed_bytes(DType type) {
  const size_t bytes = size_t(type.item_bytes());
  return type.is_float() ? std::max<size_t>(bytes, 4) : bytes;
}

int64_t fitting(int64_t most, int64_t places) {
  most = std::min(most, places);
  for (int64_t n = most; n >= 2; n--) {
    if (places % n == 0) return n;
  }
  return most;
}

UOp only_load(UOp factor) {
  UOp found;
  for (UOp n : toposort(factor)) {
    if (!n.is(Op::LOAD)) continue;
    if (found) return {};
    found = n;
  }
  return found;
}

bool is_sum_of_products(UOp n) {
  return n.is(Op::REDUCE) && n.arg_op() == Op::ADD && n.src(0).is(Op::MUL) && n.dtype().is_float();
}

}  // namespace weft
