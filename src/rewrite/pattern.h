// Patterns: small constexpr expression trees that the matcher, the printer and the prover all read.
//
//   (x + c0) + c1                         operators build op cells; c0..c3 match constants
//   x * 0,  literal(-0.0)                 numbers match a constant of that value
//   op(Op::SINK, rest)                    any number of sources
//   op({Op::ADD, Op::MUL}, x, y)          a set of ops
//   either(x % c0, x)                     alternatives, tried in order
//   as(w, x + y)                          w is the node that x + y matched
//   x.of(kFloats)                         only these dtypes
//   (x + y).of(kFloats)
//
// A name that occurs twice must match the same node. Sources of commutative ops match in both
// orders, also when a condition fails on the first.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ir/dtype.h"
#include "ir/op.h"

namespace weft {

// A set of scalar dtypes.
using DTypeSet = uint32_t;
constexpr DTypeSet set_of(Scalar s) { return DTypeSet(1) << unsigned(s); }
inline constexpr DTypeSet kIndexes = set_of(Scalar::kIndex);
inline constexpr DTypeSet kBools = set_of(Scalar::kBool);
inline constexpr DTypeSet kSignedInts = set_of(Scalar::kInt8) | set_of(Scalar::kInt16) |
                                        set_of(Scalar::kInt32) | set_of(Scalar::kInt64);
inline constexpr DTypeSet kUnsignedInts = set_of(Scalar::kUInt8) | set_of(Scalar::kUInt16) |
                                          set_of(Scalar::kUInt32) | set_of(Scalar::kUInt64);
inline constexpr DTypeSet kMachineInts = kSignedInts | kUnsignedInts;  // these wrap
inline constexpr DTypeSet kIntegers = kMachineInts | kIndexes;
inline constexpr DTypeSet kFloats = set_of(Scalar::kFloat8E4M3) | set_of(Scalar::kFloat8E5M2) |
                                    set_of(Scalar::kFloat16) | set_of(Scalar::kBFloat16) |
                                    set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);
inline constexpr DTypeSet kAnyDType = ~DTypeSet(0);

enum class CellKind : uint8_t {
  kNode,      // any node
  kNonConst,  // any node but a constant
  kConst,     // a constant
  kLiteral,   // the constant `value`
  kDouble,    // the float constant whose double has the bits `value`
  kOp,        // a node of this op
  kOpSet,     // a node of one of these ops
  kRest,      // all further sources
  kEither,    // the first of two patterns, or the second
  kFold,      // in a replacement: the value of the expression, computed now
  kLower,     // in a condition: a proven lower bound of a node
  kUpper,     // and an upper one
};

inline constexpr uint8_t kNoSlot = 255;

struct Cell {
  CellKind kind = CellKind::kLiteral;
  uint8_t slot = kNoSlot;  // which name
  uint8_t arity = 0;       // patterns below this one
  bool bound = false;      // an earlier cell has bound this name
  Op op{};
  DTypeSet dtypes = kAnyDType;
  uint64_t value = 0;
  OpSet ops{};
};

inline constexpr size_t kMaxCells = 18;
inline constexpr size_t kMaxNodeNames = 6;
inline constexpr size_t kMaxConstNames = 4;

// Cells in pre-order.
struct Pattern {
  std::array<Cell, kMaxCells> cells{};
  uint8_t size = 0;
  uint32_t binds = 0;  // names: nodes from bit 0, constants from bit 8, rest at bit 16

  constexpr Pattern() = default;
  constexpr Pattern(int literal) {  // NOLINT: a number is a pattern
    push({.kind = CellKind::kLiteral, .value = uint64_t(int64_t(literal))});
  }

  constexpr const Cell& root() const { return cells[0]; }
  constexpr const Cell* begin() const { return cells.data(); }
  constexpr bool empty() const { return size == 0; }
  // The cell after the subtree at i.
  constexpr size_t skip(size_t i) const {
    size_t next = i + 1;
    for (int k = 0; k < cells[i].arity; k++) next = skip(next);
    return next;
  }
  // Only nodes of these dtypes.
  constexpr Pattern of(DTypeSet dtypes) const {
    Pattern p = *this;
    p.cells[0].dtypes = dtypes;
    return p;
  }

  constexpr void push(Cell c) {
    if (size == kMaxCells) throw "this pattern is too large: raise kMaxCells";
    const uint32_t name = name_bit(c);
    c.bound = (binds & name) != 0;
    binds |= name;
    cells[size++] = c;
  }
  // The subtree of p at i, its names bound anew; returns the cell after it.
  constexpr size_t append(const Pattern& p, size_t i = 0) {
    const Cell& c = p.cells[i];
    push(c);
    size_t next = i + 1;
    if (c.kind != CellKind::kEither) {
      for (int k = 0; k < c.arity; k++) next = append(p, next);
      return next;
    }
    // Each alternative starts from what was bound before both; only what both bind is bound after.
    const uint32_t before = binds;
    next = append(p, next);
    const uint32_t first = binds;
    binds = before;
    next = append(p, next);
    binds &= first;
    return next;
  }

 private:
  static constexpr uint32_t name_bit(const Cell& c) {
    switch (c.kind) {
      case CellKind::kConst: return 1u << (8 + c.slot);
      case CellKind::kRest: return 1u << 16;
      case CellKind::kLower:
      case CellKind::kUpper: return 1u << c.slot;
      default: return c.slot == kNoSlot ? 0 : 1u << c.slot;
    }
  }
};

constexpr bool has_two_orders(const Cell& c) {
  return c.kind == CellKind::kOp && c.arity == 2 && commutes(c.op);
}

// ---- names

