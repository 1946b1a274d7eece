// Checks of indices that nobody knows before they are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/value.h"

namespace weft {

// What a check is where all indices are in range: no index that is out of it.
inline constexpr int64_t kNoIndex = std::numeric_limits<int64_t>::min();

// What an index was for.
struct IndexedAxis {
  int64_t axis, size;
};

// A check that a closure computes: a scalar int64, an index that was out of range, or kNoIndex.
struct IndexCheck {
  const Value* check;
  IndexedAxis of;
  std::vector<Value*> computed;  // with the index, and stored
};
std::vector<IndexCheck> index_checks(const Closure& closure);

// What is stored, and computed from the node at this place.
std::vector<Value*> computed_from(const Closure& closure, size_t place);

// The text of the error where a check found an index, which lives for ever; null: it found none.
const std::string* failure_of(const Buffer& check, IndexedAxis of);

}  // namespace weft
