// Compiling patterns to steps, and running them.
//
// Where a commutative node, or an alternative, leaves two ways open, the way taken is a decision;
// when the match or its condition fails, the last decision that had another way is changed and the
// steps run again.
#include "rewrite/matcher.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"

namespace weft {
namespace {

constexpr uint64_t kAll = ~uint64_t(0);

// Hashed ops that a cell can match.
uint64_t ops_of(const Pattern& p, size_t at) {
  const Cell& c = p.cells[at];
  switch (c.kind) {
    case CellKind::kConst:
    case CellKind::kLiteral:
    case CellKind::kDouble: return src_bit(Op::CONST);
    case CellKind::kOp: return src_bit(c.op);
    case CellKind::kOpSet: {
      uint64_t bits = 0;
      for (size_t o = 0; o < kOpCount; o++) bits |= c.ops.has(Op(o)) ? src_bit(Op(o)) : 0;
      return bits;
    }
    case CellKind::kEither: return ops_of(p, at + 1) | ops_of(p, p.skip(at + 1));
    default: return kAll;
  }
}

}  // namespace

MatchProgram::MatchProgram(const Rule& rule) : rule_(&rule) {
  compile(rule.lhs, 0);
  emit({0, Do::kDone, {}, kNoSlot, 0, false, false, 0});
}

// Emits the steps of the subtree at `at`; returns the cell after it.
size_t MatchProgram::compile(const Pattern& p, size_t at) {
  const Cell& c = p.cells[at];
  Step step{kAll, Do::kBind, c.op, c.slot, c.arity, c.bound, false, 0};
  if (c.dtypes != kAnyDType) {
    emit({0, Do::kCheckDType, {}, kNoSlot, 0, false, false, c.dtypes});
  }
  switch (c.kind) {
    case CellKind::kNonConst: step.data = 1; break;
    case CellKind::kConst: step.what = Do::kBindConst; break;
    case CellKind::kLiteral:
    case CellKind::kDouble:
      step.what = c.kind == CellKind::kLiteral ? Do::kLiteral : Do::kDouble;
      step.data = uint32_t(values_.size());
      values_.push_back(c.value);
      break;
    case CellKind::kOp:
      step.what = has_two_orders(c) ? Do::kEitherOrder : Do::kSources;
      if (has_two_orders(c)) {
        step.next_ops = ops_of(p, p.skip(at + 1));
        // the ops of the first source are looked at here too, before going down
        step.data = uint32_t(values_.size());
        values_.push_back(ops_of(p, at + 1));
      }
      break;
    case CellKind::kOpSet:
      step.what = Do::kInSet;
      step.data = uint32_t(sets_.size());
      sets_.push_back(c.ops);
      break;
    case CellKind::kEither: {
      step.what = Do::kEither;
      const size_t head = steps_.size();
      emit(step);
      const size_t second = compile(p, at + 1);
      const size_t jump = steps_.size();
      emit({0, Do::kJump, {}, kNoSlot, 0, false, false, 0});
      steps_[head].data = uint32_t(steps_.size());
      const size_t after = compile(p, second);
      steps_[jump].data = uint32_t(steps_.size());
      return after;
    }
    default: break;
  }
  if (step.what == Do::kBind && step.slot == kNoSlot) {
    throw InternalError("a pattern has a node without a name");
  }
  size_t next = at + 1;
  const size_t here = steps_.size();
  emit(step);
  for (int k = 0; k < c.arity; k++) {
    if (p.cells[next].kind == CellKind::kRest) {
      steps_[here].has_rest = true;
      next++;
    } else {
      next = compile(p, next);
    }
  }
  return next;
}

MatchProgram::Need MatchProgram::need_of_source(size_t i) const {
  const Pattern& p = rule_->lhs;
  if (i >= p.root().arity) return {};
  size_t at = 1;
  for (size_t k = 0; k < i; k++) at = p.skip(at);
  const Cell& c = p.cells[at];
  if (c.kind == CellKind::kRest) return {};
  Need need{ops_of(p, at), 0};
  if (c.kind != CellKind::kOp) return need;
  for (size_t k = 0, below = at + 1; k < c.arity; k++, below = p.skip(below)) {
    const uint64_t ops = ops_of(p, below);
    if (std::popcount(ops) == 1) need.below |= ops;
  }
  return need;
}

MatchProgram::Glance MatchProgram::glance() const {
  const Pattern& p = rule_->lhs;
  const bool in_order = p.root().kind == CellKind::kOp;
  if (!in_order || p.root().arity < 2) return {};
  const size_t second = p.skip(1);
  if (p.cells[second].kind == CellKind::kRest) return {};
  auto is_name = [&](size_t i) {
    return p.cells[i].kind == CellKind::kNode || p.cells[i].kind == CellKind::kNonConst;
  };
  if (p.root().arity == 2 && is_name(1) && is_name(second) && p.cells[second].bound) {
    return {.what = Glance::What::kSameSources};
  }
  // Small numbers have the same bits in every dtype that is no float.
  for (const size_t i : {size_t(1), second}) {
    if (p.cells[i].kind == CellKind::kLiteral && int64_t(p.cells[i].value) >= 0) {
      return {.what = Glance::What::kLiteral, .value = p.cells[i].value};
    }
  }
  return {};
}

class MatchProgram::Run {
 public:
  Run(const MatchProgram& program, uint32_t decisions) : program_(program), decisions_(decisions) {}

