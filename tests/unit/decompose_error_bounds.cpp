// The functions keep the bounds of codegen/error_bounds.h, on targets with and without a fused
// multiply-add: at special values, around every power of two, at hard arguments, and on random
// ones. The disabled test sweeps all of float32.
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/decompose.h"
#include "codegen/error_bounds.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "tests/unit/block_evaluator.h"
#include "tests/unit/decompose_helpers.h"

namespace weft::test {
namespace {

using Function = long double (*)(long double);
using Wide = long double;

Function function_of(Op op) {
  if (op == Op::EXP) return [](Wide x) { return std::exp(x); };
  if (op == Op::EXP2) return [](Wide x) { return std::exp2(x); };
  if (op == Op::LOG) return [](Wide x) { return std::log(x); };
  if (op == Op::LOG2) return [](Wide x) { return std::log2(x); };
  return op == Op::SIN ? Function([](Wide x) { return std::sin(x); })
                       : Function([](Wide x) { return std::cos(x); });
}
// Good enough for narrower formats, and faster.
double fast_reference(Op op, double x) {
  if (op == Op::EXP) return std::exp(x);
  if (op == Op::EXP2) return std::exp2(x);
  if (op == Op::LOG) return std::log(x);
  if (op == Op::LOG2) return std::log2(x);
  return op == Op::SIN ? std::sin(x) : std::cos(x);
}

struct FloatShape {
  int mantissa_bits, least_exponent, most_exponent;
};
FloatShape shape_of_float(DType type) {
  if (type.scalar == Scalar::kFloat64) return {52, -1022, 1023};
  if (type.scalar == Scalar::kFloat16) return {10, -14, 15};
  if (type.scalar == Scalar::kBFloat16) return {7, -126, 127};
  if (type.scalar == Scalar::kFloat8E5M2) return {2, -14, 15};
  if (type.scalar == Scalar::kFloat8E4M3) return {3, -6, 8};
  return {23, -126, 127};
}

// The distance in units of the last place; infinity where a special value is not as it must be.
double error_in_ulp(DType type, double got, Wide truth) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(truth)) return std::isnan(got) ? 0 : wrong;
  const FloatShape f = shape_of_float(type);
  const bool has_infinity = type.scalar != Scalar::kFloat8E4M3;
  if (truth == 0) return got == 0 && std::signbit(got) == std::signbit(truth) ? 0 : wrong;
  // Past the largest number the next one counts as infinity, or as the NaN in its place.
  const bool is_past = has_infinity ? std::isinf(got) : std::isnan(got);
  if (!is_past && std::isnan(got)) return wrong;
  const Wide limit = has_infinity ? std::ldexp(Wide(1), f.most_exponent + 1) : Wide(480);
  const Wide value = is_past ? std::copysign(limit, truth) : Wide(got);
  if (is_past && std::isinf(got) && std::signbit(got) != std::signbit(truth)) return wrong;
  if (std::abs(truth) >= limit) return is_past ? 0 : wrong;
  const int exponent = std::max(std::ilogb(truth), f.least_exponent);
  return double(std::abs(value - truth) / std::ldexp(Wide(1), exponent - f.mantissa_bits));
}

// The same where both are ordinary numbers of float32, for speed.
double error_in_ulp32(float got, double truth) {
  const double size = std::abs(truth);
  if (!(size >= FLT_MIN && size <= FLT_MAX && std::isfinite(got))) {
    return error_in_ulp(dtypes::float32, got, truth);
  }
  const uint64_t exponent = std::bit_cast<uint64_t>(size) >> 52;
  return std::abs(got - truth) * std::bit_cast<double>((2 * 1023 + 23 - exponent) << 52);
}

struct Worst {
  double ulp = 0;
  double at = 0;
  void take(double error, double x) {
    if (error > ulp) ulp = error, at = x;
  }
};

class Measurement {
 public:
  Measurement(Op op, DType type, const Target& target)
      : op_(op),
        type_(type),
        leaf_(define_global(*arena_, type, 0)),
        evaluator_(decompose(unary(op, leaf_), target), leaf_) {}

  void add(uint64_t bits) {
    inputs_[count_++] = bits;
    if (count_ == inputs_.size()) flush();
  }
  // `bits` and its neighbours, both signs.
  void add_around(uint64_t bits) {
    const uint64_t sign = uint64_t(1) << (type_.bits() - 1);
    for (uint64_t i = 0; i < 7; i++) {
      const uint64_t near = (bits + i - 3) & (sign - 1);
      add(near);
      add(near | sign);
    }
  }

  Worst worst() {
    flush();
    return worst_;
  }

 private:
  void flush() {
    const std::span inputs(inputs_.data(), count_);
    evaluator_.run(inputs, std::span(outputs_.data(), count_));
    if (type_ == dtypes::float32) {
      for (size_t i = 0; i < count_; i++) {
        const float x = std::bit_cast<float>(uint32_t(inputs[i]));
        const float got = std::bit_cast<float>(uint32_t(outputs_[i]));
        worst_.take(error_in_ulp32(got, fast_reference(op_, x)), x);
      }
      count_ = 0;
      return;
    }
    const Function f = function_of(op_);
    for (size_t i = 0; i < count_; i++) {
      const double x = double_of_bits(type_, inputs[i]);
      const Wide truth = type_ == dtypes::float64 ? f(x) : fast_reference(op_, x);
      worst_.take(error_in_ulp(type_, double_of_bits(type_, outputs_[i]), truth), x);
    }
    count_ = 0;
  }

