// What the tables of the spec are made of. Private to ir/spec*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"

namespace weft::spec {

// What is wrong with a node: what was given and what is allowed, without the name of its op.
struct Fault {
  ViolationKind kind;
  std::string text;
};
using Found = std::optional<Fault>;

template <class... Args>
Found bad_shape(fmt::format_string<Args...> text, Args&&... args) {
  return Fault{ViolationKind::kShape, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Found bad_dtype(fmt::format_string<Args...> text, Args&&... args) {
  return Fault{ViolationKind::kDType, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
Found bad_structure(fmt::format_string<Args...> text, Args&&... args) {
  return Fault{ViolationKind::kStructure, fmt::format(text, std::forward<Args>(args)...)};
}

// ---- the tables

// Holds at every stage. A check may rely on the arity that ops.def gives and on legal sources.
struct NodeRule {
  OpSet ops;
  Found (*check)(UOp n);
};
std::span<const NodeRule> definition_rules();
std::span<const NodeRule> value_rules();
std::span<const NodeRule> movement_rules();
std::span<const NodeRule> memory_rules();
std::span<const NodeRule> store_rules();

// Holds at the stages in the mask, see stage_bit().
struct StageRule {
  unsigned stages;
  OpSet ops;
  Found (*check)(UOp n);
};
std::span<const StageRule> stage_rules();

// Of a whole graph, once its nodes are legal. `order` has sources before users.
struct GraphRule {
  unsigned stages;
  std::optional<Violation> (*check)(UOp root, std::span<const UOp> order);
};
std::span<const GraphRule> graph_rules();

// STORE(INDEX(view, indices...), value) in a tensor graph: a StageRule.
Found check_scatter(UOp n);

// The list of a program: a GraphRule.
std::optional<Violation> check_list(UOp root, std::span<const UOp> order);

constexpr unsigned stage_bit(Stage stage) { return 1u << unsigned(stage); }

constexpr OpSet ops_in(std::initializer_list<OpGroup> groups) {
  OpSet set;
  for (size_t i = 0; i < kOpCount; i++) {
    for (OpGroup g : groups) {
      if (info(Op(i)).group == g) set.add(Op(i));
    }
  }
  return set;
}
inline constexpr OpSet kElementwise = ops_in({OpGroup::Unary, OpGroup::Binary, OpGroup::Ternary});

Violation violation_at(UOp n, Fault fault);

// ---- checks that several tables share

constexpr bool is_value(DType t) { return !t.is_void() && !t.is_pointer(); }

// An op that AFTER and END order.
constexpr OpSet effect_ops() {
  OpSet set;
  for (size_t i = 0; i < kOpCount; i++) {
    if (is_effect(Op(i))) set.add(Op(i));
  }
  return set;
}
inline constexpr OpSet kEffects = effect_ops();

// Source i is a value that can be computed with: no effect, no pointer, no unwritten register.
Found check_operand(UOp n, size_t i);
// Source i is an effect.
Found check_effect(UOp n, size_t i);
// n is void; has the dtype of its first source.
Found check_void(UOp n);
Found check_keeps_dtype(UOp n);
// Source i is a bool, or one for each of the lanes.
Found check_gate(UOp n, size_t i, uint16_t lanes = 1);
// Source i is a size (or `what` it is): of dtype `type` and not negative.
Found check_size(UOp n, size_t i, DType type, std::string_view what = "size");
// Sources from `first` on are RANGEs, none of them twice.
Found check_ranges(UOp n, size_t first);
// n's argument is an op to reduce by, and defined on n's dtype.
Found check_reduction(UOp n);

// Whether the arithmetic of an elementwise op is defined on elements of a dtype, and on which it
// is: "floats", "integers and bool".
bool accepts(Op op, DType type);
std::string accepted_dtypes(Op op);

// "a CONST", "an ADD"
std::string with_article(Op op);
// A node inside a sentence: short.
std::string brief(UOp n);

}  // namespace weft::spec
