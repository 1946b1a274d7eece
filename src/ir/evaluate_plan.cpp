// Rangeified and kernel graphs -> steps. Each loop is a region: the nodes with its range in their
// scope, reached from what closes it. What a loop needs from outside is done before it opens.
#include "ir/evaluate_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/evaluate_parts.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"

namespace weft::evaluator {
namespace {

constexpr OpSet kClosers = {Op::END, Op::REDUCE, Op::BUFFERIZE};
constexpr OpSet kWrites = {Op::STORE,     Op::BARRIER, Op::KERNEL, Op::FETCH,
                           Op::FETCH_BOX, Op::COMMIT,  Op::WAIT};

bool is_closer(UOp n) { return kClosers.has(n.op()); }

// The loops that a closer closes, the outermost first. A constant among its sources is no loop.
std::vector<UOp> loops_of(UOp closer) {
  std::vector<UOp> out;
  for (UOp r : closer.srcs().subspan(1)) {
    if (r.is(Op::RANGE)) {
      out.push_back(r);
    } else if (!r.is_const()) {
      fail(closer, "it closes what is no RANGE");
    }
  }
  return out;
}

void dependencies(UOp n, std::vector<UOp>& out) {
  if (is_closer(n)) {
    out.push_back(n.src(0));
    for (UOp r : loops_of(n)) out.push_back(r.src(0));
    return;
  }
  for (size_t i = 0; i < n.src_count(); i++) {
    if (is_operand(n, i)) out.push_back(n.src(i));
  }
}

// A closer and one of its loops.
struct Closing {
  UOp closer;
  size_t level = 0;
};

// What a region runs in one go.
struct Unit {
  enum Kind : uint8_t { kNode, kBody, kLoop } kind = kNode;
  UOp node;                      // kNode, kBody
  std::vector<Closing> closing;  // kLoop: what closes it; several ENDs of one range
  std::vector<UOp> needs;        // nodes computed before it
  bool writes = false;

  UOp range() const { return loops_of(closing[0].closer)[closing[0].level]; }
  bool is_end() const { return kind == kLoop && closing[0].closer.is(Op::END); }
};

Unit loop_unit(Closing c) {
  Unit unit{Unit::kLoop, {}, {c}, {}};
  const std::vector<UOp> loops = loops_of(c.closer);
  std::unordered_set<UOp> bound(loops.begin() + std::ptrdiff_t(c.level), loops.end());
  std::vector<UOp> todo{c.closer.src(0)};
  for (size_t i = c.level; i < loops.size(); i++) todo.push_back(loops[i].src(0));
  NodeMap seen(c.closer.arena());
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (bound.contains(n) || seen.has(n)) continue;
    seen.put_number(n, 1);
    const std::span<const UOp> scope = ranges_of(n);
    const bool inside = !n.is(Op::RANGE) && std::any_of(scope.begin(), scope.end(),
                                                        [&](UOp r) { return bound.contains(r); });
    if (!inside) {
      unit.needs.push_back(n);
      continue;
    }
    unit.writes |= kWrites.has(n.op());
    if (is_closer(n)) {
      for (UOp r : loops_of(n)) bound.insert(r);
    }
    dependencies(n, todo);
  }
  if (c.level == 0 && c.closer.is(Op::BUFFERIZE)) {  // its array is made before its loops
    for (UOp r : loops) unit.needs.push_back(r.src(0));
  }
  return unit;
}

Unit unit_of(UOp n) {
  if (is_closer(n) && !loops_of(n).empty()) return loop_unit({n, 0});
  Unit unit{Unit::kNode, n, {}, {}, kWrites.has(n.op())};
  dependencies(n, unit.needs);
  return unit;
}

// What stands directly in the loop: the next loop of its closer, or the closer's body.
Unit unit_inside(Closing c) {
  if (c.level + 1 < loops_of(c.closer).size()) return loop_unit({c.closer, c.level + 1});
  return {Unit::kBody, c.closer, {}, {c.closer.src(0)}};
}

class Region {
 public:
  // The region of a loop, or of the whole graph when `range` is none.
  Region(UOp range, std::vector<Unit> inside, Arena& arena) : range_(range), numbers_(arena) {
    std::vector<UOp> roots;
    for (const Unit& u : inside) needs_inside(u, roots);
    std::unordered_map<UOp, Unit> found;
    visit_dependencies_first(
        roots,
        [&](UOp n, std::vector<UOp>& out) {
          if (n.is(Op::RANGE)) return;
          needs_inside(found.emplace(n, unit_of(n)).first->second, out);
        },
        [&](UOp n) {
          if (n == range_) return;
          if (n.is(Op::RANGE)) fail(n, "it is used outside of its loop");
          units_.push_back(std::move(found.at(n)));
          numbers_.put_number(n, units_.size());
        });
    for (Unit& u : inside) units_.push_back(std::move(u));
    for (size_t i = 0; i < units_.size(); i++) group_.push_back(i);
  }

