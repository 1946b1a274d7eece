// Interval arithmetic over 64-bit ends that saturate to "no bound".
#include "ir/bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kLow = Interval::kLow, kHigh = Interval::kHigh;
__extension__ using Wide = __int128;

bool endless(int64_t v) { return v == kLow || v == kHigh; }

int64_t saturate(Wide v) {
  if (v <= kLow) return kLow;
  return v >= kHigh ? kHigh : int64_t(v);
}

Interval negate(Interval a) { return {a.hi == kHigh ? kLow : -a.hi, a.lo == kLow ? kHigh : -a.lo}; }

Interval add(Interval a, Interval b) {
  return {endless(a.lo) || endless(b.lo) ? kLow : saturate(Wide(a.lo) + b.lo),
          endless(a.hi) || endless(b.hi) ? kHigh : saturate(Wide(a.hi) + b.hi)};
}

// An end times an end, where no bound times 0 is 0.
Wide times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (endless(a) || endless(b)) return (a < 0) == (b < 0) ? Wide(kHigh) : Wide(kLow);
  return Wide(a) * b;
}

Interval hull(std::initializer_list<Wide> corners) {
  return {saturate(std::min(corners)), saturate(std::max(corners))};
}

Interval multiply(Interval a, Interval b) {
  return hull({times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)});
}

