// A dimension: an integer or a symbolic size, in one word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

class Dim {
 public:
  Dim(int64_t size) : word_(uint64_t(size) << 1 | 1) {}  // NOLINT: a size is a dimension
  // A constant node becomes the integer that it holds.
  Dim(UOp size)  // NOLINT: so is a symbolic size
      : word_(size.is_const() ? uint64_t(size.const_int()) << 1 | 1
                              : uint64_t(uintptr_t(size.node()))) {}

  bool is_int() const { return word_ & 1; }
  int64_t value() const { return int64_t(word_) >> 1; }  // of an integer
  UOp node() const { return UOp(reinterpret_cast<const Node*>(uintptr_t(word_))); }  // of a symbol
  bool is(int64_t v) const { return is_int() && value() == v; }
  UOp as_uop(Arena& arena) const;

  bool operator==(const Dim&) const = default;
  std::string text() const;

 private:
  uint64_t word_;
};

using Shape = std::span<const Dim>;

// Arithmetic on sizes: integers fold, symbols become nodes of `arena`.
Dim add(Arena& arena, Dim a, Dim b);
Dim sub(Arena& arena, Dim a, Dim b);
Dim mul(Arena& arena, Dim a, Dim b);

std::string text_of(Shape shape);  // "(2,n,3)"

}  // namespace weft
