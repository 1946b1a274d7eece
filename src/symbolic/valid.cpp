// What a gate says about the values behind it: under `x < 4`, x is at most 3.
//
// An expression behind a gate is simplified with the gate's terms replaced by variables of narrower
// bounds, and put back. It is taken when it came out smaller, so narrowing always ends. Definitions
// stay whole: a loop, or memory, is the same one outside of the gate, where nothing is known about
// its size.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/reads.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "symbolic/simplify.h"
#include "symbolic/tables.h"

namespace weft {
namespace {
using namespace names;

// Expressions and gates above these sizes are left alone: it bounds the work per node.
constexpr size_t kMostNodes = 200, kMostClauses = 16;

// While the gate holds, `node` lies in `range`.
struct Clause {
  UOp node;
  Interval range;
};

Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

enum class Gated : uint8_t { kHolds, kFails };

std::optional<Clause> clause_of(UOp n, Gated gate) {
  const bool holds = gate == Gated::kHolds;
  if (n.is(Op::CMPLT) && n.src(0).dtype().is_index()) {
    const UOp a = n.src(0), b = n.src(1);
    if (a.is_const() == b.is_const()) return std::nullopt;
    const int64_t c = a.is_const() ? a.const_int() : b.const_int();
    if (c == Interval::kLow || c == Interval::kHigh) return std::nullopt;
    if (b.is_const())
      return Clause{a, holds ? Interval{Interval::kLow, c - 1} : Interval{c, Interval::kHigh}};
    return Clause{b, holds ? Interval{c + 1, Interval::kHigh} : Interval{Interval::kLow, c}};
  }
  const bool is_equal = (n.is(Op::CMPEQ) && holds) || (n.is(Op::CMPNE) && !holds);
  if (is_equal && n.src(0).dtype().is_index() && n.src(1).is_const()) {
    return Clause{n.src(0), {n.src(1).const_int(), n.src(1).const_int()}};
  }
  if (n.is_const()) return std::nullopt;
  return Clause{n, holds ? Interval{1, 1} : Interval{0, 0}};  // any other truth value
}

// What holds when the gate holds (a conjunction), or when it fails (a disjunction).
std::vector<Clause> clauses_of(UOp condition, Gated gate) {
  const Op joins = gate == Gated::kHolds ? Op::AND : Op::OR;
  std::vector<Clause> out;
  if (condition.dtype().is_vector()) return out;  // lanes may be mixed on the way to what is gated
  std::vector<UOp> todo{condition};
  while (!todo.empty() && out.size() < kMostClauses) {
    const UOp n = todo.back();
    todo.pop_back();
    if (n.is(joins) && n.dtype().is_bool()) {
      todo.push_back(n.src(1));
      todo.push_back(n.src(0));
    } else if (const std::optional<Clause> c = clause_of(n, gate)) {
      const auto known =
          std::find_if(out.begin(), out.end(), [&](const Clause& o) { return o.node == c->node; });
      if (known == out.end()) {
        out.push_back(*c);
      } else {
        known->range = intersect(known->range, c->range);
      }
    }
  }
  return out;
}

// Values alone: below a node that closes loops or waits for effects a term may mean something else.
// A LOAD happens whether or not its value is used: its gate stays whole.
bool is_plain(UOp n) {
  if (n.is(Op::LOAD) && n.src_count() > 1) return false;
  return is_elementwise(n.op()) || info(n.op()).group == OpGroup::Define || n.is(Op::INDEX) ||
         n.is(Op::LOAD) || n.is(Op::VECTORIZE) || n.is(Op::GEP);
}

bool is_definition(UOp n) { return info(n.op()).group == OpGroup::Define; }

// The nodes under n, but for those under definitions, or nothing when they are too many or not
// plain.
std::vector<UOp> small_graph(UOp root) {
  NodeMap seen(root.arena());
  std::vector<UOp> out, todo{root};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (seen.has(n)) continue;
    seen.put_number(n, 1);
    out.push_back(n);
    if (out.size() > kMostNodes || !is_plain(n)) return {};
    if (is_definition(n)) continue;
    for (UOp s : n.srcs()) todo.push_back(s);
  }
  return out;
}

bool is_endless(Interval range) {
  return range.lo == Interval::kLow || range.hi == Interval::kHigh;
}

// What takes the place of a node while a gate holds.
UOp stand_in(Arena& arena, UOp node, Interval range, size_t number) {
  const DType type = node.dtype();
  auto constant = [&](int64_t v) {
    return arena.make(Op::CONST, type, {}, Arg::bits(uint64_t(v)));
  };
  if (range.lo == range.hi) return constant(range.lo);
  return arena.make(Op::VARIABLE, type, {constant(range.lo), constant(range.hi)},
                    Arg::name(fmt::format("$gated{}", number)));
}

// Nodes and their stand-ins. The work is done in an arena of its own: what comes of it is mostly
// thrown away.
struct Substitution {
  std::optional<Arena> scratch;
  std::vector<std::pair<UOp, UOp>> there, back;