Interval unite(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

enum class Rounding : uint8_t { kFloor, kTruncate };

Wide quotient(int64_t a, int64_t b, Rounding r) {
  if (endless(a)) return (a < 0) == (b < 0) ? Wide(kHigh) : Wide(kLow);
  if (endless(b)) return r == Rounding::kFloor && a != 0 && (a < 0) != (b < 0) ? -1 : 0;
  return r == Rounding::kFloor ? floor_div(a, b) : Wide(a) / b;
}

// Both quotients are monotonic in each operand while the divisor keeps its sign.
Interval divide(Interval a, Interval b, Rounding r) {
  Interval out{kHigh, kLow};
  auto corners = [&](int64_t lo, int64_t hi) {
    out = unite(out, hull({quotient(a.lo, lo, r), quotient(a.lo, hi, r), quotient(a.hi, lo, r),
                           quotient(a.hi, hi, r)}));
  };
  if (b.hi > 0) corners(std::max<int64_t>(b.lo, 1), b.hi);
  if (b.lo < 0) corners(b.lo, std::min<int64_t>(b.hi, -1));
  if (b.has(0)) out = unite(out, {0, 0});  // x // 0 is 0
  return out;
}

// x % b for b in [lo, hi], lo > 0
Interval floor_mod_positive(Interval a, int64_t lo, int64_t hi) {
  if (a.lo >= 0 && a.hi < lo) return a;
  if (lo == hi && !endless(a.lo) && !endless(a.hi) && floor_div(a.lo, lo) == floor_div(a.hi, lo)) {
    const Wide base = floor_div(a.lo, lo) * lo;
    return {int64_t(a.lo - base), int64_t(a.hi - base)};
  }
  const int64_t most = hi == kHigh ? kHigh : hi - 1;
  return {0, a.lo >= 0 ? std::min(a.hi, most) : most};
}

Interval floor_mod(Interval a, Interval b) {
  Interval out{kHigh, kLow};
  if (b.hi > 0) out = unite(out, floor_mod_positive(a, std::max<int64_t>(b.lo, 1), b.hi));
  if (b.lo < 0) {  // x % -b == -(-x % b)
    const int64_t least = b.lo == kLow ? kHigh : -b.lo;
    out = unite(out, negate(floor_mod_positive(negate(a), -std::min<int64_t>(b.hi, -1), least)));
  }
  if (b.has(0)) out = unite(out, a);  // x % 0 is x
  return out;
}

Interval truncated_mod(Interval a, Interval b) {
  if (b.has(0)) return unite(a, {std::min<int64_t>(a.lo, 0), std::max<int64_t>(a.hi, 0)});
  const Wide lo = b.lo < 0 ? -Wide(b.lo) : Wide(b.lo), hi = b.hi < 0 ? -Wide(b.hi) : Wide(b.hi);
  const bool no_end = endless(b.lo) || endless(b.hi);
  const int64_t most = no_end ? kHigh : saturate(std::max(lo, hi) - 1);
  return {a.lo < 0 ? std::max(a.lo, most == kHigh ? kLow : -most) : 0,
          a.hi > 0 ? std::min(a.hi, most) : 0};
}

Interval shift(Op op, Interval a, Interval b, int width) {
  if (!b.is_constant()) {
    if (op == Op::SHR && a.lo >= 0) return {0, a.hi};
    return {};
  }
  if (b.lo < 0 || b.lo >= width) return {0, 0};
  if (b.lo >= 63) {  // the sign, or the first bit of a uint64
    if (op == Op::SHL) return {};
    return {a.lo < 0 ? -1 : 0, a.hi < 0 ? -1 : a.hi == kHigh && a.lo >= 0 ? 1 : 0};
  }
  const int64_t power = int64_t(1) << b.lo;
  return op == Op::SHL ? multiply(a, {power, power}) : divide(a, {power, power}, Rounding::kFloor);
}

// x ^ mask, where mask is 0 or -1: x or ~x.
Interval flip(Interval x, Interval mask) {
  const Interval flipped = add(negate(x), {-1, -1});
  return mask.hi < 0 ? flipped : mask.lo == 0 ? x : unite(x, flipped);
}

// The values of AND, OR and XOR: they have no more bits than both operands, of which a signed one
// has its sign in all others.
Interval bitwise(Op op, Interval a, Interval b) {
  const bool is_negative = a.lo < 0 || b.lo < 0;
  if (op == Op::XOR && a.within({-1, 0})) return flip(b, a);
  if (op == Op::XOR && b.within({-1, 0})) return flip(a, b);
  if (op == Op::AND && !(a.lo < 0 && b.lo < 0)) {
    return {0, std::min(a.lo >= 0 ? a.hi : kHigh, b.lo >= 0 ? b.hi : kHigh)};
  }
  uint64_t ones = 0;
  for (const int64_t end : {a.lo, a.hi, b.lo, b.hi}) ones |= uint64_t(end < 0 ? ~end : end);
  for (int s = 1; s < 64; s *= 2) ones |= ones >> s;
  const auto most = int64_t(ones);
  if (op == Op::AND && a.hi < 0 && b.hi < 0) return {-most - 1, std::min(a.hi, b.hi)};
  if (op == Op::OR && (a.hi < 0 || b.hi < 0)) return {-most - 1, -1};
  if (is_negative) return {-most - 1, most};
  return {op == Op::OR ? std::max(a.lo, b.lo) : 0, most};
}

Interval compare(Op op, Interval a, Interval b) {
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  const bool same = a.is_constant() && a == b;
  // The ends of int64 may stand for larger numbers: only real ends decide.
  auto below = [](int64_t x, int64_t y) { return x < y || (x == y && !endless(x)); };
  switch (op) {
    case Op::CMPLT:
      if (a.hi < b.lo) return {1, 1};
      return below(b.hi, a.lo) ? Interval{0, 0} : Interval{0, 1};
    case Op::CMPEQ: return apart ? Interval{0, 0} : same ? Interval{1, 1} : Interval{0, 1};
    default: return apart ? Interval{1, 1} : same ? Interval{0, 0} : Interval{0, 1};
  }
}

Interval logical(Op op, Interval a, Interval b) {
  switch (op) {
    case Op::AND:
    case Op::MUL:
    case Op::MIN: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Op::OR:
    case Op::ADD:
    case Op::MAX: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default: return {0, 1};
  }
}

struct BoundsTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kBounds;
  static constexpr Interval kUnknown{1, 0};  // lo above hi: not computed yet
  HugeVector<Interval> of;

  bool known(UOp n) const { return n.id() < of.size() && of[n.id()] != kUnknown; }
  size_t bytes() const override { return of.capacity() * sizeof(Interval); }
  void put(UOp n, Interval i) {
    if (n.id() >= of.size())
      of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2), kUnknown);
    of[n.id()] = i;
  }
};

