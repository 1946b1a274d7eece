// Integer division and remainder: by constants as shifts and multiplications, rounded down from
// rounded towards zero.
//
// For 0 <= n <= N and c > 0, with m = ceil(2^s / c) and e = m c - 2^s:
//
//   n // c == n m >> s     when N e < 2^s
//
// The least such s is taken, and the form is used when n m fits into the dtype of n: the bounds of
// n decide. A signed n that may be negative is n ^ t first, where t is 0 or -1 with its sign: n //
// c == ((n ^ t) // c) ^ t.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "codegen/decompose_rules.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {
using namespace names;

__extension__ using Wide = unsigned __int128;

struct Magic {
  uint64_t multiplier;
  int shift;
};

// For all n up to `most`, with products below 2^bits.
std::optional<Magic> find_magic(uint64_t most, uint64_t c, int bits) {
  for (int s = 0; s < 64; s++) {
    const Wide power = Wide(1) << s;
    const Wide m = (power + c - 1) / c, error = m * c - power;
    if (m * most >> bits != 0) return std::nullopt;
    if (Wide(most) * error < power) return Magic{uint64_t(m), s};
  }
  return std::nullopt;
}

// n // c for n from 0 to `most`; null when there is no short form.
UOp short_quotient(UOp n, uint64_t most, uint64_t c) {
  if (std::has_single_bit(c)) return shift_right(n, std::countr_zero(c));
  const int bits = n.dtype().bits() - (n.dtype().is_signed() ? 1 : 0);
  const std::optional<Magic> magic = find_magic(most, c, bits);
  if (!magic) return {};
  const UOp product = n * bits_like(n, magic->multiplier);
  return shift_right(product, magic->shift);
}

bool floors(Op op) { return op == Op::IDIV || op == Op::MOD; }
bool gives_quotient(Op op) { return op == Op::IDIV || op == Op::CDIV; }

// All ones where n is negative, else 0.
UOp sign_mask(UOp n) { return shift_right(n, n.dtype().bits() - 1); }

// The quotient of a signed n that may be negative; null when there is no short form.
UOp short_signed_quotient(Op op, UOp n, Interval range, uint64_t c) {
  if (floors(op) && std::has_single_bit(c)) return shift_right(n, std::countr_zero(c));
  const UOp mask = sign_mask(n);
  if (std::has_single_bit(c)) {  // towards zero: c - 1 more where n is negative
    return shift_right(n + (mask & bits_like(n, c - 1)), std::countr_zero(c));
  }
  if (range.lo == bounds_of(n.dtype()).lo) return {};
  const auto most = uint64_t(std::max(range.hi, floors(op) ? -(range.lo + 1) : -range.lo));
  const UOp flipped = bit_xor(n, mask);
  const UOp q = short_quotient(floors(op) ? flipped : flipped - mask, most, c);
  if (!q) return {};
  return floors(op) ? bit_xor(q, mask) : bit_xor(q, mask) - mask;
}

// The target's own division by a constant is shorter without signs.
UOp unsigned_quotient(UOp n, uint64_t c) {
  const UOp bits = bitcast(n, unsigned_of(n.dtype()));
  return bitcast(binary(Op::CDIV, bits, bits_like(bits, c)), n.dtype());
}

UOp quotient_by_constant(Op op, UOp n, uint64_t c) {
  const Interval range = bounds(n);
  if (range.lo < 0) return short_signed_quotient(op, n, range, c);
  // A bound that a uint64 may pass is none.
  const bool has_end = n.dtype().bits() < 64 || range.hi != Interval::kHigh;
  const UOp q = short_quotient(n, has_end ? uint64_t(range.hi) : ~uint64_t(0), c);
  return q || n.dtype().is_unsigned() ? q : unsigned_quotient(n, c);
}

UOp divide_by_constant(Match& m) {
  const UOp n = m[x], divisor = m[c0];
  const Op op = m.root().op();
  const uint64_t c = divisor.bits();
  if (c == 0) return gives_quotient(op) ? divisor : n;
  if (n.dtype().is_signed() && int64_t(c) < 0) return {};
  const bool is_mask = std::has_single_bit(c) && (floors(op) || bounds(n).lo >= 0);
  if (!gives_quotient(op) && is_mask) return n & bits_like(n, c - 1);
  const UOp q = quotient_by_constant(op, n, c);
  if (!q) return {};
  return gives_quotient(op) ? q : n - q * divisor;
}

// ------------------------------------------------------------------------ from rounded towards
// zero

UOp floor_by_constant(UOp n, UOp c) {
  const UOp mask = sign_mask(n);
  return bit_xor(unsigned_quotient(bit_xor(n, mask), c.bits()), mask);
}

// One less than rounded towards zero where a remainder is left whose sign is not the divisor's.
UOp floor_by_signs(UOp n, UOp divisor) {
  const UOp zero = bits_like(n, 0), q = binary(Op::CDIV, n, divisor), r = n - q * divisor;
  const UOp is_off = ((r < zero) & (zero < divisor)) | ((zero < r) & (divisor < zero));
  return where(is_off, q - bits_like(q, 1), q);
}

bool is_positive_constant(UOp c) { return c.is_const() && c.const_int() > 0; }

UOp floor_division(Match& m) {
  const UOp n = m[x], divisor = m[y];
  const bool is_quotient = m.root().is(Op::IDIV);
  const bool agree = n.dtype().is_unsigned() || (bounds(n).lo >= 0 && bounds(divisor).lo >= 0);
  if (agree) return binary(is_quotient ? Op::CDIV : Op::CMOD, n, divisor);
  const UOp q =
      is_positive_constant(divisor) ? floor_by_constant(n, divisor) : floor_by_signs(n, divisor);
  return is_quotient ? q : n - q * divisor;
}

UOp remainder_from_quotient(Match& m) {
  if (!m.context<Decomposition>().can(Op::CDIV, m[x].dtype())) return {};
  return m[x] - binary(Op::CDIV, m[x], m[y]) * m[y];
}

constexpr OpSet kDivisions = {Op::IDIV, Op::MOD, Op::CDIV, Op::CMOD};

// clang-format off
constexpr Rule kRules[] = {
    rule("divide-by-constant", op(kDivisions, x, c0),          divide_by_constant),
    rule("floor-division",     op({Op::IDIV, Op::MOD}, x, y),  floor_division).when(is_missing),
    rule("remainder",          op(Op::CMOD, x, y),             remainder_from_quotient).when(is_missing),
};
// clang-format on

constexpr RuleTable kTables[] = {{"division", kMachineInts, kRules}};

}  // namespace

std::span<const RuleTable> division_tables() { return kTables; }

}  // namespace weft
