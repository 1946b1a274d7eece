// Division and remainder by constants are exact for every numerator within its bounds, and need no
// division where the product fits.
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/decompose.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/walk.h"
#include "tests/unit/decompose_helpers.h"

namespace weft::test {
namespace {

constexpr Op kDivisions[] = {Op::IDIV, Op::MOD, Op::CDIV, Op::CMOD};

size_t count_divisions(UOp root) {
  size_t count = 0;
  for (UOp n : toposort(root)) {
    for (const Op op : kDivisions) count += n.is(op) ? 1 : 0;
  }
  return count;
}

// (x & mask) - below, an element x: from -below to mask - below.
struct Numerator {
  UOp leaf, node;
};
Numerator numerator(Arena& arena, DType type, uint64_t mask, uint64_t below) {
  const UOp leaf = define_global(arena, type, 0);
  const UOp low = leaf & constant_bits(arena, type, bits_of_uint(type, mask));
  return {leaf, below == 0 ? low : low - constant_bits(arena, type, bits_of_uint(type, below))};
}

uint64_t value_of(UOp root, DType type, uint64_t x) {
  Bindings bindings;
  bindings.buffers[0] = Array::of_bits(type, {1}, {bits_of_uint(type, x)});
  return evaluate(root, bindings).at(0).data.at(0);
}

void expect_exact(Op op, DType type, uint64_t mask, uint64_t below, uint64_t c,
                  std::mt19937_64& random) {
  Arena arena;
  const auto [leaf, node] = numerator(arena, type, mask, below);
  const UOp divided = binary(op, node, constant_bits(arena, type, bits_of_uint(type, c)));
  const UOp after = decompose(divided, bare_target());
  std::vector<uint64_t> inputs = {0, 1, mask, mask - 1, below, below - 1, below + 1};
  for (int i = 0; i < 24; i++) {
    const uint64_t multiple = c == 0 ? random() : random() % (mask / c + 1) * c;
    inputs.insert(inputs.end(), {multiple + below, multiple + below - 1, random()});
  }
  for (const uint64_t x : inputs) {
    const uint64_t expected = value_of(divided, type, x), got = value_of(after, type, x);
    ASSERT_EQ(expected, got) << name_of(op) << " " << type.name() << " of " << (x & mask) << " - "
                             << below << " by " << c << ", bounds " << bounds(node).lo << " to "
                             << bounds(node).hi;
  }
}

TEST(DecomposeDivision, ByConstantsIsExact) {
  std::mt19937_64 random(3);
  for (const DType type : {dtypes::int8, dtypes::uint8, dtypes::int16, dtypes::uint16,
                           dtypes::int32, dtypes::uint32, dtypes::int64, dtypes::uint64}) {
    const uint64_t all = greatest_bits(type);
    for (int i = 0; i < 80; i++) {
      const uint64_t mask = all >> random() % uint64_t(type.bits() - 2);
      const uint64_t below =
          random() % 2 == 0 ? 0 : random() % (mask + (mask == ~uint64_t(0) ? 0 : 1));
      const uint64_t near = mask >> random() % 8;
      uint64_t c = random() % 3 == 0 ? uint64_t(1) << random() % 8 : random() % (near | 63) + 1;
      if (random() % 16 == 0) c = random() % 2 == 0 ? 0 : ~uint64_t(0) - random() % 7;
      for (const Op op : kDivisions) {
        expect_exact(op, type, mask, below, c & all, random);
        if (type.is_signed()) expect_exact(op, type, mask, below, c, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(DecomposeDivision, IsShortWhereBoundsAllow) {
  struct Case {
    DType type;
    uint64_t mask, below, c;
    bool is_short;
  };
  const Case cases[] = {
      {dtypes::int32, 0x3fff, 0, 7, true},         {dtypes::int32, 0x3fff, 100, 7, true},
      {dtypes::int32, 0x7fffffff, 0, 7, false},    {dtypes::int32, 0x7fffffff, 0, 64, true},
      {dtypes::int64, 0x7fffffff, 0, 7, true},     {dtypes::int64, 0x7fffffff, 1000, 1000, true},
      {dtypes::uint64, 0xffffffff, 0, 10, true},   {dtypes::uint64, ~uint64_t(0), 0, 10, false},
      {dtypes::uint32, 0xffffffff, 0, 4096, true}, {dtypes::int64, ~uint64_t(0) >> 1, 5, 8, true},
  };
  for (const Case& k : cases) {
    for (const Op op : kDivisions) {
      Arena arena;
      const UOp node = numerator(arena, k.type, k.mask, k.below).node;
      const UOp divided = binary(op, node, constant_bits(arena, k.type, k.c));
      EXPECT_EQ(count_divisions(decompose(divided, bare_target())) == 0, k.is_short)
          << name_of(op) << " " << k.type.name() << " up to " << k.mask << " by " << k.c;
    }
  }
}

// Where there is no short form, a numerator that is never negative is divided as unsigned.
TEST(DecomposeDivision, KnowsWhatIsNotNegative) {
  Arena arena;
  const UOp node = numerator(arena, dtypes::int32, 0x7fffffff, 0).node;
  for (UOp n : toposort(decompose(node / 7, bare_target()))) {
    if (n.is(Op::CDIV)) {
      EXPECT_EQ(n.dtype(), dtypes::uint32);
    }
  }
}

// A numerator that may be anything is divided once, whatever is asked for.
TEST(DecomposeDivision, SharesOneDivision) {
  Arena arena;
  const UOp x = define_global(arena, dtypes::int32, 0), y = define_global(arena, dtypes::int32, 1);
  const UOp after = decompose(x / y + x % y, bare_target());
  EXPECT_EQ(count_divisions(after), 1U);
  EXPECT_EQ(count_divisions(decompose(x / 7 + x % 7, bare_target())), 1U);
}

}  // namespace
}  // namespace weft::test
