// Lists of times, one after the other, by element.
#include "schedule/roll/write_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/roll/region.h"

namespace weft {

std::optional<WriteTimes> WriteTimes::of(int64_t elements, const std::vector<Write>& writes) {
  if (elements > kMostElements) return {};
  WriteTimes out;
  out.starts_.assign(size_t(elements) + 1, 0);
  int64_t total = 0;
  bool is_inside = true;
  for (const Write& w : writes) {
    out.all_.push_back(w.time);
    if (!w.region) {
      out.anywhere_.push_back(w.time);
      continue;
    }
    total += w.region->numel();
    if (total > kMostElements) return {};
    w.region->for_rows([&](int64_t first, int64_t count, int64_t stride) {
      for (int64_t i = 0; i < count; i++) {
        const int64_t at = first + i * stride;
        is_inside = is_inside && at >= 0 && at < elements;
        if (is_inside) out.starts_[size_t(at) + 1]++;
      }
    });
  }
  if (!is_inside) return {};
  for (size_t i = 0; i < size_t(elements); i++) out.starts_[i + 1] += out.starts_[i];
  out.times_.resize(size_t(total));
  std::vector<uint32_t> next(out.starts_.begin(), out.starts_.end() - 1);
  for (const Write& w : writes) {
    if (!w.region) continue;
    w.region->for_rows([&](int64_t first, int64_t count, int64_t stride) {
      for (int64_t i = 0; i < count; i++) out.times_[next[size_t(first + i * stride)]++] = w.time;
    });
  }
  return out;
}

uint32_t WriteTimes::first(const Region& region, uint32_t time) const {
  const auto first_of = [&](const std::vector<uint32_t>& times) {
    const auto at = std::ranges::lower_bound(times, time);
    return at == times.end() ? kNever : *at;
  };
  const size_t elements = starts_.size() - 1;
  const Region row = region.joined();
  const bool is_whole =
      row.axes().size() == 1 && row.axes()[0].stride == 1 && size_t(row.axes()[0].size) == elements;
  if (is_whole) return first_of(all_);
  uint32_t found = first_of(anywhere_);
  region.for_rows([&](int64_t first, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; i++) {
      const size_t at = size_t(first + i * stride);
      if (at >= elements) continue;
      const auto begin = times_.begin() + starts_[at], end = times_.begin() + starts_[at + 1];
      const auto next = std::lower_bound(begin, end, time);
      if (next != end) found = std::min(found, *next);
    }
  });
  return found;
}

}  // namespace weft
