// Which elements of a memory a group of writes may touch, as far as bounds tell.
#pragma once

#include <cstdint>
#include <map>

#include "ir/bounds.h"
#include "ir/node.h"

namespace weft {

// The flat elements that INDEX(memory, indices...) can name.
Interval elements_of(UOp index);

// A set of elements, as intervals that do not meet.
class Touched {
 public:
  void add(Interval elements);
  bool meets(Interval elements) const;

 private:
  std::map<int64_t, int64_t> intervals_;  // first -> last
};

}  // namespace weft
