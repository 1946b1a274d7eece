// Evaluates sources first, one evaluate_scalar() per node.
#include "tests/rules/point.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "ir/walk.h"

namespace weft::test {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = (a + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 ^ b;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Canonical bits as a number: signed integers with their sign.
Wide widened(DType type, uint64_t bits) {
  return type.is_signed() ? Wide(int64_t(bits)) : Wide(bits);
}

// Exact integers, floor division; empty past 128 bits and for ops that are rare on large numbers.
std::optional<Wide> exact(Op op, Wide a, Wide b) {
  const Wide q = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  Wide r = 0;
  if (op == Op::ADD) return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == Op::SUB) return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == Op::MUL) return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  if (op == Op::NEG) return -a;
  if (op == Op::IDIV) return q;
  if (op == Op::MOD) return a - q * b;
  if (op == Op::MAX) return std::max(a, b);
  if (op == Op::MIN) return std::min(a, b);
  if (op == Op::CMPLT) return a < b ? 1 : 0;
  if (op == Op::CMPEQ) return a == b ? 1 : 0;
  if (op == Op::CMPNE) return a != b ? 1 : 0;
  return std::nullopt;
}

bool fits(DType type, Wide number) { return !type.is_index() || number == Wide(int64_t(number)); }

std::optional<Wide> elementwise(UOp n, std::span<const Wide> v) {
  const DType operand = n.src(n.src_count() - 1).dtype();
  std::array<uint64_t, 3> bits{};
  bool narrow = true;
  for (size_t i = 0; i < v.size(); i++) {
    bits.at(i) = uint64_t(v[i]);
    narrow = narrow && fits(n.src(i).dtype(), v[i]);
  }
  if (narrow) {
    const std::optional<uint64_t> result =
        evaluate_scalar(n.op(), operand, n.dtype(), std::span(bits.data(), v.size()));
    if (result) return widened(n.dtype(), *result);
  }
  if (!operand.is_index()) throw std::logic_error("no value for " + describe(n));
  return exact(n.op(), v[0], v.size() > 1 ? v[1] : 0);
}

}  // namespace

int64_t between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

uint64_t random_bits(Random& random, DType type) {
  const int64_t kind = between(random, 0, 3);
  if (type.is_bool()) return uint64_t(kind & 1);
  if (type.is_float() && kind == 0) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr std::array special = {0.0, -0.0, 1.0, -1.0, infinity, -infinity, nan, 1e-7};
    return bits_of_double(type, special.at(random() % special.size()));
  }
  if (kind == 1 || (kind == 2 && type.is_index())) return bits_of_int(type, between(random, -8, 8));
  if (kind == 2 && !type.is_float()) {
    return between(random, 0, 1) != 0 ? least_bits(type) : greatest_bits(type);
  }
  const uint64_t bits = random() >> (64 - type.bits());
  if (type.is_float()) return bits;
  return type.is_index() ? bits_of_int(type, int64_t(bits) >> 40) : bits_of_uint(type, bits);
}

std::optional<Value> Point::value(UOp root) {
  visit_missing(
      root, [&](UOp n) { return values_.contains(n); },
      [&](UOp n) {
        const std::optional<Value> v = n.src_count() == 0 ? leaf(n) : compute(n);
        values_.emplace(n, v);
      });
  return values_.at(root);
}

Value Point::leaf(UOp n) {
  if (n.is_const()) return {widened(n.dtype(), n.bits())};
  if (n.is(Op::DEFINE_REG)) return {widened(n.dtype(), random_bits(random_, n.dtype()))};
  if (n.is(Op::DEFINE_GLOBAL)) return {n.number()};
  throw std::logic_error("no value for " + describe(n));
}

// What a gate chooses: an arm of WHERE, what a gated LOAD gives when it is off, a STORE that is
// off. Empty when n is none of these.
std::optional<Value> Point::chosen(UOp n) {
  const bool is_gated = n.src_count() == 3;
  const size_t at = n.is(Op::WHERE) ? 0 : n.is(Op::LOAD) ? 1 : 2;
  if (!is_gated || !(n.is(Op::WHERE) || n.is(Op::LOAD) || n.is(Op::STORE))) return std::nullopt;
  const std::optional<Value> gate = values_.at(n.src(at));
  if (!gate || (gate->number != 0 && !n.is(Op::WHERE))) return std::nullopt;
  if (n.is(Op::STORE)) return gate;
  std::optional<Value> out = values_.at(n.src(gate->number != 0 ? 1 : 2));
  if (out) out->fits = out->fits && gate->fits;
  return out;
}

std::optional<Value> Point::compute(UOp n) {
  if (std::optional<Value> out = chosen(n)) return out;
  std::array<Wide, 3> v{};
  Value out;
  for (size_t i = 0; i < n.src_count(); i++) {
    if (n.is(Op::LOAD) && i == 2) continue;  // its gate is on
    const std::optional<Value> source = values_.at(n.src(i));
    if (!source) return std::nullopt;
    v.at(i) = source->number;
    out.fits = out.fits && source->fits;
  }
  const int64_t first = int64_t(v[0]), second = int64_t(v[1]);
  if (n.is(Op::LOAD)) {
    out.number = widened(n.dtype(), bits_of_uint(n.dtype(), mix(uint64_t(v[0]), 1)));
  } else if (n.is(Op::STORE) || n.is(Op::INDEX)) {
    out.number = Wide(mix(uint64_t(v[0]), uint64_t(v[1])));
  } else if (n.is(Op::VARIABLE)) {
    const int64_t kind = between(random_, 0, 3);
    out.number = kind < 2 ? v.at(size_t(kind)) : between(random_, first, second);
  } else if (n.is(Op::RANGE) || n.is(Op::SPECIAL)) {
    out.number = between(random_, 0, std::max<int64_t>(first - 1, 0));
  } else {
    const std::optional<Wide> number = elementwise(n, std::span(v.data(), n.src_count()));
    if (!number) return std::nullopt;
    out.number = *number;
  }
  out.fits = out.fits && fits(n.dtype(), out.number);
  return out;
}

bool is_same_value(DType type, Wide a, Wide b) {
  if (a == b) return true;
  return type.is_float() && std::isnan(double_of_bits(type, uint64_t(a))) &&
         std::isnan(double_of_bits(type, uint64_t(b)));
}

std::string text_of_value(DType type, Wide value) {
  if (type.is_void() || type.is_pointer()) return "an effect";
  return fits(type, value) ? text_of_bits(type, uint64_t(value)) : "a number past 64 bits";
}

}  // namespace weft::test
