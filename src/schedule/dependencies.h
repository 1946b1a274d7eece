// The order of kernels: who must run before whom.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/node.h"
#include "schedule/rangeify/split_kernel.h"

namespace weft {

// A kernel on memory. Memory is numbered by OrderedKernels::buffers.
struct OrderedKernel {
  uint32_t kernel;  // its number in the table
  std::string name;
  std::vector<uint32_t> arguments;
  std::vector<UOp> variables;
  size_t written = 0;               // arguments [0, written) are written
  std::vector<uint32_t> waits_for;  // earlier kernels: read after write, write after read or write
  std::vector<uint32_t> sites{};    // lines of programs, where they are noted
};

struct OrderedKernels {
  std::vector<UOp> buffers;  // BUFFERs
  std::vector<OrderedKernel> kernels;
  std::vector<uint32_t> outputs;  // the buffer of every source of the SINK
};

// A kernel that overwrites memory runs after all that read what it held. Where that cannot be,
// because a reader waits for the writer, the old content is copied first and the reader reads the
// copy: so every graph has an order.
// Kernels that copy are added to the table.
OrderedKernels order_kernels(KernelGraph& graph);

}  // namespace weft
