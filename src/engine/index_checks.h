// Checks of indices that nobody knows before they are computed.
#pragma once

#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/value.h"

namespace weft {

// A check that a closure computes: a scalar bool, which holds where an index was out of range.
struct IndexCheck {
  const Value* check;
  const std::string* text;       // of the error; lives for ever
  std::vector<Value*> computed;  // with the index, and stored
};
std::vector<IndexCheck> index_checks(const Closure& closure);

// Whether a check holds.
bool is_set(const Buffer& check);

}  // namespace weft
