// Intervals of flat elements.
#include "schedule/rangeify/touched.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

// Of INDEX(memory, flat).
Elements elements_at(UOp flat) {
  Elements e{bounds(flat), {}, {}};
  e.around = e.all;
  std::optional<LinearSum> sum =
      flat.is_const() || flat.is(Op::RANGE) ? std::nullopt : linear_sum(flat);
  if (!sum) return e;
  for (const Term& t : sum->terms) {
    if (ranges_of(t.base).empty()) e.offset.push_back(t);
  }
  if (e.offset.empty()) return e;
  std::erase_if(sum->terms, [](const Term& t) { return ranges_of(t.base).empty(); });
  e.around = bounds(*sum);
  return e;
}

bool is_same(const std::vector<Term>& a, const std::vector<Term>& b) {
  return std::ranges::equal(a, b, [](const Term& x, const Term& y) {
    return x.base == y.base && x.coefficient == y.coefficient;
  });
}

}  // namespace

Elements elements_of(UOp index) {
  if (index.src_count() == 2) return elements_at(index.src(1));
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
  return {all, {}, all};
}

void Touched::add(const Elements& e) {
  if (all_.empty()) offset_ = e.offset;
  has_one_offset_ = has_one_offset_ && is_same(offset_, e.offset);
  add(all_, e.all);
  if (has_one_offset_) add(around_, e.around);
}

bool Touched::meets(const Elements& e) const {
  if (!meets(all_, e.all)) return false;
  return !has_one_offset_ || !is_same(offset_, e.offset) || meets(around_, e.around);
}

void Touched::add(Intervals& to, Interval e) {
  if (e.hi < e.lo) return;
  auto at = to.upper_bound(e.hi);
  while (at != to.begin()) {
    const auto before = std::prev(at);
    if (before->second < e.lo) break;
    e.lo = std::min(e.lo, before->first);
    e.hi = std::max(e.hi, before->second);
    at = to.erase(before);
  }
  to.emplace(e.lo, e.hi);
}

bool Touched::meets(const Intervals& set, Interval e) {
  const auto next = set.upper_bound(e.hi);
  return next != set.begin() && std::prev(next)->second >= e.lo;
}

}  // namespace weft
