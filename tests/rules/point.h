// The values of a graph at one random point, for checking that a rewrite keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>

#include "ir/dtype.h"
#include "ir/node.h"

namespace weft::test {

using Random = std::mt19937_64;

// In [low, high].
int64_t between(Random& random, int64_t low, int64_t high);

// Bits of a dtype, often one of its special values.
uint64_t random_bits(Random& random, DType type);

// The integer itself, or the bits of a float. Rules are about exact integers, so an index may leave
// 64 bits here, though in weft it then has no value.
__extension__ using Wide = __int128;
struct Value {
  Wide number = 0;
  bool fits = true;  // 64 bits held it, and all on the way to it
};

// Leaves get a value in their bounds when they are first met, and keep it. A pointer is a number
// made from its buffer and index, a load a number made from its pointer, a store one from its
// pointer and value, or 0 when its gate is off: equal numbers mean equal effects.
class Point {
 public:
  explicit Point(Random& random) : random_(random) {}

  // Empty where even 128 bits are too few.
  std::optional<Value> value(UOp n);

 private:
  std::optional<Value> compute(UOp n);
  std::optional<Value> chosen(UOp n);
  Value leaf(UOp n);

  Random& random_;
  std::unordered_map<UOp, std::optional<Value>> values_;
};

// The same value: of floats the same bits, or both NaN.
bool is_same_value(DType type, Wide a, Wide b);
std::string text_of_value(DType type, Wide value);

}  // namespace weft::test
