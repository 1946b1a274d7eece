// What one evaluation of a value does.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "schedule/machine.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {

// How much more than an addition on a value that is at hand.
namespace cost {
inline constexpr double kDivision = 4;  // also square roots
inline constexpr double kFunction = 8;  // exp, log, sin, ...
inline constexpr double kIntegerDivision = 8;
// Operations and accesses of all kernels, to those of a kernel for each node.
inline constexpr double kMostWork = 1.5;
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
  double accesses = 0;    // reads
  double apart = 0;       // operations and accesses, if each node were a kernel of its own
  // Bytes that all evaluations read of each memory: each element once.
  std::vector<std::pair<UOp, double>> distinct{};
  size_t statements = 0;
  size_t reads = 0;
  size_t reductions = 0;
  bool has_reduction = false;
  bool has_contraction = false;  // a reduction that reads something once for many outputs
};
Work work_of(const StoredValue& stored);

// What a kernel does so far.
struct KernelWork {
  KernelDemand demand;
  double work = 0;   // operations and accesses
  double apart = 0;  // those of what it computes, if each node were a kernel of its own

  std::vector<std::pair<UOp, double>> distinct{};

  // As it is, or with a value put into it, `times` evaluated, that it reads as `memory` so far.
  static KernelWork of(const Work& work, double size, double item_bytes);
  KernelWork with(const Work& value, double times, UOp memory) const;
};

double weight_of(Op op);

}  // namespace weft
