// A random expression means the same after simplifying, simplifying it again changes nothing, and
// no node ever leaves its bounds.
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "symbolic/simplify.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_expression.h"

namespace {

using namespace weft;

std::string show(UOp n, std::optional<uint64_t> bits) {
  return bits ? text_of_bits(n.dtype(), *bits) : std::string("overflow");
}

void check_bounds(UOp n, uint64_t bits) {
  if (!n.dtype().is_int() && !n.dtype().is_bool()) return;
  const Interval i = bounds(n);
  const bool past_int64 = n.dtype().scalar == Scalar::kUInt64 && int64_t(bits) < 0;
  const bool inside = past_int64 ? i.hi == Interval::kHigh : i.has(int64_t(bits));
  if (!inside) {
    throw std::runtime_error(fmt::format("{} is {}, outside its bounds {}..{}", short_form(n),
                                         show(n, bits), i.lo, i.hi));
  }
}

}  // namespace

void fuzz_one(weft::fuzz::Choices& choices) {
  Arena arena;
  fuzz::RandomExpression generator(arena, choices);
  const UOp before = generator.any();
  const UOp after = simplify(before);
  auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("{}\nbefore: {}\nafter:  {}\n{}", why,
                                         short_form(before, 2000), short_form(after, 2000),
                                         print(before)));
  };
  if (after.dtype() != before.dtype()) fail("simplifying changed the dtype");
  if (const UOp again = simplify(after); again != after) {
    fail(fmt::format("simplifying again gives {}", short_form(again, 2000)));
  }
  for (int i = 0; i < 6; i++) {
    fuzz::Point point(choices);
    auto values = fuzz::values_at(before, point);
    for (const auto& [n, bits] : values) {
      if (bits) check_bounds(n, *bits);
    }
    const std::optional<uint64_t> expected = values.at(before);
    const std::optional<uint64_t> got = fuzz::values_at(after, point).at(after);
    if (expected && (!got || !fuzz::same_value(before.dtype(), *expected, *got))) {
      fail(fmt::format("the value was {} and is now {}", show(before, expected), show(after, got)));
    }
  }
}