  Op op_;
  DType type_;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
  UOp leaf_;
  BlockEvaluator evaluator_;
  std::array<uint64_t, BlockEvaluator::kBlock> inputs_{}, outputs_{};
  size_t count_ = 0;
  Worst worst_;
};

// Multiples of pi / 2 and of ln 2, where results are small or jump from one reduction to the next.
void add_hard(Measurement& m, DType type, std::mt19937_64& random) {
  for (int i = 0; i < 10'000; i++) {
    const double scale = std::ldexp(1.0, int(random() % 40));
    const double k = std::floor(scale * (double(random() % 1000) / 1000 + 1)) / 2;
    m.add_around(bits_of_double(type, k * 3.14159265358979323846));
    m.add_around(bits_of_double(type, double(int64_t(random() % 3000)) / 2 * 0.693147180559945309));
  }
}

void add_samples(Measurement& m, DType type, size_t count) {
  std::mt19937_64 random(1);
  const FloatShape f = shape_of_float(type);
  const uint64_t sign = uint64_t(1) << (type.bits() - 1), exponents = sign >> f.mantissa_bits;
  for (uint64_t e = 0; e <= exponents; e++) {
    m.add_around(e << f.mantissa_bits);
    for (int i = 0; i < 200; i++) {
      m.add((e << f.mantissa_bits | (random() & ((uint64_t(1) << f.mantissa_bits) - 1))) &
            (sign - 1));
    }
  }
  add_hard(m, type, random);
  const double usual = type == dtypes::float64 ? 750 : 105;  // where exp is neither 0 nor infinite
  for (size_t i = 0; i < count; i++) {
    m.add(random() & (sign | (sign - 1)));
    m.add(bits_of_double(type, (double(random() >> 11) * 0x1p-53 * 2 - 1) * usual));
    m.add(bits_of_double(type, double(random() >> 11) * 0x1p-52));
  }
}

// What the target does by itself that counts here.
enum class Has { kFloat64, kFused, kNeither };
struct Case {
  ErrorBound bound;
  Has has;
};

std::vector<Case> cases(std::optional<DType> dtype = {}) {
  std::vector<Case> all;
  for (const ErrorBound& bound : kErrorBounds) {
    if (bound.dtype != dtype.value_or(bound.dtype)) continue;
    all.push_back({bound, Has::kFloat64});
    all.push_back({bound, Has::kFused});
    if (bound.dtype == dtypes::float32) all.push_back({bound, Has::kNeither});
  }
  return all;
}

const char* suffix(Has has) {
  return has == Has::kFused ? "_fused" : has == Has::kNeither ? "_without_float64" : "";
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const auto& [bound, has] = info.param;
  return std::string(name_of(bound.op)) + "_" + bound.dtype.name() + suffix(has);
}

class DecomposeErrorBounds : public testing::TestWithParam<Case> {
 protected:
  static Target target() {
    const Has has = GetParam().has;
    if (has == Has::kFused) return with_fused_multiply_add(bare_target());
    return has == Has::kNeither ? without_float64(bare_target()) : bare_target();
  }
  static void check(Measurement& m) {
    const auto& [bound, has] = GetParam();
    const Worst worst = m.worst();
    RecordProperty("ulp", std::to_string(worst.ulp));
    if (std::getenv("WEFT_SHOW_ULP") != nullptr) {
      std::cout << name_of(bound.op) << " " << bound.dtype.name() << suffix(has) << " " << worst.ulp
                << " ulp at " << std::hexfloat << worst.at << std::defaultfloat << "\n";
    }
    EXPECT_LE(worst.ulp, bound.ulp) << "at " << std::hexfloat << worst.at;
  }
};

TEST_P(DecomposeErrorBounds, OnSamples) {
  Measurement m(GetParam().bound.op, GetParam().bound.dtype, target());
  const DType type = GetParam().bound.dtype;
  if (type.bits() <= 16) {
    for (uint64_t i = 0; i < uint64_t(1) << type.bits(); i++) m.add(i);
  } else {
    add_samples(m, type, type == dtypes::float32 ? 500'000 : 60'000);
  }
  check(m);
}

class DecomposeErrorBoundsOfFloat32 : public DecomposeErrorBounds {};

TEST_P(DecomposeErrorBoundsOfFloat32, DISABLED_OnAll) {
  Measurement m(GetParam().bound.op, dtypes::float32, target());
  for (uint64_t i = 0; i < uint64_t(1) << 32; i++) m.add(i);
  check(m);
}

INSTANTIATE_TEST_SUITE_P(Functions, DecomposeErrorBounds, testing::ValuesIn(cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Functions, DecomposeErrorBoundsOfFloat32,
                         testing::ValuesIn(cases(dtypes::float32)), name_of_case);

}  // namespace
}  // namespace weft::test
