// One element at a time: integers by wrapping 64-bit arithmetic, floats by the host's own.
#include "ir/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "ir/dtype.h"
#include "ir/float_format.h"
#include "ir/op.h"

namespace weft {
namespace {

using Bits = std::optional<uint64_t>;

// ------------------------------------------------------------------------------------------
// integers

int64_t floor_div(int64_t a, int64_t b) {  // b is not 0 and a / b does not overflow
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

struct Division {
  uint64_t quotient, remainder;
};

// x / 0 is 0 and leaves x; the least integer / -1 wraps to itself and leaves 0.
Division divide(DType type, uint64_t a, uint64_t b, bool floor) {
  if (b == 0) return {0, a};
  if (type.is_unsigned()) return {a / b, a % b};
  const auto x = int64_t(a), y = int64_t(b);
  if (y == -1) return {bits_of_uint(type, uint64_t(0) - a), 0};
  const int64_t q = floor ? floor_div(x, y) : x / y;
  return {uint64_t(q), a - uint64_t(q) * b};  // the product may leave 64 bits, the difference not
}

Bits shift(DType type, Op op, uint64_t a, uint64_t b) {
  const bool past = (type.is_signed() && int64_t(b) < 0) || b >= uint64_t(type.bits());
  if (past) return 0;
  if (op == Op::SHL) return bits_of_uint(type, a << b);
  return type.is_signed() ? uint64_t(int64_t(a) >> b) : a >> b;
}

uint64_t threefry(uint64_t counter, uint64_t key) {
  constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const auto k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  const uint32_t schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t x0 = uint32_t(counter) + k0, x1 = uint32_t(counter >> 32) + k1;
  for (uint32_t group = 0; group < 5; group++) {
    for (uint32_t r = 0; r < 4; r++) {
      x0 += x1;
      x1 = std::rotl(x1, rotations[group % 2 * 4 + r]) ^ x0;
    }
    x0 += schedule[(group + 1) % 3];
    x1 += schedule[(group + 2) % 3] + group + 1;
  }
  return uint64_t(x1) << 32 | x0;
}

bool less(DType type, uint64_t a, uint64_t b) {
  return type.is_signed() ? int64_t(a) < int64_t(b) : a < b;
}

Bits evaluate_int(Op op, DType type, std::span<const uint64_t> v) {
  const uint64_t a = v[0], b = v.size() > 1 ? v[1] : 0;
  switch (op) {
    case Op::ADD: return bits_of_uint(type, a + b);
    case Op::SUB: return bits_of_uint(type, a - b);
    case Op::MUL: return bits_of_uint(type, a * b);
    case Op::NEG: return bits_of_uint(type, uint64_t(0) - a);
    case Op::NOT: return bits_of_uint(type, ~a);
    case Op::IDIV: return divide(type, a, b, true).quotient;
    case Op::MOD: return divide(type, a, b, true).remainder;
    case Op::CDIV: return divide(type, a, b, false).quotient;
    case Op::CMOD: return divide(type, a, b, false).remainder;
    case Op::MAX: return less(type, a, b) ? b : a;
    case Op::MIN: return less(type, b, a) ? b : a;
    case Op::AND: return a & b;
    case Op::OR: return a | b;
    case Op::XOR: return a ^ b;
    case Op::SHL:
    case Op::SHR: return shift(type, op, a, b);
    case Op::CMPLT: return less(type, a, b);
    case Op::CMPEQ: return a == b;
    case Op::CMPNE: return a != b;
    case Op::THREEFRY: return threefry(a, b);
    case Op::MULACC: return bits_of_uint(type, a * b + v[2]);
    case Op::TRUNC:
    case Op::FLOOR:
    case Op::CEIL:
    case Op::ROUND: return a;
    default: return std::nullopt;
  }
}

// Index is exact: empty where 64 bits do not hold the result.
Bits evaluate_index(Op op, std::span<const uint64_t> v) {
  const auto a = int64_t(v[0]), b = v.size() > 1 ? int64_t(v[1]) : 0;
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  int64_t r = 0;
  switch (op) {
    case Op::ADD: return __builtin_add_overflow(a, b, &r) ? Bits() : Bits(uint64_t(r));
    case Op::SUB: return __builtin_sub_overflow(a, b, &r) ? Bits() : Bits(uint64_t(r));
    case Op::MUL: return __builtin_mul_overflow(a, b, &r) ? Bits() : Bits(uint64_t(r));
    case Op::NEG: return a == least ? Bits() : Bits(uint64_t(-a));
    case Op::MULACC:
      return __builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, int64_t(v[2]), &r)
                 ? Bits()
                 : Bits(uint64_t(r));
    case Op::SHL: {
      if (b < 0 || b >= 64) return 0;
      const int64_t shifted = int64_t(v[0] << b);
      return shifted >> b == a ? Bits(uint64_t(shifted)) : Bits();
    }
    case Op::IDIV:
    case Op::CDIV: return a == least && b == -1 ? Bits() : evaluate_int(op, dtypes::index, v);
    default: return evaluate_int(op, dtypes::index, v);
  }
}

Bits evaluate_bool(Op op, std::span<const uint64_t> v) {
  const bool a = v[0] != 0, b = v.size() > 1 && v[1] != 0;
  switch (op) {
    case Op::ADD:
    case Op::MAX:
    case Op::OR: return a || b;
    case Op::MUL:
    case Op::MIN:
    case Op::AND: return a && b;
    case Op::XOR:
    case Op::CMPNE: return a != b;
    case Op::CMPEQ: return a == b;
    case Op::CMPLT: return !a && b;
    case Op::NOT: return !a;
    default: return std::nullopt;
  }
}

// --------------------------------------------------------------------------------------------
// floats

// The larger of two, NaN first, +0 above -0.
template <class F>
F maximum(F a, F b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class F>
F minimum(F a, F b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// In F: float64 for itself; for every narrower format double holds +, -, *, / and sqrt of two
// elements with more than twice their precision, so rounding once more gives the right result.
std::optional<double> evaluate_float(Op op, std::span<const double> v) {
  const double a = v[0], b = v.size() > 1 ? v[1] : 0;
  switch (op) {
    case Op::ADD: return a + b;
    case Op::SUB: return a - b;
    case Op::MUL: return a * b;
    case Op::FDIV: return a / b;
    case Op::NEG: return -a;
    case Op::RECIP: return 1 / a;
    case Op::SQRT: return std::sqrt(a);
    case Op::EXP2: return std::exp2(a);
    case Op::LOG2: return std::log2(a);
    case Op::EXP: return std::exp(a);
    case Op::LOG: return std::log(a);
    case Op::SIN: return std::sin(a);
    case Op::COS: return std::cos(a);
    case Op::TRUNC: return std::trunc(a);
    case Op::FLOOR: return std::floor(a);
    case Op::CEIL: return std::ceil(a);
    case Op::ROUND: return std::nearbyint(a);
    case Op::MAX: return maximum(a, b);
    case Op::MIN: return minimum(a, b);
    default: return std::nullopt;
  }
}

Bits evaluate_float(Op op, DType type, std::span<const uint64_t> v) {
  // These only touch the sign or choose an operand: the bits, NaN's too, pass through.
  if (op == Op::NEG) return v[0] ^ (uint64_t(1) << (type.bits() - 1));
  double d[3] = {};
  for (size_t i = 0; i < v.size(); i++) d[i] = double_of_bits(type, v[i]);
  switch (op) {
    case Op::CMPLT: return d[0] < d[1];
    case Op::CMPEQ: return d[0] == d[1];
    case Op::CMPNE: return d[0] != d[1];
    case Op::MULACC:
      if (type.scalar == Scalar::kFloat32) {  // a double product plus a float would round twice
        return bits_of_double(type, std::fma(float(d[0]), float(d[1]), float(d[2])));
      }
      return bits_of_double(type, fused_multiply_add(type, d[0], d[1], d[2]));
    default: break;
  }
  const std::optional<double> r = evaluate_float(op, std::span(d, v.size()));
  return r ? Bits(bits_of_double(type, *r)) : Bits();
}

// ---------------------------------------------------------------------------------------------
// casts

uint64_t cast(DType from, DType to, uint64_t bits) {
  if (to.is_bool()) return from.is_float() ? double_of_bits(from, bits) != 0 : bits != 0;
  if (from.is_float()) {
    return from.element() == to.element() ? bits : bits_of_double(to, double_of_bits(from, bits));
  }
  if (!to.is_float()) return bits_of_uint(to, bits);
  return from.is_unsigned() ? float_bits_of_uint(to, bits) : float_bits_of_int(to, int64_t(bits));
}

uint64_t bitcast(DType from, DType to, uint64_t bits) {
  const int width = from.bits();
  if (width < 64) bits &= (uint64_t(1) << width) - 1;
  return to.is_float() ? bits : bits_of_uint(to, bits);
}

}  // namespace

std::optional<uint64_t> evaluate_scalar(Op op, DType type, DType result,
                                        std::span<const uint64_t> operands) {
  if (op == Op::CAST) {
    // index is exact: what 64 signed bits do not hold has no value
    const bool too_large = result.is_index() && type.is_unsigned() && int64_t(operands[0]) < 0;
    return too_large ? Bits() : Bits(cast(type, result, operands[0]));
  }
  if (op == Op::BITCAST) return bitcast(type, result, operands[0]);
  if (op == Op::WHERE) return operands[0] != 0 ? operands[1] : operands[2];
  if (type.is_float()) return evaluate_float(op, type, operands);
  if (type.is_bool()) return evaluate_bool(op, operands);
  return type.is_index() ? evaluate_index(op, operands) : evaluate_int(op, type, operands);
}

uint64_t bits_of_uint(DType type, uint64_t value) {
  if (type.is_bool()) return value != 0;
  const int width = type.bits();
  if (width >= 64) return value;
  const uint64_t low = value & ((uint64_t(1) << width) - 1);
  if (!type.is_signed()) return low;
  return uint64_t(int64_t(low << (64 - width)) >> (64 - width));
}

uint64_t bits_of_int(DType type, int64_t value) {
  return type.is_float() ? float_bits_of_int(type, value) : bits_of_uint(type, uint64_t(value));
}

uint64_t bits_of_double(DType type, double value) {
  if (type.is_float()) return float_bits_of_double(type, value);
  if (std::isnan(value)) return type.is_bool() ? 1 : 0;
  if (type.is_bool()) return value != 0;
  // 2^63 and 2^64 are exact doubles; everything below converts exactly after truncation
  if (type.scalar == Scalar::kUInt64) {
    if (value <= 0) return 0;
    return value >= 18446744073709551616.0 ? UINT64_MAX : uint64_t(value);
  }
  int64_t wide = 0;
  if (value >= 9223372036854775808.0) {
    wide = std::numeric_limits<int64_t>::max();
  } else if (value <= -9223372036854775808.0) {
    wide = std::numeric_limits<int64_t>::min();
  } else {
    wide = int64_t(value);
  }
  return uint64_t(std::clamp(wide, int64_t(least_bits(type)), int64_t(greatest_bits(type))));
}

double double_of_bits(DType type, uint64_t bits) {
  if (type.is_float()) return double_of_float_bits(type, bits);
  return type.is_unsigned() || type.is_bool() ? double(bits) : double(int64_t(bits));
}

uint64_t least_bits(DType type) {
  if (type.is_bool() || type.is_unsigned()) return 0;
  return uint64_t(std::numeric_limits<int64_t>::min() >> (64 - type.bits()));
}

uint64_t greatest_bits(DType type) {
  if (type.is_bool()) return 1;
  if (type.is_unsigned()) return UINT64_MAX >> (64 - type.bits());
  return uint64_t(std::numeric_limits<int64_t>::max() >> (64 - type.bits()));
}

DType scan_dtype(Op op, DType type) {
  if (!type.is_float() || type == dtypes::float64) return type;
  const bool rounds = op == Op::ADD || op == Op::MUL;
  return rounds && type == dtypes::float32 ? dtypes::float64 : dtypes::float32;
}

std::optional<uint64_t> identity_bits(Op op, DType type) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Op::ADD:
    case Op::OR:
    case Op::XOR: return 0;
    case Op::MUL: return bits_of_int(type, 1);
    case Op::AND: return bits_of_uint(type, UINT64_MAX);
    case Op::MAX: return type.is_float() ? lowest_float_bits(type, -infinity) : least_bits(type);
    case Op::MIN: return type.is_float() ? lowest_float_bits(type, infinity) : greatest_bits(type);
    default: return std::nullopt;
  }
}

}  // namespace weft
