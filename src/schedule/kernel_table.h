// The distinct kernels of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// Equal kernels are one. Each is a graph of its own.
class KernelTable {
 public:
  // The number of the kernel with this ast, which is copied if it is new and then must be legal as
  // a kernel.
  uint32_t number(UOp ast);

  size_t size() const { return kernels_.size(); }
  UOp ast(uint32_t kernel) const { return kernels_[kernel].root; }
  // How many of its first arguments it writes.
  size_t written(uint32_t kernel) const { return written_[kernel]; }

  std::vector<Graph> take() { return std::move(kernels_); }

 private:
  std::vector<Graph> kernels_;
  std::vector<size_t> written_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace weft
