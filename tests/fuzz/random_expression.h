// Random scalar expressions over bounded variables, and their values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "ir/walk.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

class RandomExpression {
 public:
  RandomExpression(Arena& arena, Choices& choices) : arena_(arena), choices_(choices) {
    for (int i = 0; i < 4; i++) {
      const int64_t lo = choices.one_in(3) ? choices.between(-20, 5) : 0;
      index_leaves_.push_back(choices.one_in(2) ? range(arena, choices.between(1, 24), i)
                                                : variable(arena, "v" + std::to_string(i), lo,
                                                           lo + choices.between(0, 40)));
    }
  }

  // An expression of a random dtype.
  UOp any() {
    const int depth = int(choices_.between(1, 5));
    switch (choices_.below(8)) {
      case 0: return integer(random_int(), depth);
      case 1: return floating(random_float(), depth);
      case 2: return boolean(depth);
      case 3: return reshaped();
      default: return index(depth);
    }
  }

  UOp index(int depth) {
    if (depth == 0 || choices_.one_in(8)) {
      if (choices_.one_in(3)) return index_const(arena_, choices_.between(-4, 12));
      return index_leaves_[choices_.below(index_leaves_.size())];
    }
    const UOp a = index(depth - 1);
    switch (choices_.below(14)) {
      case 0:
      case 1:
      case 2: return a + index(depth - 1);
      case 3: return a - index(depth - 1);
      case 4:
      case 5: return a * index_const(arena_, choices_.between(-4, 12));
      case 6: return a * index(depth - 1);
      case 7:
      case 8: return a / divisor(depth);
      case 9:
      case 10: return a % divisor(depth);
      case 11: return choices_.one_in(2) ? max(a, index(depth - 1)) : min(a, index(depth - 1));
      case 12: return where(boolean(depth - 1), a, index(depth - 1));
      default:
        return choices_.one_in(2)
                   ? -a
                   : binary(choices_.one_in(2) ? Op::CDIV : Op::CMOD, a, divisor(depth));
    }
  }

  UOp boolean(int depth) {
    if (depth == 0) return index_leaves_[0] < index_leaves_[1];
    switch (choices_.below(8)) {
      case 0: return boolean(depth - 1) & boolean(depth - 1);
      case 1: return boolean(depth - 1) | boolean(depth - 1);
      case 2: return ~boolean(depth - 1);
      case 3: return binary(Op::XOR, boolean(depth - 1), boolean(depth - 1));
      case 4: {
        const DType type = choices_.one_in(3) ? random_float() : random_int();
        return compare(type.is_float() ? floating(type, depth - 1) : integer(type, depth - 1),
                       type.is_float() ? floating(type, depth - 1) : integer(type, depth - 1));
      }
      default:
        return compare(index(depth - 1), choices_.one_in(2)
                                             ? index_const(arena_, choices_.between(-10, 60))
                                             : index(depth - 1));
    }
  }

  // What machine integers do: they wrap, and every op is total.
  UOp integer(DType type, int depth) {
    if (depth == 0 || choices_.one_in(8)) {
      if (choices_.one_in(3)) return constant_bits(arena_, type, bits_of_int(type, small()));
      if (choices_.one_in(3))
        return cast(index_leaves_[choices_.below(index_leaves_.size())], type);
      const int64_t lo = type.is_unsigned() ? 0 : -choices_.between(0, 3) * 30;
      return variable(arena_, "m" + std::to_string(-lo), lo, lo + 100, type);
    }
    constexpr std::array ops = {Op::ADD, Op::ADD,  Op::SUB,  Op::MUL, Op::MUL, Op::IDIV,
                                Op::MOD, Op::CDIV, Op::CMOD, Op::MAX, Op::MIN, Op::AND,
                                Op::OR,  Op::XOR,  Op::SHL,  Op::SHR};
    const UOp a = integer(type, depth - 1);
    if (choices_.one_in(10)) return choices_.one_in(2) ? -a : ~a;
    if (choices_.one_in(10)) return where(boolean(depth - 1), a, integer(type, depth - 1));
    return binary(ops[choices_.below(ops.size())], a, integer(type, depth - 1));
  }

