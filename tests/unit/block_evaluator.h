// Evaluates a graph of scalars on many inputs at once, fast enough to sweep all of float32. The
// graph is a function of one leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ir/node.h"

namespace weft::test {

class BlockEvaluator {
 public:
  static constexpr size_t kBlock = 1024;

  // `leaf` is where inputs go. Registers are read where an AFTER of them stands.
  BlockEvaluator(UOp root, UOp leaf);

  // The bits of the inputs, at most kBlock of them, in; those of the results out.
  void run(std::span<const uint64_t> inputs, std::span<uint64_t> outputs);

  size_t steps() const { return steps_.size(); }

 private:
  using Buffer = std::unique_ptr<std::byte[]>;
  std::byte* values(UOp n);
  void add(UOp n);

  UOp root_, leaf_;
  std::map<uint32_t, Buffer> buffers_;  // by node id
  std::vector<std::function<void()>> steps_;
};

}  // namespace weft::test
