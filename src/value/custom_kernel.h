// A kernel that a user wrote, called on Values: its results are Values that it fills when one of
// them is computed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/walk.h"
#include "runtime/buffer.h"
#include "value/value.h"

namespace weft {

struct CustomKernel {
  struct Output {
    DType dtype;
    int64_t count;
  };

  Graph ast;      // a legal kernel: DEFINE_GLOBALs are the outputs, then the inputs
  Hash128 key{};  // of the ast
  std::string name;
  std::vector<Output> outputs;
  // Under the lock of realise.
  std::vector<Ref<Value>> inputs;    // until it has run
  std::vector<Ref<Buffer>> results;  // once it has, until they are those of a Value

  std::atomic<uint32_t> owners = 1;
};

// However long a chain of kernels is that only this one held, it is freed without recursion.
void retain(CustomKernel* kernel) noexcept;
void release(CustomKernel* kernel) noexcept;

}  // namespace weft
