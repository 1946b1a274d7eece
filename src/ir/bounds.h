// What values an integer node can take.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// From lo to hi, both included. The ends of int64 stand for "no bound": a uint64 past int64 has
// hi == kHigh.
struct Interval {
  static constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();

  int64_t lo = kLow;
  int64_t hi = kHigh;

  bool operator==(const Interval&) const = default;
  bool is_constant() const { return lo == hi && lo != kLow && lo != kHigh; }
  bool has(int64_t v) const { return lo <= v && v <= hi; }
  bool within(Interval o) const { return o.lo <= lo && hi <= o.hi; }
};

// Exact on + - * by constants, min, max, and division and remainder by positive constants; never
// too narrow on anything. Floats and effects have no bounds. Computed once per node.
Interval bounds(UOp n);

// All values of a dtype.
Interval bounds_of(DType type);

}  // namespace weft