struct NodeName : Pattern {
  constexpr explicit NodeName(uint8_t slot) { push({.kind = CellKind::kNode, .slot = slot}); }
  constexpr size_t slot() const { return root().slot; }
};
struct ConstName : Pattern {
  constexpr explicit ConstName(uint8_t slot) { push({.kind = CellKind::kConst, .slot = slot}); }
  constexpr size_t slot() const { return root().slot; }
};
struct RestName : Pattern {
  constexpr RestName() { push({.kind = CellKind::kRest}); }
};

namespace names {  // `using namespace names;` at the top of a rules file
inline constexpr NodeName x{0}, y{1}, z{2}, w{3}, u{4}, v{5};
inline constexpr ConstName c0{0}, c1{1}, c2{2}, c3{3};
inline constexpr RestName rest;
}  // namespace names

// ---- ops

template <class... P>
constexpr Pattern op(OpSet ops, const P&... srcs);

template <class... P>
constexpr Pattern op(Op o, const P&... srcs) {
  // With any number of sources there are no two orders: an op set has none.
  if constexpr ((std::is_same_v<P, RestName> || ...)) return op(OpSet{o}, srcs...);
  Pattern p;
  p.push({.kind = CellKind::kOp, .arity = sizeof...(P), .op = o});
  (p.append(Pattern(srcs)), ...);
  return p;
}
template <class... P>
constexpr Pattern op(OpSet ops, const P&... srcs) {
  Pattern p;
  p.push({.kind = CellKind::kOpSet, .arity = sizeof...(P), .ops = ops});
  (p.append(Pattern(srcs)), ...);
  return p;
}
constexpr Pattern operator+(const Pattern& a, const Pattern& b) { return op(Op::ADD, a, b); }
constexpr Pattern operator-(const Pattern& a, const Pattern& b) { return op(Op::SUB, a, b); }
constexpr Pattern operator*(const Pattern& a, const Pattern& b) { return op(Op::MUL, a, b); }
constexpr Pattern operator/(const Pattern& a, const Pattern& b) { return op(Op::IDIV, a, b); }
constexpr Pattern operator%(const Pattern& a, const Pattern& b) { return op(Op::MOD, a, b); }
constexpr Pattern operator<(const Pattern& a, const Pattern& b) { return op(Op::CMPLT, a, b); }
constexpr Pattern operator>(const Pattern& a, const Pattern& b) { return op(Op::CMPLT, b, a); }
constexpr Pattern operator==(const Pattern& a, const Pattern& b) { return op(Op::CMPEQ, a, b); }
constexpr Pattern operator!=(const Pattern& a, const Pattern& b) { return op(Op::CMPNE, a, b); }
constexpr Pattern operator&(const Pattern& a, const Pattern& b) { return op(Op::AND, a, b); }
constexpr Pattern operator|(const Pattern& a, const Pattern& b) { return op(Op::OR, a, b); }
constexpr Pattern operator^(const Pattern& a, const Pattern& b) { return op(Op::XOR, a, b); }
constexpr Pattern operator<<(const Pattern& a, const Pattern& b) { return op(Op::SHL, a, b); }
constexpr Pattern operator>>(const Pattern& a, const Pattern& b) { return op(Op::SHR, a, b); }
constexpr Pattern operator-(const Pattern& a) { return op(Op::NEG, a); }
constexpr Pattern operator!(const Pattern& a) { return op(Op::NOT, a); }
constexpr Pattern operator&&(const Pattern& a, const Pattern& b) { return op(Op::AND, a, b); }
constexpr Pattern operator||(const Pattern& a, const Pattern& b) { return op(Op::OR, a, b); }
constexpr Pattern fdiv(const Pattern& a, const Pattern& b) { return op(Op::FDIV, a, b); }
constexpr Pattern max(const Pattern& a, const Pattern& b) { return op(Op::MAX, a, b); }
constexpr Pattern min(const Pattern& a, const Pattern& b) { return op(Op::MIN, a, b); }
constexpr Pattern where(const Pattern& c, const Pattern& t, const Pattern& f) {
  return op(Op::WHERE, c, t, f);
}

// ---- the rest of the language

constexpr Pattern literal(double value) {
  Pattern p;
  p.push({.kind = CellKind::kDouble, .value = std::bit_cast<uint64_t>(value)});
  return p;
}
constexpr Pattern either(const Pattern& a, const Pattern& b) {
  Pattern joined;  // a cell of arity 2 and both subtrees; append() sorts out what they bind
  joined.push({.kind = CellKind::kEither, .arity = 2});
  for (const Pattern* p : {&a, &b}) {
    for (size_t i = 0; i < p->size; i++) joined.push(p->cells[i]);
  }
  Pattern p;
  p.append(joined);
  return p;
}
constexpr Pattern as(const NodeName& name, const Pattern& pattern) {
  Pattern p = pattern;
  if (p.cells[0].kind != CellKind::kOp && p.cells[0].kind != CellKind::kOpSet) {
    throw "as(name, pattern) names a node of an op";
  }
  p.cells[0].slot = uint8_t(name.slot());
  Pattern out;
  out.append(p);
  return out;
}
constexpr Pattern fold(const Pattern& expression) {
  Pattern p;
  p.push({.kind = CellKind::kFold, .arity = 1});
  p.append(expression);
  return p;
}
namespace detail {
constexpr Pattern wrap(CellKind kind, const NodeName& n) {
  Pattern p;
  p.push({.kind = kind, .slot = uint8_t(n.slot())});
  return p;
}
}  // namespace detail
constexpr Pattern nonconst(const NodeName& n) { return detail::wrap(CellKind::kNonConst, n); }
constexpr Pattern lower(const NodeName& n) { return detail::wrap(CellKind::kLower, n); }
constexpr Pattern upper(const NodeName& n) { return detail::wrap(CellKind::kUpper, n); }

}  // namespace weft
