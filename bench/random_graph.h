// Random integer graphs from a seed: the same numbers here and in tinygrad_engine.py, so both
// engines see the same expressions.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft::bench {

class RandomGraph {
 public:
  RandomGraph(Arena& arena, uint64_t seed) : arena_(arena), state_(seed) {}

  // `groups` sinks of 64 expressions, under one.
  UOp graph(uint32_t groups) {
    std::vector<UOp> tops;
    tops.reserve(groups);
    for (uint32_t g = 0; g < groups; g++) {
      std::vector<UOp> roots;
      roots.reserve(64);
      for (int i = 0; i < 64; i++) roots.push_back(expression(5));
      tops.push_back(sink(roots));
    }
    return sink(tops);
  }
  uint64_t calls() const { return calls_; }

 private:
  uint32_t below(uint32_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state_ >> 33) % n;
  }
  UOp constant(int64_t v) {
    calls_++;
    return arena_.make(Op::CONST, dtypes::index, {}, Arg::bits(uint64_t(v)));
  }
  UOp variable(uint32_t i) {  // a leaf that nothing is known about
    calls_++;
    return arena_.make(Op::DEFINE_REG, dtypes::index, {}, Arg::integer(i));
  }
  UOp binary(Op op, UOp a, UOp b) {
    calls_++;
    const UOp srcs[] = {a, b};
    return arena_.make(op, op == Op::CMPLT ? dtypes::bool_ : dtypes::index, srcs);
  }
  UOp sink(const std::vector<UOp>& srcs) {
    calls_++;
    return arena_.make(Op::SINK, dtypes::void_, srcs);
  }
  // Depth is at most 5: this one may recurse.
  UOp expression(int depth) {
    if (depth == 0 || below(8) == 0)
      return below(3) == 0 ? constant(1 + below(8)) : variable(below(16));
    const uint32_t kind = below(9);
    const UOp a = expression(depth - 1);
    if (kind == 4) return binary(Op::MUL, a, constant(below(8)));
    if (kind == 5) return binary(Op::IDIV, a, constant(1 + below(8)));
    if (kind == 6) return binary(Op::MOD, a, constant(1 + below(8)));
    if (kind == 8) {
      const UOp condition = binary(Op::CMPLT, a, constant(below(16)));
      const UOp t = expression(depth - 1), f = expression(depth - 1);
      calls_++;
      const UOp srcs[] = {condition, t, f};
      return arena_.make(Op::WHERE, dtypes::index, srcs);
    }
    const UOp b = expression(depth - 1);
    return binary(kind == 3 ? Op::MUL : kind == 7 ? Op::MAX : Op::ADD, a, b);
  }

  Arena& arena_;
  uint64_t state_;
  uint64_t calls_ = 0;
};

// Depends on structure alone: the two engines must come to the same one.
struct Fingerprint {
  uint64_t nodes = 0, hash = 14695981039346656037ull;
};
inline Fingerprint fingerprint(UOp root) {
  Fingerprint f;
  std::unordered_map<UOp, uint64_t> numbers;
  auto eat = [&](uint64_t v) { f.hash = (f.hash ^ v) * 1099511628211ull; };
  for (UOp n : toposort(root)) {
    const bool is_leaf = n.is(Op::DEFINE_REG);
    for (const char c : is_leaf ? std::string_view("v") : name_of(n.op())) eat(uint64_t(c));
    eat(is_leaf ? uint64_t(n.number()) : n.is_const() ? n.bits() : 0);
    for (UOp s : n.srcs()) eat(numbers[s]);
    numbers.emplace(n, numbers.size());
  }
  f.nodes = numbers.size();
  return f;
}

}  // namespace weft::bench
