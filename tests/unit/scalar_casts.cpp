// CAST between all pairs of dtypes, BITCAST, and constants as text.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> all_types() {
  std::vector<DType> all;
  for (int s = int(Scalar::kBool); s < kScalarCount; s++) all.push_back(DType{Scalar(s)});
  return all;
}

uint64_t cast(DType from, DType to, uint64_t bits) {
  return evaluate_scalar(Op::CAST, from, to, std::vector{bits}).value();
}
uint64_t cast_double(double value, DType to) {
  return cast(dtypes::float64, to, std::bit_cast<uint64_t>(value));
}

std::vector<uint64_t> samples_of(DType type) {
  std::vector<uint64_t> out;
  if (type.is_float()) {
    for (double d :
         {0.0,  -0.0,  1.0,  -1.0,  0.5,    1.5,    -2.75,  3.0,    100.0, 300.0, 40000.0, -40000.0,
          1e10, -1e10, 1e20, -1e20, 0x1p31, 0x1p32, 0x1p63, 0x1p64, kInf,  -kInf, kNaN}) {
      out.push_back(bits_of_double(type, d));
    }
    return out;
  }
  for (int64_t i : {0, 1, 2, 3, 100, 127, 128, 200, 255, 256, 1000, 32767, 65535}) {
    out.push_back(bits_of_int(type, i));
    out.push_back(bits_of_int(type, -i));
  }
  out.push_back(least_bits(type));
  out.push_back(greatest_bits(type));
  return out;
}

// The definition, by way of long double, which holds every int64, uint64 and double exactly.
uint64_t cast_by_definition(DType from, DType to, uint64_t bits) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  if (!from.is_float() && !to.is_float()) {
    if (to.is_bool()) return bits != 0;
    const auto width = unsigned(to.bits());
    const uint64_t low = width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
    const bool negative = to.is_signed() && (low >> (width - 1) & 1);
    return negative && width < 64 ? low | ~uint64_t(0) << width : low;
  }
  const long double value = from.is_float()      ? double_of_bits(from, bits)
                            : from.is_unsigned() ? static_cast<long double>(bits)
                                                 : static_cast<long double>(int64_t(bits));
  if (to.is_bool()) return value != 0;
  if (to.is_float()) {  // exact in a double, or rounded by the host straight to float or double
    if (to.scalar == Scalar::kFloat64) return std::bit_cast<uint64_t>(double(value));
    if (to.scalar == Scalar::kFloat32) return std::bit_cast<uint32_t>(float(value));
    return bits_of_double(to, double(value));
  }
  if (std::isnan(value)) return 0;
  const long double whole = std::trunc(value);
  const long double least =
      to.is_unsigned() ? 0 : static_cast<long double>(int64_t(least_bits(to)));
  const long double most = to.is_unsigned() ? static_cast<long double>(greatest_bits(to))
                                            : static_cast<long double>(int64_t(greatest_bits(to)));
  if (whole <= least) return least_bits(to);
  if (whole >= most) return greatest_bits(to);
  return to.is_unsigned() ? uint64_t(whole) : uint64_t(int64_t(whole));
}

TEST(ScalarCasts, EveryPairAgreesWithTheDefinition) {
  for (DType from : all_types()) {
    for (DType to : all_types()) {
      for (uint64_t bits : samples_of(from)) {
        if (to.is_index() && from.is_unsigned() && int64_t(bits) < 0) {  // index is exact
          const uint64_t operand[] = {bits};
          EXPECT_FALSE(evaluate_scalar(Op::CAST, from, to, operand));
          continue;
        }
        const uint64_t got = cast(from, to, bits), want = cast_by_definition(from, to, bits);
        if (to.is_float() && std::isnan(double_of_bits(to, want))) {
          EXPECT_TRUE(std::isnan(double_of_bits(to, got))) << from.name() << " to " << to.name();
        } else {
          EXPECT_EQ(got, want) << from.name() << " to " << to.name() << " of "
                               << text_of_bits(from, bits);
        }
      }
    }
  }
}