  void add(UOp n, Interval range) {
    if (!scratch) scratch.emplace();
    const UOp node = import_graph(*scratch, n);
    const UOp stand = stand_in(*scratch, n, range, there.size());
    there.emplace_back(node, stand);
    if (!stand.is_const()) back.emplace_back(stand, node);
  }
  // n stands for itself, with all below it.
  void keep(UOp n) {
    const UOp node = import_graph(*scratch, n);
    const auto is_it = [&](const auto& pair) { return pair.first == node; };
    if (std::ranges::none_of(there, is_it)) there.emplace_back(node, node);
  }
};

bool has_other_loads(std::span<const UOp> after, UOp before) {
  const std::vector<UOp> nodes = toposort(before);
  return std::ranges::any_of(
      after, [&](UOp n) { return n.is(Op::LOAD) && std::ranges::find(nodes, n) == nodes.end(); });
}

// n, smaller, given the clauses; or null.
UOp narrowed(UOp n, const std::vector<Clause>& clauses, Loads loads) {
  if (clauses.empty() || n.is_const()) return UOp();
  const std::vector<UOp> nodes = small_graph(n);
  Substitution s;
  for (const Clause& c : clauses) {
    if (std::find(nodes.begin(), nodes.end(), c.node) == nodes.end()) continue;
    const Interval known = bounds(c.node), range = intersect(known, c.range);
    if (range == known || range.lo > range.hi || is_endless(range)) continue;
    s.add(c.node, range);
  }
  if (s.there.empty()) return UOp();
  for (UOp d : nodes) {
    if (is_definition(d) && d.src_count() > 0) s.keep(d);
  }
  const UOp before = import_graph(*s.scratch, n);
  const UOp inside = graph_rewrite(substitute(before, s.there), ungated_rules());
  const UOp result = graph_rewrite(substitute(inside, s.back), ungated_rules());
  const std::vector<UOp> after = small_graph(result);
  const bool smaller = !after.empty() && after.size() < nodes.size();
  if (!smaller || (loads == Loads::kStay && has_other_loads(after, before))) return UOp();
  return import_graph(n.arena(), result);
}

UOp with_source(Match& m, size_t i, UOp source) {
  std::vector<UOp> srcs(m.root().srcs().begin(), m.root().srcs().end());
  srcs[i] = source;
  return m.arena().with_srcs(m.root(), srcs);
}

template <Loads loads>
UOp narrow_where(Match& m) {
  const std::vector<Clause> holds = clauses_of(m[x], Gated::kHolds);
  if (const UOp n = narrowed(m[y], holds, loads)) return with_source(m, 1, n);
  const std::vector<Clause> fails = clauses_of(m[x], Gated::kFails);
  if (const UOp n = narrowed(m[z], fails, loads)) return with_source(m, 2, n);
  return UOp();
}

// a & b: each side given that the other holds; a | b: given that it fails. Both sides are computed
// wherever one is: what reads memory keeps what holds its index in range.
UOp narrow_join(Match& m) {
  const Gated gate = m.root().is(Op::AND) ? Gated::kHolds : Gated::kFails;
  const auto side = [&](UOp n, UOp other) {
    return reads_memory(n) ? UOp() : narrowed(n, clauses_of(other, gate), Loads::kStay);
  };
  if (const UOp n = side(m[y], m[x])) return with_source(m, 1, n);
  if (const UOp n = side(m[x], m[y])) return with_source(m, 0, n);
  return UOp();
}

template <Loads loads>
UOp narrow_load(Match& m) {
  const UOp n = narrowed(m[x], clauses_of(m[y], Gated::kHolds), loads);
  return n ? with_source(m, 0, n) : UOp();
}

template <Loads loads>
UOp narrow_store(Match& m) {
  const std::vector<Clause> clauses = clauses_of(m[z], Gated::kHolds);
  // A place that memory holds is known in the gate by the same expression.
  const std::span<const UOp> at = m[x].srcs().subspan(m[x].src_count() > 0 ? 1 : 0);
  const bool is_in_memory = m[x].is(Op::INDEX) && std::ranges::any_of(at, reads_memory);
  if (!is_in_memory) {
    if (const UOp n = narrowed(m[x], clauses, loads)) return with_source(m, 0, n);
  }
  if (const UOp n = narrowed(m[y], clauses, loads)) return with_source(m, 1, n);
  return UOp();
}

// clang-format off
template <Loads loads>
constexpr Rule kNarrow[] = {  // NOLINT(readability-identifier-naming)
    rule("narrow-where",     where(x, y, z),            narrow_where<loads>),
    rule("narrow-load",      op(Op::LOAD, x, y, z),     narrow_load<loads>),
    rule("narrow-store",     op(Op::STORE, x, y, z),    narrow_store<loads>),
};
constexpr Rule kNarrowBool[] = {
    rule("narrow-join",      op({Op::AND, Op::OR}, x, y), narrow_join),
};
// clang-format on

template <Loads loads>
// NOLINTNEXTLINE(readability-identifier-naming)
constexpr RuleTable kTables[] = {
    {"gates", kAnyDType, kNarrow<loads>},
    {"gates of gates", kBools, kNarrowBool},
};

}  // namespace

std::span<const RuleTable> valid_tables(Loads loads) {
  if (loads == Loads::kStay) return kTables<Loads::kStay>;
  return kTables<Loads::kNarrow>;
}

}  // namespace weft
