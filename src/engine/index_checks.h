// Checks of indices that nobody knows before they are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/closure.h"
#include "value/import.h"
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
  size_t place;  // of the index in the closure
};
std::vector<IndexCheck> index_checks(const Closure& closure);

// What is stored, and computed from the node at this place.
std::vector<Value*> computed_from(const Closure& closure, size_t place);

// The number that a check found.
int64_t found_index(const Buffer& check);
// The text of the error where a check found this index, which lives for ever; null: it found none.
const std::string* failure_of(int64_t index, IndexedAxis of);

// What was computed with an index out of range has failed. The text of the first that was asked
// for; null: none has. `outputs` is what was computed and has not been filled in yet.
const std::string* mark_failures(const Closure& closure, const Imported& imported,
                                 std::span<const Ref<Buffer>> outputs);

// Checks that are elements of one output become outputs: those that found nothing share memory.
void divide_checks(Imported& imported, std::vector<Ref<Buffer>>& outputs, Device& device);

}  // namespace weft