TEST(ScalarCasts, FloatsSaturateAndNaNIsZero) {
  EXPECT_EQ(int64_t(cast_double(1e30, dtypes::int8)), 127);
  EXPECT_EQ(int64_t(cast_double(-kInf, dtypes::int16)), -32768);
  EXPECT_EQ(cast_double(-0.9, dtypes::uint8), 0u);
  EXPECT_EQ(cast_double(-5, dtypes::uint64), 0u);
  EXPECT_EQ(cast_double(kInf, dtypes::uint64), UINT64_MAX);
  EXPECT_EQ(cast_double(0x1p63, dtypes::uint64), uint64_t(1) << 63);
  EXPECT_EQ(int64_t(cast_double(0x1p63, dtypes::int64)), INT64_MAX);
  EXPECT_EQ(int64_t(cast_double(-2.9, dtypes::int32)), -2);
  for (DType type : all_types()) {
    if (type.is_int()) {
      EXPECT_EQ(cast_double(kNaN, type), 0u) << type.name();
    }
  }
}

TEST(ScalarCasts, BoolIsWhetherItIsNotZero) {
  for (DType from : {dtypes::float16, dtypes::float8_e4m3, dtypes::float32}) {
    EXPECT_EQ(cast(from, dtypes::bool_, bits_of_double(from, kNaN)), 1u);
    EXPECT_EQ(cast(from, dtypes::bool_, bits_of_double(from, -0.0)), 0u);
    EXPECT_EQ(cast(from, dtypes::bool_, 1), 1u);  // the least subnormal
  }
  EXPECT_EQ(cast(dtypes::int32, dtypes::bool_, 256), 1u);
  EXPECT_EQ(cast(dtypes::bool_, dtypes::float32, 1), std::bit_cast<uint32_t>(1.0f));
}

TEST(ScalarCasts, BitcastKeepsTheBits) {
  auto bitcast = [](DType from, DType to, uint64_t bits) {
    return evaluate_scalar(Op::BITCAST, from, to, std::vector{bits}).value();
  };
  EXPECT_EQ(bitcast(dtypes::float32, dtypes::uint32, std::bit_cast<uint32_t>(-1.5f)),
            std::bit_cast<uint32_t>(-1.5f));
  EXPECT_EQ(int64_t(bitcast(dtypes::float32, dtypes::int32, std::bit_cast<uint32_t>(-1.5f))),
            std::bit_cast<int32_t>(-1.5f));
  EXPECT_EQ(bitcast(dtypes::int16, dtypes::bfloat16, uint64_t(int64_t(-1))), 0xffffu);
  EXPECT_EQ(int64_t(bitcast(dtypes::uint8, dtypes::int8, 0x80)), -128);
  EXPECT_EQ(bitcast(dtypes::float32, dtypes::uint32, 0x7f800001), 0x7f800001u);  // signalling
  for (const DType byte : {dtypes::uint8, dtypes::float8_e4m3}) {
    for (const uint64_t bits : {1u, 2u, 0x80u, 0xffu}) {
      EXPECT_EQ(bitcast(byte, dtypes::bool_, bits), 1u);
    }
    EXPECT_EQ(bitcast(byte, dtypes::bool_, 0), 0u);
    EXPECT_EQ(bitcast(dtypes::bool_, byte, 1), 1u);
  }
  EXPECT_EQ(bitcast(dtypes::int8, dtypes::bool_, uint64_t(int64_t(-2))), 1u);
}

std::optional<uint64_t> there_and_back(DType type, uint64_t bits) {
  return parse_bits(type, text_of_bits(type, bits));
}