  UOp floating(DType type, int depth) {
    if (depth == 0 || choices_.one_in(8)) {
      constexpr std::array values = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e30, -3.25};
      if (choices_.one_in(2)) return constant(arena_, type, values[choices_.below(values.size())]);
      if (choices_.one_in(6)) return unary(Op::RECIP, constant(arena_, type, 0.0));
      return cast(index_leaves_[choices_.below(index_leaves_.size())], type);
    }
    constexpr std::array ops = {Op::ADD, Op::SUB, Op::MUL, Op::FDIV, Op::MAX, Op::MIN};
    const UOp a = floating(type, depth - 1);
    if (choices_.one_in(8)) return -a;
    if (choices_.one_in(8)) return where(boolean(depth - 1), a, floating(type, depth - 1));
    return binary(ops[choices_.below(ops.size())], a, floating(type, depth - 1));
  }

  // The index arithmetic of a tensor that is reshaped, permuted, sliced and padded.
  UOp reshaped() {
    constexpr std::array<int64_t, 6> sizes = {1, 2, 3, 4, 6, 8};
    std::vector<int64_t> shape;
    int64_t total = 1;
    for (int i = 0; i < 3; i++) {
      shape.push_back(sizes[choices_.below(sizes.size())]);
      total *= shape.back();
    }
    std::vector<UOp> at;
    for (size_t i = 0; i < shape.size(); i++)
      at.push_back(range(arena_, shape[i], int64_t(10 + i)));
    for (int step = 0; step < 3; step++) {
      // flatten row-major, then split into another shape of as many elements
      UOp flat = index_const(arena_, 0);
      for (size_t i = 0; i < at.size(); i++) flat = flat * shape[i] + at[i];
      shape.clear();
      for (int64_t left = total; left > 1;) {
        int64_t d = sizes[choices_.below(sizes.size())];
        if (left % d != 0 || d == 1) d = left % 2 == 0 ? 2 : left;
        shape.push_back(d);
        left /= d;
      }
      if (shape.empty()) shape.push_back(1);
      at.assign(shape.size(), UOp());
      for (size_t i = shape.size(); i-- > 0;) {
        at[i] = flat % shape[i];
        flat = flat / shape[i];
      }
      if (shape.size() > 1 && choices_.one_in(2)) {
        const size_t i = choices_.below(shape.size() - 1);
        std::swap(at[i], at[i + 1]);
        std::swap(shape[i], shape[i + 1]);
      }
    }
    UOp flat = index_const(arena_, 0);
    for (size_t i = 0; i < at.size(); i++) flat = flat * shape[i] + at[i];
    if (choices_.one_in(2)) return flat;
    const int64_t cut = choices_.between(0, total);
    return where(flat < index_const(arena_, cut), flat % 7, flat / 5);
  }

 private:
  int64_t small() {
    return choices_.one_in(4) ? choices_.between(-300, 300) : choices_.between(-3, 9);
  }
  DType random_int() {
    constexpr std::array types = {dtypes::int8,  dtypes::int16,  dtypes::int32,  dtypes::int64,
                                  dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64};
    return types[choices_.below(types.size())];
  }
  DType random_float() {
    constexpr std::array types = {dtypes::float32, dtypes::float64, dtypes::float16,
                                  dtypes::bfloat16};
    return types[choices_.below(types.size())];
  }
  UOp divisor(int depth) {
    if (choices_.one_in(8)) return index(depth - 1);
    if (choices_.one_in(10)) return index_const(arena_, choices_.between(-6, 0));
    return index_const(arena_, choices_.between(1, 12));
  }
  UOp compare(UOp a, UOp b) {
    constexpr std::array ops = {Op::CMPLT, Op::CMPLT, Op::CMPEQ, Op::CMPNE};
    return binary(ops[choices_.below(ops.size())], a, b);
  }

  Arena& arena_;
  Choices& choices_;
  std::vector<UOp> index_leaves_;
};

// Values for the leaves of an expression: within their bounds, its ends more often than chance.
class Point {
 public:
  explicit Point(Choices& choices) : choices_(choices) {}

  uint64_t value(UOp leaf) {
    const std::string key = leaf.is(Op::RANGE) ? "r" + std::to_string(leaf.range_id())
                                               : std::string(leaf.name()) + leaf.dtype().name();
    const Interval i = bounds(leaf);
    const int64_t v =
        choices_.one_in(3) ? (choices_.one_in(2) ? i.lo : i.hi) : choices_.between(i.lo, i.hi);
    // one variable may stand with several bounds: a value once given stays
    const auto [at, fresh] = values_.emplace(key, v);
    return uint64_t(at->second);
  }

 private:
  Choices& choices_;
  std::unordered_map<std::string, int64_t> values_;
};

// The value of every node under root (empty where exact arithmetic overflows), sources first.
// WHERE looks only at what it chooses.
inline std::unordered_map<UOp, std::optional<uint64_t>> values_at(UOp root, Point& point) {
  std::unordered_map<UOp, std::optional<uint64_t>> values;
  for (UOp n : toposort(root)) {
    if (n.is_const()) {
      values[n] = n.bits();
    } else if (n.is(Op::VARIABLE) || n.is(Op::RANGE)) {
      values[n] = point.value(n);
    } else {
      std::array<uint64_t, 3> v{};
      bool defined = true;
      const std::optional<uint64_t> condition = values[n.src(0)];
      for (size_t i = 0; i < n.src_count(); i++) {
        const bool skipped = n.is(Op::WHERE) && condition && i == (*condition != 0 ? 2u : 1u);
        defined &= skipped || values[n.src(i)].has_value();
        v[i] = values[n.src(i)].value_or(0);
      }
      values[n] = defined ? evaluate_scalar(n.op(), n.src(n.src_count() - 1).dtype(), n.dtype(),
                                            std::span(v.data(), n.src_count()))
                          : std::nullopt;
    }
  }
  return values;
}

// Equal bits; any NaN equals any other.
inline bool same_value(DType type, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (!type.is_float()) return false;
  const double x = double_of_bits(type, a), y = double_of_bits(type, b);
  return x != x && y != y;
}

}  // namespace weft::fuzz
