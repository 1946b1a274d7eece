// The cost model: what it costs to compute a value again, and to store and read it.
#pragma once

#include <cstddef>
#include <span>

#include "ir/node.h"
#include "ir/op.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {

// Costs, in units of one addition on a value that is at hand.
namespace cost {
inline constexpr double kReadByte = 1;     // from cache more often than from memory
inline constexpr double kWriteByte = 4;    // written, and brought in first
inline constexpr double kKernel = 20'000;  // to launch one more
inline constexpr double kDivision = 4;     // also square roots
inline constexpr double kFunction = 8;     // exp, log, sin, ...
inline constexpr double kIntegerDivision = 8;
// A reduction that is computed once per outer iteration of a kernel leaves the kernel as many
// iterations to run in parallel as there are of those. With fewer than these it is stored, unless
// all of the work is small.
inline constexpr double kLeastParallel = 16;
inline constexpr double kSmallWork = 500'000;
// A contraction that one other reduction reads, every element once, goes into it where this many
// places are left to run in parallel, and where the axes that are reduced are shorter than a
// vector: along such the contraction is no faster alone.
inline constexpr double kLeastParallelNested = 256;
inline constexpr double kVectorPlaces = 16;
// A kernel grows to at most this many times the values that it was made from.
inline constexpr size_t kMostGrowth = 4;
inline constexpr size_t kMostUses = 64;
inline constexpr size_t kFreeGrowth = 32;  // statements that need no such reason
}  // namespace cost

// One evaluation of a value.
struct Work {
  double operations = 0;  // weighted
  double bytes = 0;       // read
  size_t statements = 0;
  size_t reads = 0;
  size_t reductions = 0;
  bool has_reduction = false;
  bool has_contraction = false;  // a reduction that reads something once for many outputs
  double total() const { return operations + bytes * cost::kReadByte; }
};
Work work_of(const StoredValue& stored);

double weight_of(Op op);

}  // namespace weft
