// Rules: a named pattern, an optional condition, and a replacement or a C++ body.
//
//   constexpr Rule kFoldRules[] = {
//       rule("add-add", (x + c0) + c1, x + fold(c0 + c1)),
//       rule("div-of-mul", (x * c0) / c1, x * fold(c0 / c1)).when(c1 > 0 && c0 % c1 == 0),
//       rule("sink-flatten", op(Op::SINK, rest), [](Match& m) -> UOp { ... }),
//   };
//
// A replacement or condition that uses a name which its pattern does not bind does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>

#include "ir/arena.h"
#include "ir/node.h"
#include "rewrite/pattern.h"

namespace weft {

struct Rule;

// What a pattern bound, for conditions and bodies.
class Match {
 public:
  // Names hold nothing yet: a match binds all that its rule reads.
  Match(Arena& arena, UOp root, const Rule& rule, void* context)
      : arena_(arena), root_(root), context_(context), rule_(&rule) {}

  Arena& arena() const { return arena_; }
  UOp root() const { return root_; }
  const Rule& rule() const { return *rule_; }
  // What the caller of graph_rewrite passed as its context.
  template <class Context>
  Context& context() const {
    return *static_cast<Context*>(context_);
  }

  UOp operator[](const NodeName& n) const { return node(n.slot()); }
  UOp operator[](const ConstName& n) const { return constant(n.slot()); }
  std::span<const UOp> operator[](const RestName&) const { return rest_; }
  UOp node(size_t slot) const { return UOp(nodes_[slot]); }
  UOp constant(size_t slot) const { return UOp(consts_[slot]); }
  std::span<const UOp> rest() const { return rest_; }

 private:
  friend class MatchProgram;

  Arena& arena_;
  UOp root_;
  void* context_;
  const Rule* rule_;
  std::span<const UOp> rest_;
  const Node* nodes_[kMaxNodeNames];  // not initialised
  const Node* consts_[kMaxConstNames];
};

using Body = UOp (*)(Match&);  // null: the rule does not apply
using Condition = bool (*)(const Match&);

struct Rule {
  std::string_view name;
  const char* file = "";
  uint32_t line = 0;
  Pattern lhs{}, rhs{}, cond{};
  Body body = nullptr;
  Condition test = nullptr;
  const void* data = nullptr;  // for rules made while running: what their body needs

  // Nothing but data: the prover can read it.
  constexpr bool is_declarative() const { return body == nullptr && test == nullptr; }

  constexpr Rule when(const Pattern& condition) const {
    if (condition.binds & ~lhs.binds) {
      throw "the condition uses a name that the pattern does not bind";
    }
    Rule r = *this;
    r.cond = condition;
    return r;
  }
  constexpr Rule when(Condition condition) const {
    Rule r = *this;
    r.test = condition;
    return r;
  }
};

namespace detail {
constexpr void check_pattern(const Pattern& lhs) {
  const CellKind kind = lhs.root().kind;
  if (kind != CellKind::kOp && kind != CellKind::kOpSet) throw "the pattern must start with an op";
}
}  // namespace detail

consteval Rule rule(std::string_view name, const Pattern& lhs, const Pattern& rhs,
                    std::source_location at = std::source_location::current()) {
  detail::check_pattern(lhs);
  if (rhs.binds & ~lhs.binds) throw "the replacement uses a name that the pattern does not bind";
  return {.name = name, .file = at.file_name(), .line = at.line(), .lhs = lhs, .rhs = rhs};
}
consteval Rule rule(std::string_view name, const Pattern& lhs, int rhs,
                    std::source_location at = std::source_location::current()) {
  return rule(name, lhs, Pattern(rhs), at);  // a bare 0 would otherwise read as a null body
}
consteval Rule rule(std::string_view name, const Pattern& lhs, Body body,
                    std::source_location at = std::source_location::current()) {
  detail::check_pattern(lhs);
  return {.name = name, .file = at.file_name(), .line = at.line(), .lhs = lhs, .body = body};
}

// Rules of one subject that hold for the same dtypes: those of the last source of the node matched
// (for x < y the operands', for WHERE the values').
struct RuleTable {
  std::string_view name;
  DTypeSet domain;
  std::span<const Rule> rules;
};

}  // namespace weft