Interval exact(UOp n, const BoundsTable& t) {
  if (n.src_count() < info(n.op()).least_sources) return bounds_of(n.dtype());
  auto src = [&](size_t i) { return t.of[n.src(i).id()]; };
  const DType operand = n.src_count() > 0 ? n.src(n.src_count() - 1).dtype() : n.dtype();
  if (operand.is_float() || operand.is_void()) return bounds_of(n.dtype());
  if (operand.is_bool() && info(n.op()).group == OpGroup::Binary && !yields_bool(n.op())) {
    return logical(n.op(), src(0), src(1));
  }
  switch (n.op()) {
    case Op::CONST:
      if (n.dtype().scalar == Scalar::kUInt64 && int64_t(n.bits()) < 0) return {kHigh, kHigh};
      return {n.const_int(), n.const_int()};
    case Op::VARIABLE: return {src(0).lo, src(1).hi};
    case Op::RANGE:
    case Op::SPECIAL: return {0, std::max<int64_t>(src(0).hi == kHigh ? kHigh : src(0).hi - 1, 0)};
    case Op::BIND:
    case Op::GEP: return src(n.is(Op::BIND) ? 1 : 0);
    case Op::AFTER: return src(0);
    case Op::VECTORIZE: {
      Interval all = src(0);
      for (size_t i = 1; i < n.src_count(); i++) all = unite(all, src(i));
      return all;
    }
    case Op::CAST: return src(0);
    case Op::NEG: return negate(src(0));
    case Op::NOT:
      return operand.is_bool()     ? Interval{1 - src(0).hi, 1 - src(0).lo}
             : operand.is_signed() ? add(negate(src(0)), {-1, -1})
                                   : bounds_of(n.dtype());
    case Op::ADD: return add(src(0), src(1));
    case Op::SUB: return add(src(0), negate(src(1)));
    case Op::MUL: return multiply(src(0), src(1));
    case Op::MULACC: return add(multiply(src(0), src(1)), src(2));
    case Op::IDIV: return divide(src(0), src(1), Rounding::kFloor);
    case Op::CDIV: return divide(src(0), src(1), Rounding::kTruncate);
    case Op::MOD: return floor_mod(src(0), src(1));
    case Op::CMOD: return truncated_mod(src(0), src(1));
    case Op::MAX: return {std::max(src(0).lo, src(1).lo), std::max(src(0).hi, src(1).hi)};
    case Op::MIN: return {std::min(src(0).lo, src(1).lo), std::min(src(0).hi, src(1).hi)};
    case Op::AND:
    case Op::OR:
    case Op::XOR: return bitwise(n.op(), src(0), src(1));
    case Op::SHL:
    case Op::SHR: return shift(n.op(), src(0), src(1), n.dtype().bits());
    case Op::CMPLT:
    case Op::CMPEQ:
    case Op::CMPNE: return compare(n.op(), src(0), src(1));
    case Op::WHERE:
      if (src(0).is_constant()) return src(0).lo != 0 ? src(1) : src(2);
      return unite(src(1), src(2));
    default: return bounds_of(n.dtype());
  }
}

// Only a lower end may say "no bound below" and only an upper one "no bound above".
Interval plain_ends(Interval i) { return {std::min(i.lo, kHigh - 1), std::max(i.hi, kLow + 1)}; }

// A result past its dtype wraps, and may then be anything.
Interval wrapped(UOp n, Interval i) {
  if (n.dtype().is_float() || n.dtype().is_void() || n.dtype().is_pointer()) return {};
  if (n.dtype().is_index()) return i;
  // In 64 bits an end that saturated may have wrapped around instead.
  constexpr OpSet can_overflow = {Op::ADD,  Op::SUB, Op::MUL,    Op::NEG, Op::IDIV,
                                  Op::CDIV, Op::SHL, Op::MULACC, Op::CAST};
  const bool overflowed =
      n.dtype().bits() == 64 && can_overflow.has(n.op()) && (endless(i.lo) || endless(i.hi));
  const Interval all = bounds_of(n.dtype());
  return !overflowed && i.within(all) && i.lo <= i.hi ? i : all;
}

}  // namespace

Interval bounds_of(DType type) {
  if (type.is_float() || type.is_void() || type.is_index()) return {};
  if (type.scalar == Scalar::kUInt64) return {0, kHigh};
  return {int64_t(least_bits(type)), int64_t(greatest_bits(type))};
}

Interval bounds(UOp root) {
  auto& table = root.arena().facts<BoundsTable>();
  visit_missing(
      root, [&](UOp n) { return table.known(n); },
      [&](UOp n) { table.put(n, plain_ends(wrapped(n, exact(n, table)))); });
  return table.of[root.id()];
}

}  // namespace weft
