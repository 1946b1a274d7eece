// An interval map of writes.
#include "value/pending_stores.h"

#include <iterator>
#include <optional>
#include <utility>

#include "base/ref.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {

void PendingStores::add(const Ref<Value>& write) {
  const View written = write->written();
  const Hull hull = hull_of(written);
  const bool covers = is_dense(written) && !write->scatter();
  auto at = segments_.lower_bound(hull.lo);
  bool hides = false;
  if (at != segments_.begin()) {
    const auto before = std::prev(at);
    Segment& left = before->second;
    if (left.hi > hull.lo) {
      hides = true;
      if (left.hi > hull.hi) at = segments_.emplace_hint(at, hull.hi, left);
      left.hi = hull.lo;
    }
  }
  while (at != segments_.end() && at->first < hull.hi) {
    hides = true;
    if (at->second.hi > hull.hi) {
      segments_.emplace_hint(std::next(at), hull.hi, at->second);
    }
    at = segments_.erase(at);
  }
  segments_.emplace_hint(at, hull.lo, Segment{hull.hi, write, hides && !covers});
}

PendingRead PendingStores::find(const View& read) const {
  using Kind = PendingRead::Kind;
  const Hull hull = hull_of(read);
  auto at = segments_.upper_bound(hull.lo);
  if (at != segments_.begin() && std::prev(at)->second.hi > hull.lo) at = std::prev(at);
  if (at == segments_.end() || at->first >= hull.hi) return {.kind = Kind::kUntouched};
  if (at->first <= hull.lo && at->second.hi >= hull.hi) {
    Value* write = at->second.write.get();
    std::optional<View> within;
    if (!write->scatter()) within = view_within(write->written(), read);
    if (within) return {.kind = Kind::kCovered, .write = write, .within = std::move(within)};
  }
  for (int seen = 0; at != segments_.end() && at->first < hull.hi; ++at, ++seen) {
    const Segment& segment = at->second;
    if (seen == kMostSegments || segment.hides || !are_disjoint(segment.write->written(), read)) {
      return {.kind = Kind::kMixed};
    }
  }
  return {.kind = Kind::kUntouched};
}

}  // namespace weft
