// Which elements of a memory a group of writes may touch, as far as bounds tell.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/bounds.h"
#include "ir/node.h"
#include "symbolic/linear.h"

namespace weft {

// The flat elements that INDEX(memory, indices...) can name.
struct Elements {
  Interval all;
  // Those of one run of the kernel: an offset that no loop changes, and the elements around it.
  std::vector<Term> offset;
  Interval around;
};
Elements elements_of(UOp index);

// A set of elements, as intervals that do not meet.
class Touched {
 public:
  void add(const Elements& elements);
  bool meets(const Elements& elements) const;

 private:
  using Intervals = std::map<int64_t, int64_t>;  // first -> last
  static void add(Intervals& to, Interval elements);
  static bool meets(const Intervals& set, Interval elements);

  Intervals all_;
  Intervals around_;  // offset_, as long as all that was added has this one
  std::vector<Term> offset_;
  bool has_one_offset_ = true;
};

}  // namespace weft
