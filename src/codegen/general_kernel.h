// Kernels that differ in numbers alone, as one kernel with those numbers as variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "schedule/number_rules.h"
#include "schedule/skeleton.h"

namespace weft {

// What tells kernels of one skeleton apart, use after use.
struct KernelNumbers {
  std::vector<Number> sizes;      // strides and offsets, too
  std::vector<uint64_t> scalars;  // bits of floats that are computed with
};

// A kernel without its numbers.
struct KernelSkeleton {
  Hash128 hash;
  KernelNumbers numbers;
};

// Sizes of loops and of memory, and constants of indices and of conditions on them, are numbers.
// Which of them are 0, 1 or negative is structure.
KernelSkeleton kernel_skeleton(UOp root);

// What kernels of one skeleton have in common.
class KernelRules {
 public:
  // Numbers that are not the same in all samples are parameters. Empty: they are too many.
  static std::optional<KernelRules> of(UOp root, std::span<const KernelNumbers> samples);

  // The kernel with VARIABLEs in place of sizes, and in place of scalars elements of one more
  // argument, in an arena of its own. Variable i is named by name_of_size(i).
  Graph kernel(UOp root) const;

  struct Values {
    std::vector<int64_t> sizes;     // of the variables
    std::vector<uint64_t> scalars;  // bits of the elements
  };
  // With which that is the kernel with these numbers; empty if it never is.
  std::optional<Values> values(const KernelNumbers& numbers) const;

  bool has_variable_sizes() const { return !sizes_.variables.empty(); }
  DType scalar_type() const { return scalar_type_; }

 private:
  static constexpr uint32_t kConstant = UINT32_MAX;

  NumberRules sizes_;
  std::vector<uint64_t> constants_;  // of every scalar; of a parameter: any
  std::vector<uint32_t> elements_;   // of every scalar: the element that it is, or kConstant
  size_t element_count_ = 0;
  DType scalar_type_{};
};

std::string name_of_size(size_t i);

}  // namespace weft
