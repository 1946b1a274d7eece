// The elements of a tensor where Python's other libraries can read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ref.h"
#include "runtime/buffer.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {

// Elements in memory of the process, for as long as this lives.
struct HostMemory {
  enum class Copy : uint8_t { kShared, kCopied };
  static constexpr Copy kShared = Copy::kShared;  // the tensor's own memory, where that can be
  static constexpr Copy kCopied = Copy::kCopied;

  Ref<Buffer> shared;             // nobody overwrites it meanwhile
  std::vector<std::byte> copied;  // or this
  std::byte* first = nullptr;
  size_t bytes = 0;
  View view;  // of what is at `first`

  bool is_copy() const { return !shared; }
};

// Computes the values. Called with the interpreter's lock.
HostMemory host_memory_of(const Tensor& x, HostMemory::Copy copy);

}  // namespace weft::python
