// Narrow float formats, every pattern of them: decoding, rounding, overflow.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/float_format.h"
#include "ir/scalar.h"

namespace weft {
namespace {

constexpr DType kNarrow[] = {dtypes::float8_e4m3, dtypes::float8_e5m2, dtypes::float16,
                             dtypes::bfloat16};
constexpr double kInf = std::numeric_limits<double>::infinity();

uint64_t patterns_of(DType type) { return uint64_t(1) << type.bits(); }

// The format's value from its definition, by sums of powers of two.
double value_by_definition(int exponent_bits, int mantissa_bits, bool has_infinity, uint64_t bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = int(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  double value = exponent == 0 ? 0 : 1;
  bool all_ones = true;
  for (int i = 0; i < mantissa_bits; i++) {
    const bool set = bits >> (mantissa_bits - 1 - i) & 1;
    all_ones &= set;
    if (set) value += std::pow(2.0, -1 - i);
  }
  const bool is_top = exponent == (1 << exponent_bits) - 1;
  if (is_top && has_infinity) value = value == 1 ? kInf : std::nan("");
  if (is_top && !has_infinity && all_ones) value = std::nan("");
  value *= std::pow(2.0, (exponent == 0 ? 1 : exponent) - bias);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

double definition(DType type, uint64_t bits) {
  switch (type.scalar) {
    case Scalar::kFloat8E4M3: return value_by_definition(4, 3, false, bits);
    case Scalar::kFloat8E5M2: return value_by_definition(5, 2, true, bits);
    case Scalar::kFloat16: return value_by_definition(5, 10, true, bits);
    default: return value_by_definition(8, 7, true, bits);
  }
}

TEST(ScalarFormats, EveryPatternHasTheValueOfItsDefinition) {
  for (DType type : kNarrow) {
    for (uint64_t bits = 0; bits < patterns_of(type); bits++) {
      const double want = definition(type, bits), got = double_of_bits(type, bits);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << type.name() << " " << bits;
      } else {
        ASSERT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want))
            << type.name() << " " << bits;
      }
    }
  }
}

TEST(ScalarFormats, EveryPatternReturnsFromDouble) {
  for (DType type : kNarrow) {
    for (uint64_t bits = 0; bits < patterns_of(type); bits++) {
      const double value = double_of_bits(type, bits);
      const uint64_t back = bits_of_double(type, value);
      if (std::isnan(value)) {
        // A signalling NaN may become quiet; its sign and the rest of its payload stay.
        const uint64_t quiet = type == dtypes::float8_e5m2 ? 2u
                               : type == dtypes::float16   ? 1u << 9
                               : type == dtypes::bfloat16  ? 1u << 6
                                                           : 0u;
        ASSERT_EQ(back, bits | quiet) << type.name();
      } else {
        ASSERT_EQ(back, bits) << type.name();
      }
    }
  }
}

// Between neighbours a < b: below the middle gives a, above it b, the middle the even one.
TEST(ScalarFormats, EveryMidpointRoundsToEven) {
  for (DType type : kNarrow) {
    const uint64_t sign = patterns_of(type) / 2;
    for (uint64_t low = 0; low + 1 < sign; low++) {
      const double a = double_of_bits(type, low), b = double_of_bits(type, low + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const double middle = a + (b - a) / 2;
      const uint64_t even = low % 2 == 0 ? low : low + 1;
      ASSERT_EQ(bits_of_double(type, middle), even) << type.name() << " " << low;
      ASSERT_EQ(bits_of_double(type, std::nextafter(middle, a)), low) << type.name();
      ASSERT_EQ(bits_of_double(type, std::nextafter(middle, b)), low + 1) << type.name();
      ASSERT_EQ(bits_of_double(type, -middle), even | sign) << type.name();
    }
  }
}

TEST(ScalarFormats, OverflowGoesToInfinityPastTheLastMidpoint) {
  struct Top {
    DType type;
    double largest, midpoint;
  };
  for (const auto& [type, largest, midpoint] :
       {Top{dtypes::float8_e5m2, 57344, 61440}, Top{dtypes::float16, 65504, 65520},
        Top{dtypes::bfloat16, std::ldexp(255.0, 120), std::ldexp(511.0, 119)}}) {
    EXPECT_EQ(double_of_bits(type, bits_of_double(type, largest)), largest);
    EXPECT_EQ(double_of_bits(type, bits_of_double(type, std::nextafter(midpoint, 0))), largest);
    EXPECT_EQ(double_of_bits(type, bits_of_double(type, midpoint)), kInf) << type.name();
    EXPECT_EQ(double_of_bits(type, bits_of_double(type, -1e300)), -kInf) << type.name();
  }
}

TEST(ScalarFormats, Float8E4M3OverflowsToNaN) {
  const DType type = dtypes::float8_e4m3;
  EXPECT_EQ(bits_of_double(type, 448), 0x7eu);
  EXPECT_EQ(bits_of_double(type, 464), 0x7eu);  // the tie goes to the even one
  EXPECT_EQ(bits_of_double(type, std::nextafter(464, 500)), 0x7fu);
  EXPECT_EQ(bits_of_double(type, -kInf), 0xffu);
  EXPECT_TRUE(std::isnan(double_of_bits(type, 0x7f)));
}

TEST(ScalarFormats, TinyNumbersBecomeSubnormalOrZero) {
  for (DType type : kNarrow) {
    const double least = double_of_bits(type, 1);
    EXPECT_EQ(bits_of_double(type, least / 2), 0u) << type.name();
    EXPECT_EQ(bits_of_double(type, std::nextafter(least / 2, 1)), 1u) << type.name();
    EXPECT_EQ(bits_of_double(type, -std::numeric_limits<double>::denorm_min()),
              patterns_of(type) / 2)
        << type.name();
  }
}

TEST(ScalarFormats, Float32IsTheHosts) {
  for (double d : {1e-45, 0.7e-45, 1.1754942e-38, 3.4028235e38, 3.4028236e38, 1 + 0x1p-24,
                   1 + 0x1.8p-23, -1e-60, 16777217.0}) {
    EXPECT_EQ(bits_of_double(dtypes::float32, d), std::bit_cast<uint32_t>(float(d))) << d;
  }
}

TEST(ScalarFormats, IntegersBecomeFloatsWithOneRounding) {
  // 2^40 + 2^16 + 1 lies just above a float32 midpoint; rounded to 53 bits first it stays there, so
  // the hard ones need more than 53 bits: 2^62 + 2^38 + 1.
  const int64_t hard = (int64_t(1) << 62) + (int64_t(1) << 38) + 1;
  EXPECT_EQ(float_bits_of_int(dtypes::float32, hard), std::bit_cast<uint32_t>(float(hard)));
  EXPECT_EQ(float_bits_of_int(dtypes::float32, hard),
            std::bit_cast<uint32_t>(std::ldexp(float((1 << 23) + 1), 39)));
  EXPECT_EQ(float_bits_of_int(dtypes::float32, hard - 1),
            std::bit_cast<uint32_t>(std::ldexp(1.0f, 62)));  // the tie itself: to even
  EXPECT_EQ(float_bits_of_int(dtypes::float32, -hard), std::bit_cast<uint32_t>(float(-hard)));
  EXPECT_EQ(float_bits_of_uint(dtypes::float32, UINT64_MAX), std::bit_cast<uint32_t>(0x1p64f));
  EXPECT_EQ(float_bits_of_uint(dtypes::float64, UINT64_MAX), std::bit_cast<uint64_t>(0x1p64));
  EXPECT_EQ(float_bits_of_int(dtypes::float64, INT64_MIN), std::bit_cast<uint64_t>(-0x1p63));
  EXPECT_EQ(double_of_bits(dtypes::float16, float_bits_of_int(dtypes::float16, 2049)), 2048);
  EXPECT_EQ(double_of_bits(dtypes::bfloat16, float_bits_of_int(dtypes::bfloat16, 259)), 260);
  EXPECT_EQ(double_of_bits(dtypes::float16, float_bits_of_int(dtypes::float16, 70000)), kInf);
}

}  // namespace
}  // namespace weft
