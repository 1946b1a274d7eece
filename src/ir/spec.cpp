// Runs the tables of the spec over nodes and graphs.
#include "ir/spec.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec_rules.h"
#include "ir/walk.h"

namespace weft {
namespace spec {
namespace {

// ------------------------------------------------------------------------------ what ops.def says

std::string text_of_stages(Op op) {
  std::string out;
  for (const Stage s : kStages) {
    if (!is_legal_in(op, s)) continue;
    if (!out.empty()) out += ", ";
    out += name_of(s);
  }
  return out;
}

Found check_stage(UOp n, Stage stage) {
  if (is_legal_in(n.op(), stage)) return {};
  return bad_structure("it is not legal in the {} stage; its stages are {}", name_of(stage),
                       text_of_stages(n.op()));
}

Found check_arity(UOp n) {
  const auto [least, most] = std::pair(info(n.op()).least_sources, info(n.op()).most_sources);
  if (n.src_count() >= least && n.src_count() <= most) return {};
  const std::string allowed = least == most   ? fmt::format("{}", least)
                              : most == kMany ? fmt::format("{} or more", least)
                                              : fmt::format("{} to {}", least, most);
  return bad_structure("the number of sources is {}; allowed is {}", n.src_count(), allowed);
}

Found check_argument(UOp n) {
  switch (info(n.op()).arg) {
    case ArgKind::Int:
      if (n.number() >= 0) return {};
      return bad_structure("the id is {}; ids are not negative", n.number());
    case ArgKind::Range:
      if (n.axis() <= AxisType::kLane) return {};
      return bad_structure("the axis type {} does not exist", int(n.axis()));
    case ArgKind::Name:
      if (!n.name().empty()) return {};
      return bad_structure("the name is empty");
    case ArgKind::MaybeOp:
      if (n.arg_word() == 0) return {};
      [[fallthrough]];
    case ArgKind::Op:
    case ArgKind::OpInts:
      if (size_t(n.arg_op()) < kOpCount) return {};
      return bad_structure("the op {} does not exist", int(n.arg_op()));
    case ArgKind::Space:
      if (n.space() == AddrSpace::kGlobal || n.space() == AddrSpace::kLocal) return {};
      return bad_structure("the address space is {}; allowed are global and local",
                           name_of(n.space()));
    default: return {};
  }
}

Found check_sources(UOp n) {
  const Arena* arena = &n.arena();
  for (const UOp& s : n.srcs()) {
    if (&s.arena() != arena) return bad_structure("the operands are of different arenas");
    const bool is_ast = n.is(Op::KERNEL) && &s == n.srcs().data();
    if (s.is(Op::LINEAR) || (s.is(Op::SINK) && !is_ast)) {
      return bad_structure("source {} is a {}, which is a root", &s - n.srcs().data(),
                           name_of(s.op()));
    }
  }
  return {};
}

// --------------------------------------------------------------------------------------- the
// tables

// Bit r of an op's word says that row r is about it.
template <class Rule>
std::array<uint64_t, kOpCount> rows_by_op(std::span<const Rule> rules) {
  if (rules.size() > 64) throw InternalError("a table of the spec has more than 64 rows");
  std::array<uint64_t, kOpCount> rows{};
  for (size_t r = 0; r < rules.size(); r++) {
    for (size_t op = 0; op < kOpCount; op++) {
      if (rules[r].ops.has(Op(op))) rows[op] |= uint64_t(1) << r;
    }
  }
  return rows;
}

const std::vector<NodeRule>& all_node_rules() {
  static const std::vector<NodeRule> kRules = [] {
    std::vector<NodeRule> all;
    for (const auto part :
         {definition_rules(), value_rules(), movement_rules(), memory_rules(), store_rules()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kRules;
}

Found check_by_rules(UOp n) {
  static const auto kRows = rows_by_op(std::span(all_node_rules()));
  for (uint64_t left = kRows[size_t(n.op())]; left != 0; left &= left - 1) {
    if (Found f = all_node_rules()[size_t(std::countr_zero(left))].check(n)) return f;
  }
  return {};
}

Found check_by_stage(UOp n, Stage stage) {
  static const auto kRows = rows_by_op(stage_rules());
  for (uint64_t left = kRows[size_t(n.op())]; left != 0; left &= left - 1) {
    const StageRule& rule = stage_rules()[size_t(std::countr_zero(left))];
    if ((rule.stages & stage_bit(stage)) == 0) continue;
    if (Found f = rule.check(n)) return f;
  }
  return {};
}

Found fault_at(UOp n) {
  if (Found f = check_arity(n)) return f;
  if (Found f = check_argument(n)) return f;
  if (Found f = check_sources(n)) return f;
  return check_by_rules(n);
}

// The nodes under root, root last, without the asts of its KERNELs: those stand in `asts`.
struct Layers {
  std::vector<UOp> order;
  std::vector<UOp> asts;
};

Layers layers_of(UOp root, Stage stage) {
  Layers out;
  NodeMap seen(root.arena());
  visit_missing(
      root,
      [&](UOp n) {
        // A SINK below the root is legal under a KERNEL only, which check_sources says.
        const bool is_ast = stage == Stage::kRangeified && n.is(Op::SINK) && n != root;
        if (is_ast && !seen.has(n)) {
          seen.put_number(n, 1);
          out.asts.push_back(n);
        }
        return seen.has(n);
      },
      [&](UOp n) {
        seen.put_number(n, 1);
        out.order.push_back(n);
      });
  return out;
}

std::optional<Violation> check_graph(UOp root, std::span<const UOp> order, Stage stage) {
  for (UOp n : order) {
    if (Found f = check_stage(n, stage)) return violation_at(n, *std::move(f));
    if (Found f = fault_at(n)) return violation_at(n, *std::move(f));
    if (Found f = check_by_stage(n, stage)) return violation_at(n, *std::move(f));
  }
  for (const GraphRule& rule : graph_rules()) {
    if ((rule.stages & stage_bit(stage)) == 0) continue;
    if (std::optional<Violation> v = rule.check(root, order)) return v;
  }
  return {};
}

std::string in_lower_case(Op op) {
  std::string out;
  for (const char c : name_of(op)) out += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

}  // namespace

Violation violation_at(UOp n, Fault fault) {
  return {n, fault.kind, fmt::format("{}: {}", name_of(n.op()), fault.text)};
}

}  // namespace spec

std::optional<Violation> find_violation_at(UOp n) {
  spec::Found f = spec::fault_at(n);
  if (!f) return {};
  return spec::violation_at(n, *std::move(f));
}

std::optional<Violation> find_violation(UOp root, Stage stage) {
  const spec::Layers layers = spec::layers_of(root, stage);
  if (auto v = spec::check_graph(root, layers.order, stage)) return v;
  for (UOp ast : layers.asts) {
    if (auto v = spec::check_graph(ast, toposort(ast), Stage::kKernel)) return v;
  }
  return {};
}

void verify(UOp root, Stage stage, std::string_view after_pass) {
  const std::optional<Violation> v = find_violation(root, stage);
  if (!v) return;
  std::string where = fmt::format("  in the {} stage", name_of(stage));
  if (!after_pass.empty()) where += fmt::format(", after pass {}", after_pass);
  throw SpecError(fmt::format("{}\n{}{}", v->message, neighbourhood(v->node), where));
}

void check_node(UOp n) {
  const spec::Found f = spec::fault_at(n);
  if (!f) return;
  const std::string message = fmt::format("[{}] {}", spec::in_lower_case(n.op()), f->text);
  switch (f->kind) {
    case ViolationKind::kShape: throw ShapeError(message);
    case ViolationKind::kDType: throw DTypeError(message);
    case ViolationKind::kStructure: throw SpecError(message);
  }
}

}  // namespace weft