TEST(ScalarText, EveryNarrowPatternReadsBack) {
  for (DType type : all_types()) {
    if (type.bits() > 16) continue;
    const uint64_t patterns = uint64_t(1) << type.bits();
    for (uint64_t p = 0; p < patterns; p++) {
      const uint64_t bits = type.is_signed() ? bits_of_uint(type, p) : p;
      ASSERT_EQ(there_and_back(type, bits), bits) << type.name() << text_of_bits(type, bits);
    }
  }
}

TEST(ScalarText, WidePatternsReadBack) {
  std::mt19937_64 random(3);
  for (DType type : all_types()) {
    if (type.bits() <= 16) continue;
    for (uint64_t bits : samples_of(type)) EXPECT_EQ(there_and_back(type, bits), bits);
    for (int i = 0; i < 50000; i++) {
      const uint64_t raw = type.bits() == 64 ? random() : random() >> 32;
      const uint64_t bits = type.is_float() ? raw : bits_of_uint(type, raw);
      ASSERT_EQ(there_and_back(type, bits), bits) << type.name() << text_of_bits(type, bits);
    }
  }
}

// The shortest text of this float is nearer to a midpoint of floats than half a double.
TEST(ScalarText, ShortestTextIsNotRoundedTwice) {
  EXPECT_EQ(there_and_back(dtypes::float32, 0x15ae43fd), 0x15ae43fdu);
}

TEST(ScalarText, NaNPayloadsReadBack) {
  for (DType type : all_types()) {
    if (!type.is_float()) continue;
    const uint64_t plain = bits_of_double(type, kNaN);
    EXPECT_EQ(text_of_bits(type, plain), "nan");
    EXPECT_EQ(there_and_back(type, plain), plain);
    const uint64_t negative = plain | uint64_t(1) << (type.bits() - 1);
    EXPECT_EQ(there_and_back(type, negative), negative) << type.name();
  }
  EXPECT_EQ(text_of_bits(dtypes::float32, 0x7fc00001), "nan:0x7fc00001");
  EXPECT_EQ(there_and_back(dtypes::float32, 0x7f800001), 0x7f800001u);
  EXPECT_EQ(there_and_back(dtypes::float64, 0xfff0000000000007), 0xfff0000000000007u);
}

TEST(ScalarText, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(text_of_bits(dtypes::float32, bits_of_double(dtypes::float32, 3)), "3.0");
  EXPECT_EQ(text_of_bits(dtypes::float32, bits_of_double(dtypes::float32, -0.0)), "-0.0");
  EXPECT_EQ(text_of_bits(dtypes::float16, bits_of_double(dtypes::float16, 0.1)), "0.099975586");
  EXPECT_EQ(text_of_bits(dtypes::float64, bits_of_double(dtypes::float64, -kInf)), "-inf");
  EXPECT_EQ(text_of_bits(dtypes::bool_, 1), "true");
  EXPECT_EQ(text_of_bits(dtypes::int8, bits_of_int(dtypes::int8, -3)), "-3");
  EXPECT_EQ(text_of_bits(dtypes::uint64, UINT64_MAX), "18446744073709551615");
}

TEST(ScalarText, OtherTextIsRefused) {
  EXPECT_FALSE(parse_bits(dtypes::int8, "128"));
  EXPECT_FALSE(parse_bits(dtypes::uint8, "-1"));
  EXPECT_FALSE(parse_bits(dtypes::uint8, "256"));
  EXPECT_FALSE(parse_bits(dtypes::int32, "1.0"));
  EXPECT_FALSE(parse_bits(dtypes::int32, ""));
  EXPECT_FALSE(parse_bits(dtypes::float32, "one"));
  EXPECT_FALSE(parse_bits(dtypes::float32, "1.0x"));
  EXPECT_FALSE(parse_bits(dtypes::bool_, "1"));
  EXPECT_FALSE(parse_bits(dtypes::float16, "nan:0x3c00"));   // a number
  EXPECT_FALSE(parse_bits(dtypes::float16, "nan:0x17e00"));  // too wide
}

}  // namespace
}  // namespace weft
