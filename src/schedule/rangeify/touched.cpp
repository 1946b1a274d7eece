// Intervals of flat elements.
#include "schedule/rangeify/touched.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/shape.h"

namespace weft {

Interval elements_of(UOp index) {
  if (index.src_count() == 2) return bounds(index.src(1));
  const Shape shape = shape_of(index.src(0));
  Interval all{0, 0};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const Interval at = bounds(index.src(1 + i));
    const bool is_known = shape[i].is_int() && at.lo >= 0 && at.hi < shape[i].value();
    if (!is_known) return {};
    all.lo += at.lo * stride;
    all.hi += at.hi * stride;
    stride *= shape[i].value();
  }
  return all;
}

void Touched::add(Interval e) {
  if (e.hi < e.lo) return;
  auto at = intervals_.upper_bound(e.hi);
  while (at != intervals_.begin()) {
    const auto before = std::prev(at);
    if (before->second < e.lo) break;
    e.lo = std::min(e.lo, before->first);
    e.hi = std::max(e.hi, before->second);
    at = intervals_.erase(before);
  }
  intervals_.emplace(e.lo, e.hi);
}

bool Touched::meets(Interval e) const {
  const auto next = intervals_.upper_bound(e.hi);
  return next != intervals_.begin() && std::prev(next)->second >= e.lo;
}

}  // namespace weft
