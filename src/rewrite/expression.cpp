// Conditions and replacements: expressions over what a match bound.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/matcher.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {

constexpr size_t kMaxArity = 8;

const Cell* skip(const Cell* c) {
  const Cell* next = c + 1;
  for (int k = 0; k < c->arity; k++) next = skip(next);
  return next;
}

// Whether a cell of a condition is a truth value: a comparison, or and, or, not of such.
bool is_truth(const Cell& c) {
  constexpr OpSet logical = {Op::AND, Op::OR, Op::XOR, Op::NOT};
  if (c.kind != CellKind::kOp) return false;
  return yields_bool(c.op) || (logical.has(c.op) && is_truth(*(&c + 1)));
}

// Expressions over what a match bound.
class Expression {
 public:
  Expression(const Pattern& p, Match& m) : at_(p.begin()), m_(m) {}

  // The value of a condition or of what fold() encloses, in the dtype of its names. Empty where
  // exact arithmetic overflows or a bound is not known: then the rule does not apply.
  std::optional<uint64_t> evaluate(DType type) {
    const Cell& c = *at_++;
    switch (c.kind) {
      case CellKind::kLiteral: return bits_of_int(type, int64_t(c.value));
      case CellKind::kDouble: return bits_of_double(type, std::bit_cast<double>(c.value));
      case CellKind::kConst: return m_.constant(c.slot).bits();
      case CellKind::kLower:
      case CellKind::kUpper: {
        const Interval i = bounds(m_.node(c.slot));
        const int64_t end = c.kind == CellKind::kLower ? i.lo : i.hi;
        if (end == Interval::kLow || end == Interval::kHigh) return std::nullopt;
        return bits_of_int(type, end);
      }
      case CellKind::kOp: {
        std::array<uint64_t, kMaxArity> v{};
        for (size_t i = 0; i < c.arity; i++) {
          const std::optional<uint64_t> value = evaluate(type);
          if (!value) return std::nullopt;
          v[i] = *value;
        }
        const DType operand = is_truth(c) && !yields_bool(c.op) ? dtypes::bool_ : type;
        return evaluate_scalar(c.op, operand, operand, std::span(v.data(), c.arity));
      }
      default: return std::nullopt;
    }
  }
  std::optional<uint64_t> evaluate_here() { return evaluate(type_of(at_, m_.root().dtype())); }

  // The replacement, or null when a fold has no value.
  UOp build(DType type) {
    const Cell& c = *at_++;
    Arena& arena = m_.arena();
    auto constant = [&](DType t, uint64_t bits) {
      return arena.make(Op::CONST, t, {}, Arg::bits(bits));
    };
    switch (c.kind) {
      case CellKind::kNode:
      case CellKind::kNonConst: return m_.node(c.slot);
      case CellKind::kConst: return m_.constant(c.slot);
      case CellKind::kLiteral: return constant(type, bits_of_int(type, int64_t(c.value)));
      case CellKind::kDouble:
        return constant(type, bits_of_double(type, std::bit_cast<double>(c.value)));
      case CellKind::kFold: {
        const DType t = type_of(at_, type);
        const std::optional<uint64_t> value = evaluate(t);
        if (!value) return UOp();
        // a fold of comparisons is a bool; any other has the dtype of its names
        return type.is_bool() && !t.is_bool() ? constant(type, *value) : constant(t, *value);
      }
      case CellKind::kOp: return build_op(c, type);
      default: return UOp();
    }
  }

 private:
  UOp build_op(const Cell& c, DType type) {
    std::array<UOp, kMaxArity> srcs;
    const DType operand = yields_bool(c.op) ? operand_type(at_, c.arity) : type;
    for (size_t i = 0; i < c.arity; i++) {
      const bool is_condition = c.op == Op::WHERE && i == 0;
      srcs[i] = build(is_condition ? dtypes::bool_.vec(type.lanes) : operand);
      if (!srcs[i]) return UOp();
    }
    return m_.arena().make(c.op, type, std::span<const UOp>(srcs.data(), c.arity));
  }

  // The dtype of the first name below a comparison; else that of the operands of the node matched.
  DType operand_type(const Cell* first, int arity) const {
    const Cell* at = first;
    for (int i = 0; i < arity; i++, at = skip(at)) {
      const DType t = type_of(at, dtypes::void_);
      if (!t.is_void()) return t;
    }
    return m_.root().src(m_.root().src_count() - 1).dtype();
  }

  DType type_of(const Cell* c, DType otherwise) const {
    for (const Cell* last = skip(c); c < last; c++) {
      if (c->kind == CellKind::kConst) return m_.constant(c->slot).dtype();
      if (c->slot != kNoSlot && c->kind != CellKind::kRest) return m_.node(c->slot).dtype();
    }
    return otherwise;
  }

  const Cell* at_;
  Match& m_;
};

}  // namespace

UOp build_replacement(Match& m) { return Expression(m.rule().rhs, m).build(m.root().dtype()); }

bool condition_holds(Match& m) {
  const Rule& rule = m.rule();
  if (!rule.cond.empty() && Expression(rule.cond, m).evaluate_here().value_or(0) == 0) return false;
  return rule.test == nullptr || rule.test(m);
}

}  // namespace weft
