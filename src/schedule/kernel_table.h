// The distinct kernels of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// What is read off a kernel when it is made: later it lies in no cache any more.
struct KernelFacts {
  size_t written = 0;                         // how many of its first arguments it writes
  bool reduces = false;                       // it has a REDUCE
  std::unordered_set<std::string> variables;  // names of its VARIABLEs
  Hash128 skeleton;                           // see skeleton.h
  std::vector<uint64_t> scalars;              // the bits of the skeleton's scalars, in order
};

// Equal kernels are one. Each is a graph of its own.
class KernelTable {
 public:
  // The number of the kernel with this ast, which is copied if it is new and then must be legal as
  // a kernel.
  uint32_t number(UOp ast);

  size_t size() const { return kernels_.size(); }
  UOp ast(uint32_t kernel) const { return kernels_[kernel].root; }
  const KernelFacts& facts(uint32_t kernel) const { return facts_[kernel]; }

  // The graphs; their facts stay.
  std::vector<Graph> take() { return std::move(kernels_); }

 private:
  std::vector<Graph> kernels_;
  std::vector<KernelFacts> facts_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace weft
