// THREEFRY: Threefry-2x32 with 20 rounds, in uint32.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codegen/decompose_rules.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr uint32_t kParity = 0x1BD11BDA;
constexpr size_t kGroups = 5;  // of 4 rounds each, with a key added after each

UOp rotated(UOp word, int by) { return shift_left(word, by) | shift_right(word, 32 - by); }

struct Words {
  UOp low, high;
};
Words split(UOp wide) {
  const DType type = like(wide.dtype(), dtypes::uint32);
  return {cast(wide, type), cast(shift_right(wide, 32), type)};
}

UOp threefry(Match& m) {
  const Words counter = split(m[x]), key = split(m[y]);
  const UOp parity = bits_like(key.low, kParity);
  const std::array<UOp, 3> keys = {key.low, key.high, bit_xor(bit_xor(key.low, key.high), parity)};
  UOp low = counter.low + keys[0], high = counter.high + keys[1];
  for (size_t group = 0; group < kGroups; group++) {
    for (const int rotation : kRotations[group % 2]) {
      low = low + high;
      high = bit_xor(rotated(high, rotation), low);
    }
    low = low + keys[(group + 1) % 3];
    high = high + (keys[(group + 2) % 3] + bits_like(high, group + 1));
  }
  const DType wide = m.root().dtype();
  return shift_left(cast(high, wide), 32) | cast(low, wide);
}

// clang-format off
constexpr Rule kRules[] = {
    rule("threefry", op(Op::THREEFRY, x, y), threefry).when(is_missing),
};
// clang-format on

constexpr RuleTable kTables[] = {{"random", set_of(Scalar::kUInt64), kRules}};

}  // namespace

std::span<const RuleTable> random_tables() { return kTables; }

}  // namespace weft
