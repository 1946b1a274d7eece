// Floats: IEEE arithmetic with one rounding per op, NaN and signed zeros as documented.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {dtypes::float8_e4m3, dtypes::float8_e5m2, dtypes::float16,
                             dtypes::bfloat16,    dtypes::float32,     dtypes::float64};

uint64_t eval_bits(Op op, DType type, const std::vector<double>& operands) {
  std::vector<uint64_t> bits;
  bits.reserve(operands.size());
  for (double d : operands) bits.push_back(bits_of_double(type, d));
  return evaluate_scalar(op, type, yields_bool(op) ? dtypes::bool_ : type, bits).value();
}
double eval(Op op, DType type, const std::vector<double>& operands) {
  return double_of_bits(type, eval_bits(op, type, operands));
}

TEST(ScalarFloats, NaNWinsMaximumAndMinimum) {
  for (DType type : kFloats) {
    for (Op op : {Op::MAX, Op::MIN}) {
      EXPECT_TRUE(std::isnan(eval(op, type, {kNaN, 1}))) << type.name();
      EXPECT_TRUE(std::isnan(eval(op, type, {1, kNaN}))) << type.name();
    }
  }
}

TEST(ScalarFloats, MaximumAndMinimumOrderTheZeros) {
  for (DType type : kFloats) {
    EXPECT_FALSE(std::signbit(eval(Op::MAX, type, {0.0, -0.0}))) << type.name();
    EXPECT_FALSE(std::signbit(eval(Op::MAX, type, {-0.0, 0.0}))) << type.name();
    EXPECT_TRUE(std::signbit(eval(Op::MIN, type, {0.0, -0.0}))) << type.name();
    EXPECT_TRUE(std::signbit(eval(Op::MIN, type, {-0.0, 0.0}))) << type.name();
    EXPECT_TRUE(std::signbit(eval(Op::MAX, type, {-0.0, -0.0}))) << type.name();
  }
}

TEST(ScalarFloats, ComparisonsWithNaNAreFalseExceptNotEqual) {
  for (DType type : kFloats) {
    for (double x : {kNaN, 1.0}) {
      EXPECT_EQ(eval_bits(Op::CMPLT, type, {kNaN, x}), 0u);
      EXPECT_EQ(eval_bits(Op::CMPLT, type, {x, kNaN}), 0u);
      EXPECT_EQ(eval_bits(Op::CMPEQ, type, {x, kNaN}), 0u);
      EXPECT_EQ(eval_bits(Op::CMPNE, type, {x, kNaN}), 1u);
    }
    EXPECT_EQ(eval_bits(Op::CMPEQ, type, {0.0, -0.0}), 1u);
    EXPECT_EQ(eval_bits(Op::CMPLT, type, {-0.0, 0.0}), 0u);
    EXPECT_EQ(eval_bits(Op::CMPLT, type, {-1.0, 0.0}), 1u);
  }
}

TEST(ScalarFloats, InfinitiesAndZerosFollowIEEE) {
  for (DType type : kFloats) {
    if (type == dtypes::float8_e4m3) continue;  // it has no infinity
    EXPECT_TRUE(std::isnan(eval(Op::SUB, type, {kInf, kInf})));
    EXPECT_TRUE(std::isnan(eval(Op::MUL, type, {kInf, 0})));
    EXPECT_EQ(eval(Op::FDIV, type, {1, 0.0}), kInf);
    EXPECT_EQ(eval(Op::FDIV, type, {1, -0.0}), -kInf);
    EXPECT_EQ(eval(Op::RECIP, type, {-kInf}), 0);
    EXPECT_TRUE(std::signbit(eval(Op::RECIP, type, {-kInf})));
    EXPECT_EQ(eval(Op::LOG2, type, {0}), -kInf);
    EXPECT_TRUE(std::isnan(eval(Op::SQRT, type, {-1})));
    EXPECT_TRUE(std::signbit(eval(Op::SQRT, type, {-0.0})));
  }
}

TEST(ScalarFloats, NegationFlipsTheSignOfNaNToo) {
  for (DType type : kFloats) {
    const uint64_t nan = bits_of_double(type, kNaN);
    const uint64_t sign = uint64_t(1) << (type.bits() - 1);
    EXPECT_EQ(eval_bits(Op::NEG, type, {kNaN}), nan ^ sign) << type.name();
    EXPECT_TRUE(std::signbit(eval(Op::NEG, type, {0.0})));
  }
}

