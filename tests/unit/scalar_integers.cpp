// Integer arithmetic is total: the table of what every op gives where C would be undefined.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft {
namespace {

constexpr std::array kSigned = {dtypes::int8, dtypes::int16, dtypes::int32, dtypes::int64};
constexpr std::array kUnsigned = {dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64};

std::optional<uint64_t> eval(Op op, DType type, const std::vector<uint64_t>& operands) {
  const DType result = yields_bool(op) ? dtypes::bool_ : type;
  return evaluate_scalar(op, type, result, operands);
}
int64_t eval_int(Op op, DType type, int64_t a, int64_t b) {
  return int64_t(eval(op, type, {bits_of_int(type, a), bits_of_int(type, b)}).value());
}
int64_t least(DType type) { return int64_t(least_bits(type)); }
int64_t greatest(DType type) { return int64_t(greatest_bits(type)); }

std::vector<DType> all_integers() {
  std::vector<DType> all(kSigned.begin(), kSigned.end());
  all.insert(all.end(), kUnsigned.begin(), kUnsigned.end());
  return all;
}

TEST(ScalarIntegers, DivisionByZeroIsZeroAndLeavesTheDividend) {
  std::vector<DType> types = all_integers();
  types.push_back(dtypes::index);
  for (DType type : types) {
    for (uint64_t x : {uint64_t(0), uint64_t(7), least_bits(type), greatest_bits(type)}) {
      EXPECT_EQ(eval(Op::IDIV, type, {x, 0}), 0u) << type.name();
      EXPECT_EQ(eval(Op::CDIV, type, {x, 0}), 0u) << type.name();
      EXPECT_EQ(eval(Op::MOD, type, {x, 0}), x) << type.name();
      EXPECT_EQ(eval(Op::CMOD, type, {x, 0}), x) << type.name();
    }
  }
}

TEST(ScalarIntegers, LeastByMinusOneWraps) {
  for (DType type : kSigned) {
    for (Op op : {Op::IDIV, Op::CDIV}) EXPECT_EQ(eval_int(op, type, least(type), -1), least(type));
    for (Op op : {Op::MOD, Op::CMOD}) EXPECT_EQ(eval_int(op, type, least(type), -1), 0);
    EXPECT_EQ(eval(Op::NEG, type, {least_bits(type)}), least_bits(type));
  }
}

TEST(ScalarIntegers, FloorAndTruncatingDivisionAgreeWithTheirDefinitions) {
  for (int64_t a = -9; a <= 9; a++) {
    for (int64_t b = -4; b <= 4; b++) {
      if (b == 0) continue;
      const int64_t truncated = a / b;
      const int64_t floored = truncated - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
      for (DType type : kSigned) {
        EXPECT_EQ(eval_int(Op::IDIV, type, a, b), floored) << a << "//" << b;
        EXPECT_EQ(eval_int(Op::MOD, type, a, b), a - floored * b) << a << "%" << b;
        EXPECT_EQ(eval_int(Op::CDIV, type, a, b), truncated) << a << "/" << b;
        EXPECT_EQ(eval_int(Op::CMOD, type, a, b), a - truncated * b) << a << "rem" << b;
      }
    }
  }
}

TEST(ScalarIntegers, UnsignedDivisionUsesAllBits) {
  for (DType type : kUnsigned) {
    const uint64_t top = greatest_bits(type);
    EXPECT_EQ(eval(Op::IDIV, type, {top, 2}), top / 2);
    EXPECT_EQ(eval(Op::CMOD, type, {top, 10}), top % 10);
    EXPECT_EQ(eval(Op::IDIV, type, {top, top}), 1u);
  }
}

TEST(ScalarIntegers, SumsAndProductsWrapToTheWidth) {
  for (DType type : kSigned) {
    EXPECT_EQ(eval_int(Op::ADD, type, greatest(type), 1), least(type));
    EXPECT_EQ(eval_int(Op::SUB, type, least(type), 1), greatest(type));
    EXPECT_EQ(eval_int(Op::MUL, type, greatest(type), 2), -2);
    EXPECT_EQ(eval(Op::MULACC, type, {greatest_bits(type), 2, 3}), 1u);
  }
  for (DType type : kUnsigned) {
    EXPECT_EQ(eval(Op::ADD, type, {greatest_bits(type), 1}), 0u);
    EXPECT_EQ(eval(Op::SUB, type, {0, 1}), greatest_bits(type));
    EXPECT_EQ(eval(Op::NEG, type, {1}), greatest_bits(type));
    EXPECT_EQ(eval(Op::MUL, type, {greatest_bits(type), greatest_bits(type)}), 1u);
  }
}

TEST(ScalarIntegers, ShiftsPastTheWidthAreZero) {
  for (DType type : all_integers()) {
    const auto width = uint64_t(type.bits());
    for (uint64_t by : {width, width + 1, greatest_bits(type)}) {
      if (by < width) continue;
      EXPECT_EQ(eval(Op::SHL, type, {1, by}), 0u) << type.name() << by;
      EXPECT_EQ(eval(Op::SHR, type, {greatest_bits(type), by}), 0u) << type.name() << by;
    }
    EXPECT_EQ(eval(Op::SHL, type, {1, width - 1}),
              type.is_signed() ? least_bits(type) : uint64_t(1) << (width - 1));
    EXPECT_EQ(eval(Op::SHR, type, {greatest_bits(type), 0}), greatest_bits(type));
  }
  for (DType type : kSigned) {
    EXPECT_EQ(eval_int(Op::SHL, type, 1, -1), 0);
    EXPECT_EQ(eval_int(Op::SHR, type, -1, -1), 0);
    EXPECT_EQ(eval_int(Op::SHR, type, -8, type.bits()), 0);
    EXPECT_EQ(eval_int(Op::SHR, type, -8, 1), -4);
    EXPECT_EQ(eval_int(Op::SHR, type, least(type), type.bits() - 1), -1);
  }
}

TEST(ScalarIntegers, BitsAndComparisonsRespectTheSign) {
  for (DType type : kSigned) {
    EXPECT_EQ(eval_int(Op::NOT, type, 0, 0), -1);
    EXPECT_EQ(eval_int(Op::XOR, type, -1, 5), -6);
    EXPECT_EQ(eval_int(Op::CMPLT, type, -1, 0), 1);
    EXPECT_EQ(eval_int(Op::MAX, type, -1, 0), 0);
    EXPECT_EQ(eval_int(Op::MIN, type, least(type), greatest(type)), least(type));
  }
  for (DType type : kUnsigned) {
    EXPECT_EQ(eval(Op::NOT, type, {0}), greatest_bits(type));
    EXPECT_EQ(eval(Op::CMPLT, type, {greatest_bits(type), 0}), 0u);
    EXPECT_EQ(eval(Op::MAX, type, {greatest_bits(type), 0}), greatest_bits(type));
  }
}

TEST(ScalarIntegers, BoolIsTheTwoElementLattice) {
  for (uint64_t a : {0u, 1u}) {
    EXPECT_EQ(eval(Op::NOT, dtypes::bool_, {a}), 1 - a);
    for (uint64_t b : {0u, 1u}) {
      for (Op op : {Op::ADD, Op::OR, Op::MAX}) EXPECT_EQ(eval(op, dtypes::bool_, {a, b}), a | b);
      for (Op op : {Op::MUL, Op::AND, Op::MIN}) EXPECT_EQ(eval(op, dtypes::bool_, {a, b}), a & b);
      for (Op op : {Op::XOR, Op::CMPNE}) EXPECT_EQ(eval(op, dtypes::bool_, {a, b}), a ^ b);
      EXPECT_EQ(eval(Op::CMPEQ, dtypes::bool_, {a, b}), uint64_t(a == b));
      EXPECT_EQ(eval(Op::CMPLT, dtypes::bool_, {a, b}), uint64_t(a < b));
    }
  }
}

TEST(ScalarIntegers, IndexHasNoResultPast64Bits) {
  constexpr auto lo = uint64_t(std::numeric_limits<int64_t>::min());
  constexpr auto hi = uint64_t(std::numeric_limits<int64_t>::max());
  const auto minus_one = uint64_t(-1);
  EXPECT_FALSE(eval(Op::ADD, dtypes::index, {hi, 1}));
  EXPECT_FALSE(eval(Op::SUB, dtypes::index, {lo, 1}));
  EXPECT_FALSE(eval(Op::MUL, dtypes::index, {hi, 2}));
  EXPECT_FALSE(eval(Op::NEG, dtypes::index, {lo}));
  EXPECT_FALSE(eval(Op::SHL, dtypes::index, {hi, 1}));
  EXPECT_FALSE(eval(Op::MULACC, dtypes::index, {hi, 1, 1}));
  EXPECT_FALSE(eval(Op::IDIV, dtypes::index, {lo, minus_one}));
  EXPECT_FALSE(eval(Op::CDIV, dtypes::index, {lo, minus_one}));
  EXPECT_EQ(eval(Op::MOD, dtypes::index, {lo, minus_one}), 0u);
  EXPECT_EQ(eval(Op::ADD, dtypes::index, {hi, minus_one}), hi - 1);
  EXPECT_EQ(eval(Op::SHL, dtypes::index, {minus_one, 63}), lo);
}

TEST(ScalarIntegers, OpsThatADTypeLacksHaveNoResult) {
  EXPECT_FALSE(eval(Op::SIN, dtypes::int32, {1}));
  EXPECT_FALSE(eval(Op::FDIV, dtypes::int32, {1, 1}));
  EXPECT_FALSE(eval(Op::SHL, dtypes::bool_, {1, 1}));
  EXPECT_FALSE(eval(Op::AND, dtypes::float32, {1, 1}));
}

TEST(ScalarIntegers, IdentitiesAreNeutral) {
  std::vector<DType> types = all_integers();
  types.push_back(dtypes::bool_);
  types.push_back(dtypes::index);
  for (DType type : types) {
    for (Op op : {Op::ADD, Op::MUL, Op::MAX, Op::MIN, Op::AND, Op::OR, Op::XOR}) {
      const uint64_t identity = identity_bits(op, type).value();
      for (uint64_t x : {uint64_t(0), uint64_t(1), least_bits(type), greatest_bits(type)}) {
        EXPECT_EQ(eval(op, type, {identity, x}), x) << name_of(op) << type.name();
      }
    }
  }
  EXPECT_FALSE(identity_bits(Op::SUB, dtypes::int32));
}

// Random123's known answers for Threefry-2x32 with 20 rounds.
TEST(ScalarIntegers, ThreefryGivesTheKnownAnswers) {
  struct Answer {
    uint32_t counter[2], key[2], result[2];
  };
  constexpr Answer answers[] = {
      {{0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe}},
      {{0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x1cb996fc, 0xbb002be7}},
      {{0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}, {0xc4923a9c, 0x483df7a0}},
  };
  auto word = [](const uint32_t (&halves)[2]) { return uint64_t(halves[1]) << 32 | halves[0]; };
  for (const Answer& a : answers) {
    EXPECT_EQ(eval(Op::THREEFRY, dtypes::uint64, {word(a.counter), word(a.key)}), word(a.result));
  }
}

}  // namespace
}  // namespace weft