  // Nodes still to come. Not initialised: most matches end after a step or two.
  class Waiting {
   public:
    void push(UOp n) { nodes_[top_++] = n.node(); }
    UOp pop() { return UOp(nodes_[--top_]); }

   private:
    const Node* nodes_[kMaxCells];
    size_t top_ = 0;
  };

  uint32_t decided() const { return decided_; }

  bool match(UOp n, Match& m) {
    Waiting waiting;
    waiting.push(UOp());  // what is left after the last node
    for (const Step* s = program_.steps_.data();; s++) {
      switch (s->what) {
        case Do::kBind:
          if (s->data != 0 && n.is_const()) return false;
          if (s->bound && m.nodes_[s->slot] != n.node()) return false;
          m.nodes_[s->slot] = n.node();
          n = waiting.pop();
          break;
        case Do::kBindConst:
          if (!n.is_const() || (s->bound && m.consts_[s->slot] != n.node())) return false;
          m.consts_[s->slot] = n.node();
          n = waiting.pop();
          break;
        case Do::kLiteral:
          if (!n.is_const() || !is_literal(n, program_.values_[s->data])) return false;
          n = waiting.pop();
          break;
        case Do::kDouble:
          if (!n.is_const() || !is_double(n, program_.values_[s->data])) return false;
          n = waiting.pop();
          break;
        case Do::kEitherOrder: {
          if (!n.is(s->op) || n.src_count() != 2 || !bind(n, *s, m)) return false;
          const UOp a = n.src(0), b = n.src(1);
          const uint64_t first = program_.values_[s->data], second = s->next_ops;
          const uint64_t op_a = src_bit(a.op()), op_b = src_bit(b.op());
          const bool straight = (first & op_a) && (second & op_b);
          const bool flipped = (first & op_b) && (second & op_a) && a != b;
          if (!straight && !flipped) return false;
          const bool flip = straight && flipped ? decide() : flipped;
          waiting.push(flip ? a : b);
          n = flip ? b : a;
          break;
        }
        case Do::kInSet:
          if (!program_.sets_[s->data].has(n.op())) return false;
          if (!to_sources(n, *s, m, waiting)) return false;
          break;
        case Do::kSources:
          if (!n.is(s->op) || !to_sources(n, *s, m, waiting)) return false;
          break;
        case Do::kCheckDType:
          if (!(s->data & set_of(n.dtype().scalar))) return false;
          break;
        case Do::kEither:
          if (decide()) s = program_.steps_.data() + s->data - 1;
          break;
        case Do::kJump: s = program_.steps_.data() + s->data - 1; break;
        case Do::kDone: return true;
      }
    }
  }

 private:
  static bool is_literal(UOp n, uint64_t value) {
    const DType type = n.dtype();
    // -1 is all ones in every integer dtype; a positive number that does not fit is none of it
    if (type.is_index() || (int64_t(value) >= 0 && !type.is_float())) return n.arg_word() == value;
    return n.arg_word() == bits_of_int(type, int64_t(value));
  }
  static bool is_double(UOp n, uint64_t value) {
    const DType type = n.dtype();
    return type.is_float() && n.arg_word() == bits_of_double(type, std::bit_cast<double>(value)) &&
           double_of_bits(type, n.arg_word()) == std::bit_cast<double>(value);
  }
  static bool bind(UOp n, const Step& s, Match& m) {
    if (s.slot == kNoSlot) return true;
    if (s.bound && m.nodes_[s.slot] != n.node()) return false;
    m.nodes_[s.slot] = n.node();
    return true;
  }
  // Goes on to the first source; the others wait.
  static bool to_sources(UOp& n, const Step& s, Match& m, Waiting& waiting) {
    if (!bind(n, s, m)) return false;
    const std::span<const UOp> srcs = n.srcs();
    const size_t wanted = s.has_rest ? s.arity - 1u : s.arity;
    if (s.has_rest ? srcs.size() < wanted : srcs.size() != wanted) return false;
    if (s.has_rest) m.rest_ = srcs.subspan(wanted);
    for (size_t i = wanted; i-- > 1;) waiting.push(srcs[i]);
    n = wanted > 0 ? srcs[0] : waiting.pop();
    return true;
  }
  bool decide() { return decisions_ >> decided_++ & 1; }

  const MatchProgram& program_;
  uint32_t decisions_;  // bit i: the way taken at the i-th decision
  uint32_t decided_ = 0;
};

UOp MatchProgram::apply(UOp n, void* context) const {
  Match m(n.arena(), n, *rule_, context);
  uint32_t decisions = 0;
  for (;;) {
    Run run(*this, decisions);
    if (run.match(n, m) && condition_holds(m)) {
      const UOp out = rule_->body != nullptr ? rule_->body(m) : build_replacement(m);
      if (out && out != n) return out;
    }
    // The last decision that went the first way goes the second; those after it start anew.
    const uint32_t made = (uint32_t(1) << run.decided()) - 1;
    const uint32_t open = ~decisions & made;
    if (open == 0) return UOp();
    const uint32_t last = std::bit_floor(open);
    decisions = (decisions & (last - 1)) | last;
  }
}

}  // namespace weft