TEST(ScalarFloats, RoundingOpsRoundAsNamed) {
  for (DType type : kFloats) {
    EXPECT_EQ(eval(Op::ROUND, type, {0.5}), 0);
    EXPECT_EQ(eval(Op::ROUND, type, {1.5}), 2);
    EXPECT_EQ(eval(Op::ROUND, type, {-2.5}), -2);
    EXPECT_EQ(eval(Op::TRUNC, type, {-1.5}), -1);
    EXPECT_EQ(eval(Op::FLOOR, type, {-1.5}), -2);
    EXPECT_EQ(eval(Op::CEIL, type, {-1.5}), -1);
    EXPECT_TRUE(std::signbit(eval(Op::CEIL, type, {-0.5})));
  }
}

TEST(ScalarFloats, Float32ArithmeticIsTheHosts) {
  std::mt19937_64 random(1);
  auto any = [&] { return std::bit_cast<float>(uint32_t(random())); };
  auto same = [](uint64_t got, float want) {
    return std::isnan(want) ? std::isnan(std::bit_cast<float>(uint32_t(got)))
                            : got == std::bit_cast<uint32_t>(want);
  };
  for (int i = 0; i < 20000; i++) {
    const float a = any(), b = any(), c = any();
    const auto bits = [](float f) { return uint64_t(std::bit_cast<uint32_t>(f)); };
    const std::vector<uint64_t> two = {bits(a), bits(b)};
    auto run = [&](Op op) { return *evaluate_scalar(op, dtypes::float32, dtypes::float32, two); };
    EXPECT_TRUE(same(run(Op::ADD), a + b)) << a << " + " << b;
    EXPECT_TRUE(same(run(Op::SUB), a - b)) << a << " - " << b;
    EXPECT_TRUE(same(run(Op::MUL), a * b)) << a << " * " << b;
    EXPECT_TRUE(same(run(Op::FDIV), a / b)) << a << " / " << b;
    const std::vector<uint64_t> one = {bits(std::fabs(a))};
    EXPECT_TRUE(same(*evaluate_scalar(Op::SQRT, dtypes::float32, dtypes::float32, one),
                     std::sqrt(std::fabs(a))));
    const std::vector<uint64_t> three = {bits(a), bits(b), bits(c)};
    EXPECT_TRUE(same(*evaluate_scalar(Op::MULACC, dtypes::float32, dtypes::float32, three),
                     std::fma(a, b, c)));
  }
}

// The product is exact in a double and so is the sum in a long double of 64 bits or more.
TEST(ScalarFloats, NarrowMultiplyAccumulateRoundsOnce) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::mt19937_64 random(2);
  for (DType type : {dtypes::float16, dtypes::bfloat16}) {
    for (int i = 0; i < 20000; i++) {
      // Operands around 1: all of a*b + c lies within 64 bits, so the reference is exact.
      double v[3];
      for (double& x : v) {
        x = double_of_bits(type, bits_of_double(type, 0.5 + double(random() % 4096) / 2048));
      }
      v[2] *= random() % 2 == 0 ? 1.0 / 1024 : -1.0;
      v[2] = double_of_bits(type, bits_of_double(type, v[2]));
      const long double exact = static_cast<long double>(v[0]) * v[1] + v[2];
      ASSERT_EQ(static_cast<long double>(double(exact)), exact);
      EXPECT_EQ(eval_bits(Op::MULACC, type, {v[0], v[1], v[2]}),
                bits_of_double(type, double(exact)));
    }
  }
  // 1 + 2^-10 squared is 1 + 2^-9 + 2^-20; with 2^-24 on top a double still holds it, but a product
  // rounded to float16 first would lose the 2^-20.
  const double near_one = 1 + std::ldexp(1.0, -10);
  EXPECT_EQ(eval(Op::MULACC, dtypes::float16, {near_one, near_one, -1 - std::ldexp(1.0, -9)}),
            std::ldexp(1.0, -20));
}

TEST(ScalarFloats, ReductionsStartFromTheirIdentity) {
  for (DType type : kFloats) {
    const bool has_infinity = type != dtypes::float8_e4m3;
    EXPECT_EQ(double_of_bits(type, *identity_bits(Op::MAX, type)), has_infinity ? -kInf : -448);
    EXPECT_EQ(double_of_bits(type, *identity_bits(Op::MIN, type)), has_infinity ? kInf : 448);
    EXPECT_EQ(double_of_bits(type, *identity_bits(Op::MUL, type)), 1);
    EXPECT_EQ(*identity_bits(Op::ADD, type), 0u);
  }
}

}  // namespace
}  // namespace weft