  std::vector<Unit> in_order() {
    merge_ends();
    std::vector<size_t> waits(units_.size());
    std::vector<std::vector<size_t>> users(units_.size());
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> reads, writes;
    size_t groups = 0;
    for (size_t i = 0; i < units_.size(); i++) {
      if (group_[i] != i) continue;
      groups++;
      std::vector<size_t> before = groups_before(i);
      waits[i] = before.size();
      for (const size_t b : before) users[b].push_back(i);
      if (before.empty()) (units_[i].writes ? writes : reads).push(i);
    }
    std::vector<Unit> order;
    while (!reads.empty() || !writes.empty()) {
      auto& from = reads.empty() ? writes : reads;
      const size_t i = from.top();
      from.pop();
      for (const size_t u : users[i]) {
        if (--waits[u] == 0) (units_[u].writes ? writes : reads).push(u);
      }
      order.push_back(std::move(units_[i]));
    }
    if (order.size() != groups) throw InternalError("[evaluate] loops wait for each other");
    return order;
  }

 private:
  void needs_inside(const Unit& u, std::vector<UOp>& out) const {
    for (UOp n : u.needs) {
      if (!range_ || is_in_scope(range_, n)) out.push_back(n);
    }
  }

  // The groups that a group needs, each once.
  std::vector<size_t> groups_before(size_t group) const {
    std::vector<size_t> out;
    for (UOp n : units_[group].needs) {
      if (const uint64_t number = numbers_.number(n)) out.push_back(group_[number - 1]);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // ENDs of one range become one loop where no one waits for another. Units stand after all that
  // they need, so only the later of two can wait for the earlier.
  void merge_ends() {
    std::unordered_map<UOp, std::vector<size_t>> loops;
    for (size_t i = 0; i < units_.size(); i++) {
      if (!units_[i].is_end()) continue;
      std::vector<size_t>& earlier = loops[units_[i].range()];
      if (!earlier.empty()) {
        const std::unordered_set<size_t> needed = all_before(i);
        const auto into = std::find_if(earlier.begin(), earlier.end(),
                                       [&](size_t e) { return !needed.contains(e); });
        if (into != earlier.end()) {
          merge(i, *into);
          continue;
        }
      }
      earlier.push_back(i);
    }
  }

  std::unordered_set<size_t> all_before(size_t group) const {
    std::unordered_set<size_t> seen;
    std::vector<size_t> todo{group};
    while (!todo.empty()) {
      const size_t g = todo.back();
      todo.pop_back();
      for (const size_t b : groups_before(g)) {
        if (seen.insert(b).second) todo.push_back(b);
      }
    }
    return seen;
  }

  void merge(size_t unit, size_t into) {
    Unit &from = units_[unit], &to = units_[into];
    group_[unit] = into;
    to.closing.push_back(from.closing[0]);
    to.needs.insert(to.needs.end(), from.needs.begin(), from.needs.end());
    to.writes |= from.writes;
  }

  UOp range_;
  std::vector<Unit> units_;    // each after all that it needs
  std::vector<size_t> group_;  // of every unit: itself, or the earlier one that it is merged into
  NodeMap numbers_;            // of every node: 1 + its unit
};

class Planner {
 public:
  Plan run(std::span<const UOp> roots) {
    if (roots.empty()) return {};
    Arena& arena = roots[0].arena();
    std::vector<Unit> wanted;
    for (UOp r : roots) {
      wanted.push_back({Unit::kBody, {}, {}, {r}});
      plan_.roots.push_back(slot_of(r));
      plan_.root_nodes.push_back(r);
    }
    std::vector<Frame> open{{Region({}, std::move(wanted), arena).in_order()}};
    while (!open.empty()) {
      Frame& frame = open.back();
      if (frame.next == frame.units.size()) {
        if (frame.range) close(frame);
        open.pop_back();
        continue;
      }
      const Unit unit = std::move(frame.units[frame.next++]);
      if (unit.kind != Unit::kLoop) {
        add(unit);
        continue;
      }
      if (!open_.insert(unit.range()).second) fail(unit.range(), "it is open already");
      begin(unit);
      std::vector<Unit> inside;
      inside.reserve(unit.closing.size());
      for (const Closing& c : unit.closing) inside.push_back(unit_inside(c));
      const UOp range = unit.range();
      plan_.steps.push_back({StepKind::kOpen, range, slot_of(range), {slot_of(range.src(0))}});
      open.push_back(
          {Region(range, std::move(inside), arena).in_order(), 0, range, plan_.steps.size()});
    }
    plan_.slot_count = slots_.size();
    return std::move(plan_);
  }

 private:
  struct Frame {
    std::vector<Unit> units;
    size_t next = 0;
    UOp range = {};
    size_t first_step = 0;
  };

  uint32_t slot_of(UOp n) { return slots_.emplace(n, uint32_t(slots_.size())).first->second; }

  void add(const Unit& unit) {
    if (unit.kind == Unit::kBody) {
      if (unit.node) add_body(unit.node);
      return;
    }
    const UOp n = unit.node;
    if (kWrites.has(n.op()) && !done_.insert(n).second) {
      fail(n, "its loops do not close together: it would happen twice");
    }
    if (is_closer(n)) {
      begin({Unit::kLoop, {}, {{n, 0}}, {}});
      add_body(n);
      return;
    }
    Step step{StepKind::kNode, n, slot_of(n), {}};
    for (size_t i = 0; i < n.src_count(); i++) {
      step.sources.push_back(is_operand(n, i) ? slot_of(n.src(i)) : Step::kNoSlot);
    }
    plan_.steps.push_back(std::move(step));
  }

  void begin(const Unit& loop) {
    for (const auto& [closer, level] : loop.closing) {
      if (level > 0 || closer.is(Op::END)) continue;
      Step step{StepKind::kBegin, closer, slot_of(closer), {}};
      for (UOp r : closer.srcs().subspan(1)) {
        step.sources.push_back(r.is(Op::RANGE) ? slot_of(r.src(0)) : Step::kNoSlot);
      }
      plan_.steps.push_back(std::move(step));
    }
  }

  void add_body(UOp closer) {
    if (closer.is(Op::END)) return;
    Step step{StepKind::kBody, closer, slot_of(closer), {slot_of(closer.src(0))}};
    for (UOp r : closer.srcs().subspan(1)) {
      step.sources.push_back(r.is(Op::RANGE) ? slot_of(r) : Step::kNoSlot);
    }
    plan_.steps.push_back(std::move(step));
  }

  void close(const Frame& frame) {
    open_.erase(frame.range);
    plan_.steps.push_back(
        {StepKind::kClose, frame.range, slot_of(frame.range), {}, frame.first_step});
    plan_.steps[frame.first_step - 1].jump = plan_.steps.size();
  }

  Plan plan_;
  std::unordered_map<UOp, uint32_t> slots_;
  std::unordered_set<UOp> open_;  // ranges
  std::unordered_set<UOp> done_;  // effects
};

}  // namespace

bool is_operand(UOp n, size_t i) {
  if (kLeaves.has(n.op())) return false;
  if (n.is(Op::KERNEL) || n.is(Op::BIND)) return i > 0;
  if (n.is(Op::WAIT) && n.src(i).is(Op::RANGE)) return false;
  return !n.is(Op::COPY) || i == 0;
}

Plan plan_graph(std::span<const UOp> roots) { return Planner().run(roots); }

}  // namespace weft::evaluator
