// Rounding to a float format of any width up to 64 bits.
#include "ir/float_format.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "ir/dtype.h"

namespace weft {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // float8_e4m3 has none: its largest exponent holds numbers, all ones is NaN
};

Format format_of(DType type) {
  switch (type.scalar) {
    case Scalar::kFloat8E4M3: return {4, 3, false};
    case Scalar::kFloat8E5M2: return {5, 2, true};
    case Scalar::kFloat16: return {5, 10, true};
    case Scalar::kBFloat16: return {8, 7, true};
    case Scalar::kFloat32: return {8, 23, true};
    default: return {11, 52, true};
  }
}

constexpr int kDoubleMantissa = 52;

// Nearest-even shift right; what is shifted out decides.
uint64_t round_shift(uint64_t value, int shift) {
  if (shift <= 0) return value << -shift;
  if (shift > 63) return 0;  // less than half of the last place
  const uint64_t kept = value >> shift, lost = value & ((uint64_t(1) << shift) - 1);
  const uint64_t half = uint64_t(1) << (shift - 1);
  return kept + (lost > half || (lost == half && (kept & 1)) ? 1 : 0);
}

uint64_t encode(Format f, double value) {
  const auto raw = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (raw >> 63) << (f.exponent_bits + f.mantissa_bits);
  const uint64_t exponent_ones = ((uint64_t(1) << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint64_t mantissa_ones = (uint64_t(1) << f.mantissa_bits) - 1;
  const uint64_t infinity = f.has_infinity ? exponent_ones : exponent_ones | mantissa_ones;
  if (std::isnan(value)) {
    if (!f.has_infinity) return sign | exponent_ones | mantissa_ones;
    const uint64_t payload =
        (raw & ((uint64_t(1) << kDoubleMantissa) - 1)) >> (kDoubleMantissa - f.mantissa_bits);
    return sign | exponent_ones | payload | uint64_t(1) << (f.mantissa_bits - 1);  // quiet
  }
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);               // in [0.5, 1)
  const auto significand = uint64_t(std::ldexp(fraction, kDoubleMantissa + 1));  // 53 bits
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  int biased = exponent - 1 + bias;
  int shift = kDoubleMantissa - f.mantissa_bits;
  if (biased < 1) {  // subnormal: no implicit bit, a fixed exponent
    shift += 1 - biased;
    biased = 1;
  }
  const uint64_t rounded = round_shift(significand, shift);
  // Adding the significand with its implicit bit to (biased - 1) carries into the exponent as it
  // must, out of the subnormals too.
  const uint64_t magnitude = (uint64_t(biased - 1) << f.mantissa_bits) + rounded;
  return sign | (magnitude >= infinity ? infinity : magnitude);
}

double decode(Format f, uint64_t bits) {
  const bool negative = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  const uint64_t ones = (uint64_t(1) << f.exponent_bits) - 1;
  const uint64_t exponent = bits >> f.mantissa_bits & ones;
  const uint64_t mantissa = bits & ((uint64_t(1) << f.mantissa_bits) - 1);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == ones && f.has_infinity) {  // infinity, or NaN with its payload
    return std::bit_cast<double>(uint64_t(negative) << 63 | uint64_t(0x7ff) << 52 |
                                 mantissa << (kDoubleMantissa - f.mantissa_bits));
  }
  if (!f.has_infinity && exponent == ones && mantissa == (uint64_t(1) << f.mantissa_bits) - 1) {
    return std::bit_cast<double>(uint64_t(negative) << 63 | uint64_t(0x7ff8) << 48);
  }
  const double magnitude = exponent == 0
                               ? std::ldexp(double(mantissa), 1 - bias - f.mantissa_bits)
                               : std::ldexp(double(mantissa + (uint64_t(1) << f.mantissa_bits)),
                                            int(exponent) - bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

// The magnitude in at most 53 bits whose last bit records whether anything was lost: rounding that
// once more is rounding the integer itself.
double sticky_double(uint64_t magnitude) {
  const int excess = 64 - std::countl_zero(magnitude | 1) - 53;
  if (excess <= 0) return double(magnitude);
  const uint64_t lost = magnitude & ((uint64_t(1) << excess) - 1);
  return std::ldexp(double(magnitude >> excess | (lost != 0 ? 1 : 0)), excess);
}

}  // namespace

uint64_t float_bits_of_double(DType type, double value) {
  if (type.scalar == Scalar::kFloat64) return std::bit_cast<uint64_t>(value);
  return encode(format_of(type), value);
}

double double_of_float_bits(DType type, uint64_t bits) {
  if (type.scalar == Scalar::kFloat64) return std::bit_cast<double>(bits);
  return decode(format_of(type), bits);
}

uint64_t float_bits_of_uint(DType type, uint64_t value) {
  if (type.scalar == Scalar::kFloat64) return std::bit_cast<uint64_t>(double(value));
  return encode(format_of(type), sticky_double(value));
}

uint64_t float_bits_of_int(DType type, int64_t value) {
  if (type.scalar == Scalar::kFloat64) return std::bit_cast<uint64_t>(double(value));
  const uint64_t magnitude = value < 0 ? uint64_t(0) - uint64_t(value) : uint64_t(value);
  const double sticky = sticky_double(magnitude);
  return encode(format_of(type), value < 0 ? -sticky : sticky);
}

double fused_multiply_add(DType type, double a, double b, double c) {
  if (type.scalar == Scalar::kFloat64) return std::fma(a, b, c);
  // The product of two narrow floats is exact in a double. Round its sum with c to odd, so that the
  // caller's rounding is the only one that counts.
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double other = sum - product;
  const double error = (product - (sum - other)) + (c - other);
  if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1)) return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

uint64_t lowest_float_bits(DType type, double infinity) {
  if (type.scalar != Scalar::kFloat8E4M3) return float_bits_of_double(type, infinity);
  return float_bits_of_double(type, infinity > 0 ? 448.0 : -448.0);
}

}  // namespace weft
