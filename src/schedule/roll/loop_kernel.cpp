// Rounds, then body after body, each on what the one before has written.
#include "schedule/roll/loop_kernel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "rewrite/graph_rewrite.h"
#include "schedule/rangeify/index_math.h"
#include "schedule/rangeify/movement.h"
#include "schedule/rangeify/split_patterns.h"
#include "schedule/roll/loop_bodies.h"
#include "schedule/roll/loop_statements.h"
#include "schedule/roll/progression.h"
#include "schedule/roll/region.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

using Kind = LoopItem::Kind;

constexpr double kLittleWork = 1 << 14;  // operations of all steps of a body

constexpr size_t kLeastTable = 64, kMostRounded = 1 << 14;  // elements

// The steps of one body in the order in which they run, and how many of them each round has.
struct Runs {
  uint32_t body;
  std::vector<const LoopStep*> steps{};
  std::vector<uint64_t> counts{};

  bool is_even() const {
    return std::ranges::all_of(counts, [&](uint64_t c) { return c == counts[0]; });
  }
};

std::vector<Runs> runs_of(std::span<const LoopStep> steps, size_t bodies) {
  std::vector<uint32_t> place(bodies, UINT32_MAX);
  std::vector<Runs> runs;
  size_t rounds = 0, at = SIZE_MAX;
  for (const LoopStep& s : steps) {
    if (place[s.body] == UINT32_MAX) {
      place[s.body] = uint32_t(runs.size());
      runs.push_back({s.body});
    }
    const size_t p = place[s.body];
    if (at == SIZE_MAX || p < at) rounds++;
    at = p;
    runs[p].steps.push_back(&s);
    runs[p].counts.resize(rounds);
    runs[p].counts.back()++;
  }
  for (Runs& r : runs) r.counts.resize(rounds);
  return runs;
}

class Builder {
 public:
  Builder(Arena& arena, const LoopProgram& program, LoopCounts counts, const LoopBuffers& buffers,
          const std::string& device, Tables& tables)
      : arena_(arena),
        program_(program),
        counts_(counts),
        buffers_(buffers),
        device_(device),
        tables_(tables) {}

  LoopKernel run(std::span<const LoopStep> steps, StepOrder order) {
    const std::vector<Runs> runs = runs_of(steps, program_.bodies.size());
    if (order == StepOrder::kAny) {
      written_.push_back(buffers_.of(program_.bodies[runs[0].body].target));
      return finish(sink(add_parallel_body(runs[0])));
    }
    bool is_little = true;
    for (const Runs& r : runs) {
      written_.push_back(buffers_.of(program_.bodies[r.body].target));
      is_little = is_little && has_little_work(r);
    }
    const size_t rounds = runs[0].counts.size();
    UOp round, last;
    numbers_in_ = is_little ? Numbers::kTables : Numbers::kFormulas;
    if (rounds > 1) round = range(arena_, count_of(rounds), arena_.fresh_id());
    for (const Runs& r : runs) {
      const bool is_last = &r == &runs.back();
      last = add_body(r, round, last, is_last ? Closes::kRound : Closes::kBody);
    }
    return finish(sink(last));
  }

 private:
  LoopKernel finish(UOp ast) {
    numbers_in_ = Numbers::kTables;
    Table& starts = table_of(dtypes::int64);
    for (const auto& [key, table] : tables_by_type_) {
      for (const Table::Start& start : table.starts) {
        starts.singles[start.single] = table.singles.size() + start.first;
      }
    }
    for (const auto& [key, table] : tables_by_type_) {
      if (table.singles.empty() && table.lists.empty()) continue;
      std::vector<uint64_t>& data = tables_[table.id];
      data = table.singles;
      data.insert(data.end(), table.lists.begin(), table.lists.end());
      // A size that many programs have: it is part of the kernel.
      if (data.size() < kMostRounded)
        data.resize(std::bit_ceil(std::max(data.size(), kLeastTable)));
      globals_.emplace_back(buffer(arena_, table.dtype, int64_t(data.size()), device_, table.id),
                            table.global);
    }
    // The sizes of tables are known now.
    std::vector<std::pair<UOp, UOp>> sized;
    for (auto& [memory, global] : globals_) {
      const UOp full = define_global(arena_, memory.dtype(), memory.src(0), global.number());
      if (full != global) sized.emplace_back(global, full);
      global = full;
    }
    if (!sized.empty()) ast = substitute(ast, sized);
    LoopKernel kernel;
    kernel.bodies = written_.size();
    std::vector<UOp> order;
    ast = graph_rewrite(simplify(ast), before_split_rules(), {.pass = "loops"});
    kernel.ast = renumber_kernel(ast, order);
    for (UOp definition : order) {
      const auto at = std::ranges::find_if(
          globals_, [&](const auto& g) { return g.second.number() == definition.number(); });
      kernel.memories.push_back(at->first);
    }
    return kernel;
  }

  // ---- loops

  bool has_little_work(const Runs& r) const {
    return double(r.steps.size()) * program_.bodies[r.body].work <= kLittleWork;
  }

  // Its effect stands AFTER `before`, if there is one, within `round`, which the last one closes.
  enum class Closes : uint8_t { kBody, kRound };
  UOp add_body(const Runs& r, UOp round, UOp before, Closes closes) {
    const LoopBody& body = program_.bodies[r.body];
    body_ = &body;
    numbers_in_ = has_little_work(r) ? Numbers::kTables : Numbers::kFormulas;
    waits_.clear();
    if (before) waits_.push_back(before);
    if (round) waits_.push_back(round);
    UOp run;  // the loop over the steps of a round
    if (!round && r.steps.size() > 1) {
      run = range(arena_, count_of(r.steps.size()), arena_.fresh_id());
      step_ = run;
    } else if (!round) {
      step_ = index_const(arena_, 0);
    } else if (r.is_even()) {
      const int64_t count = int64_t(r.counts[0]);
      step_ = round;
      if (count > 1) {
        run = range(arena_, count, arena_.fresh_id());
        step_ = index_add(arena_, index_mul(arena_, round, index_const(arena_, count)), run);
      }
    } else {
      std::vector<uint64_t> starts(r.counts.size());
      for (size_t i = 1; i < starts.size(); i++) starts[i] = starts[i - 1] + r.counts[i - 1];
      UOp count = number_of(dtypes::index, r.counts, round);
      if (counts_ == LoopCounts::kBounded) {
        const int64_t most = int64_t(std::ranges::max(r.counts));
        count = arena_.make(Op::MIN, dtypes::index, {count, index_const(arena_, most)});
      }
      run = range(arena_, count, arena_.fresh_id());
      step_ = index_add(arena_, number_of(dtypes::index, starts, round), run);
    }
    if (run) waits_.push_back(run);
    set_parameters(r);
    std::vector<UOp> loops;
    if (round && closes == Closes::kRound) loops.push_back(round);
    if (run) loops.push_back(run);
    const UOp store = store_of(body, loops);
    return loops.empty() ? store : end(store, loops);
  }

  // Its steps side by side: the launch needs their number, so that is a part of the kernel.
  UOp add_parallel_body(const Runs& r) {
    body_ = &program_.bodies[r.body];
    numbers_in_ = Numbers::kFormulas;
    std::vector<UOp> loops;
    step_ = index_const(arena_, 0);
    if (r.steps.size() > 1) {
      step_ = range(arena_, int64_t(r.steps.size()), arena_.fresh_id(), AxisType::kGlobal);
      loops.push_back(step_);
    }
    set_parameters(r);
    const UOp store = store_of(*body_, loops);
    return loops.empty() ? store : end(store, loops);
  }

  void set_parameters(const Runs& r) {
    parameters_.clear();
    std::vector<uint64_t> values(r.steps.size());
    for (size_t p = 0; p < body_->parameters.size(); p++) {
      for (size_t i = 0; i < values.size(); i++) {
        values[i] = program_.parameters[r.steps[i]->first_parameter + p];
      }
      parameters_.push_back(number_of(body_->parameters[p], values, step_));
    }
  }

  UOp number_of(DType type, std::span<const uint64_t> values, UOp place) {
    if (numbers_in_ == Numbers::kTables) {
      const auto is_first = [&](uint64_t v) { return v == values[0]; };
      if (!std::ranges::all_of(values, is_first)) return element_of_table(type, values, place);
      if (is_plain(type, values[0])) return constant_bits(arena_, type, values[0]);
      return single(type, values[0]);
    }
    if (const std::optional<UOp> formula = formula_of(values, type, place)) return *formula;
    return element_of_table(type, values, place);
  }
  // Numbers that programs have whatever they compute.
  static bool is_plain(DType type, uint64_t bits) {
    return bits == 0 || bits == bits_of_int(type, 1) || bits == bits_of_int(type, -1);
  }
  Dim count_of(size_t count) {
    const bool is_known = numbers_in_ == Numbers::kFormulas || counts_ == LoopCounts::kBounded;
    if (is_known) return int64_t(count);
    return single(dtypes::index, count);
  }

  // The tables of bodies of little work are one for each dtype, those of the others another:
  // numbers that are the same in all steps, then lists.
  struct Table {
    DType dtype;
    int64_t id = 0;
    UOp global{};
    std::vector<uint64_t> singles{}, lists{};
    struct Start {  // the place among the singles of the first table that says where a list begins
      size_t single;
      uint64_t first;
    };
    std::vector<Start> starts{};
  };
  Table& table_of(DType dtype) {
    const auto at = tables_by_type_.try_emplace(std::pair(dtype.packed(), numbers_in_)).first;
    Table& table = at->second;
    if (!table.global) {
      table.dtype = dtype;
      table.id = arena_.fresh_id();
      table.global = define_global(arena_, dtype, 1, arena_.fresh_id());
    }
    return table;
  }

  UOp element_of_table(DType type, std::span<const uint64_t> values, UOp place) {
    Table& table = table_of(type.is_index() ? dtypes::int64 : type);
    UOp at = index_const(arena_, int64_t(table.lists.size()));
    if (numbers_in_ == Numbers::kTables) {
      Table& numbers = table_of(dtypes::int64);
      table.starts.push_back({numbers.singles.size(), table.lists.size()});
      at = single(dtypes::index, 0);
    }
    table.lists.insert(table.lists.end(), values.begin(), values.end());
    return element(table, type, index_add(arena_, place, at));
  }
  // A number that is the same in all steps.
  UOp single(DType type, uint64_t bits) {
    Table& table = table_of(type.is_index() ? dtypes::int64 : type);
    table.singles.push_back(bits);
    return element(table, type, index_const(arena_, int64_t(table.singles.size() - 1)));
  }
  UOp element(const Table& table, DType type, UOp at) {
    const UOp value = load(index(table.global, at));
    return type.is_index() ? cast(value, type) : value;
  }

  // ---- sizes

  // A size or a stride of the body's first statement, in the statement that runs.
  UOp number_in(const std::vector<int64_t>& varying, int64_t number, size_t first) const {
    const auto at = std::ranges::find(varying, number);
    if (at == varying.end()) return index_const(arena_, number);
    return parameters_[first + size_t(at - varying.begin())];
  }
  UOp size_of(int64_t size) const {
    return number_in(body_->varying_sizes, size, body_->first_varying);
  }
  size_t varying_strides() const { return body_->first_varying + body_->varying_sizes.size(); }
  UOp loop_over(int64_t size, AxisType axis) {
    const UOp count = size_of(size);
    return range(arena_, count.is_const() ? Dim(size) : Dim(count), arena_.fresh_id(), axis);
  }

  // ---- one body

  // The write, and the loops over its elements.
  UOp store_of(const LoopBody& body, std::vector<UOp>& loops) {
    const bool accumulates = body.store && body.store.accumulates();
    IndexList at;
    std::vector<UOp> elements;
    for (const int64_t size : body.sizes) {
      at.push_back(size == 1 ? index_const(arena_, 0) : loop_over(size, AxisType::kLoop));
      if (size > 1) elements.push_back(at.back());
    }
    computed_.clear();
    UOp gate;
    UOp value = value_of(body.value, at);
    // What is there is read again for each element.
    if (accumulates) waits_.insert(waits_.end(), elements.begin(), elements.end());
    const UOp place = place_of_target(body, at, gate);
    if (accumulates) value = binary(body.store.arg_op(), load(place), value);
    std::vector<UOp> srcs{place, value};
    if (gate) srcs.push_back(gate);
    const UOp store = arena_.make(Op::STORE, dtypes::void_, srcs);
    for (UOp r : elements) {
      if (is_in_scope(r, store)) loops.push_back(r);  // else it is done once
    }
    return store;
  }

  UOp place_of_target(const LoopBody& body, const IndexList& at, UOp& gate) {
    if (body.indices.empty()) return element_at(body.target, parameters_[0], at);
    const Named named = named_elements(body.store.src(0), body.indices, at);
    gate = named.gate;
    return element_at(body.target, parameters_[0], named.at);
  }

  // A pointer to the element `at` of a region that begins at `first`.
  UOp element_at(const LoopLeaf& leaf, UOp first, const IndexList& at) {
    UOp offset = first;
    const std::span<const Region::Axis> axes = leaf.region.axes();
    for (size_t i = 0; i < axes.size(); i++) {
      const UOp stride = number_in(body_->varying_strides, axes[i].stride, varying_strides());
      if (axes[i].size > 1) offset = index_add(arena_, offset, index_mul(arena_, at[i], stride));
    }
    return index(pointer_to(buffers_.of(leaf)), offset);
  }

  UOp pointer_to(UOp memory) {
    auto known = std::ranges::find_if(globals_, [&](const auto& g) { return g.first == memory; });
    if (known == globals_.end()) {
      globals_.emplace_back(
          memory, define_global(arena_, memory.dtype(), memory.src(0), arena_.fresh_id()));
      known = globals_.end() - 1;
    }
    const bool is_written = std::ranges::find(written_, memory) != written_.end();
    return is_written && !waits_.empty() ? after(known->second, waits_) : known->second;
  }

  // An item at a place of its shape.
  UOp value_of(uint32_t number, IndexList at) {
    const LoopItem& item = body_->items[number];
    if (shape_of(item.node).empty()) at.clear();
    std::vector<uint32_t> ids;
    for (UOp i : at) ids.push_back(i.id());
    const std::pair key(number, std::move(ids));
    if (const auto known = computed_.find(key); known != computed_.end()) return known->second;
    const UOp value = compute(item, at);
    computed_.emplace(key, value);
    return value;
  }

  UOp compute(const LoopItem& item, const IndexList& at) {
    const UOp n = item.node;
    if (item.kind == Kind::kScalar) return parameters_[item.parameter];
    if (item.kind == Kind::kIota) return cast(at[0], n.dtype());
    if (item.kind == Kind::kRead) {
      return load(element_at(*item.leaf, parameters_[item.parameter], at));
    }
    if (item.kind == Kind::kMove) return moved(item, n, at);
    if (item.kind == Kind::kGather) return gathered(item, at);
    if (n.is(Op::REDUCE_AXIS)) return reduced(item, at);
    std::vector<UOp> srcs;
    srcs.reserve(item.sources.size());
    for (const uint32_t s : item.sources) srcs.push_back(value_of(s, at));
    return arena_.make(n.op(), n.dtype(), srcs, arg_of(n));
  }

  // Movement ops on top of `chain`, on the source 0 of the item.
  UOp moved(const LoopItem& item, UOp n, const IndexList& at) {
    if (!body_->varying_sizes.empty()) {
      const Access access = moved_by_sizes(n, at);
      return gated(value_of(item.sources[0], access.at), access.gate, n.dtype());
    }
    const Access access = follow_views(arena_.with_srcs(n, with_stub(n)), at);
    return gated(value_of(item.sources[0], access.at), access.gate, n.dtype());
  }
  // The same where the sizes of n are those of the first statement.
  Access moved_by_sizes(UOp n, const IndexList& at) {
    const Shape from = shape_of(n.src(0));
    Access access;
    if (n.is(Op::RESHAPE) && keeps_long_axes(sizes_of(n.src(0)), sizes_of(n))) {
      size_t next = 0;
      for (const Dim size : from) {
        while (!size.is(1) && shape_of(n)[next].is(1)) next++;
        access.at.push_back(size.is(1) ? index_const(arena_, 0) : at[next++]);
      }
      return access;
    }
    if (!n.is(Op::FLIP) && !n.is(Op::PAD))
      return follow_views(arena_.with_srcs(n, with_stub(n)), at);
    access.at = at;
    for (size_t i = 0; i < from.size(); i++) {
      const UOp size = size_of(from[i].value());
      if (n.is(Op::PAD)) {
        access.at[i] = index_add(arena_, at[i], index_const(arena_, -n.src(1 + i).const_int()));
        if (from[i] == shape_of(n)[i]) continue;
        const auto is_less = [&](UOp a, UOp b) {
          return arena_.make(Op::CMPLT, dtypes::bool_, {a, b});
        };
        access.gate =
            index_and(arena_, access.gate, is_less(index_const(arena_, -1), access.at[i]));
        access.gate = index_and(arena_, access.gate, is_less(access.at[i], size));
      } else if (std::ranges::find(n.ints(), int64_t(i)) != n.ints().end()) {
        const UOp last = index_add(arena_, size, index_const(arena_, -1));
        access.at[i] = index_add(arena_, last, index_mul(arena_, at[i], index_const(arena_, -1)));
      }
    }
    return access;
  }
  static std::vector<int64_t> sizes_of(UOp n) {
    std::vector<int64_t> sizes;
    for (const Dim d : shape_of(n)) sizes.push_back(d.value());
    return sizes;
  }
  UOp gated(UOp value, UOp gate, DType type) {
    return gate ? where(gate, value, constant_bits(arena_, type, 0)) : value;
  }
  // The sources of a movement op on a value that is nothing but its shape.
  std::vector<UOp> with_stub(UOp n) {
    std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
    if (is_movement(srcs[0].op())) srcs[0] = arena_.make(Op::CONTIGUOUS, n.dtype(), {srcs[0]});
    return srcs;
  }

  UOp reduced(const LoopItem& item, const IndexList& at) {
    const UOp n = item.node;
    const Shape shape = shape_of(n.src(0));
    IndexList below = at;
    std::vector<UOp> loops;
    for (const int64_t axis : n.ints()) {
      if (shape[size_t(axis)].is(1)) continue;
      below[size_t(axis)] = loop_over(shape[size_t(axis)].value(), AxisType::kReduce);
      loops.push_back(below[size_t(axis)]);
    }
    const UOp value = value_of(item.sources[0], below);
    if (!loops.empty()) return reduce(n.arg_op(), value, loops);
    const bool is_sum_of_floats = n.arg_op() == Op::ADD && n.dtype().is_float();
    return is_sum_of_floats ? value + constant(arena_, n.dtype(), 0.0) : value;
  }

  // ---- elements that integers name

  struct Named {
    IndexList at;  // of what is beneath the movement ops of the INDEX
    UOp gate{};    // null: all are in range
  };
  Named named_elements(UOp n, std::span<const uint32_t> items, const IndexList& at) {
    Named named;
    const Shape shape = shape_of(n.src(0));
    IndexList within;
    for (size_t i = 0; i < shape.size(); i++) {
      const UOp integer = value_of(items[i], at);
      const UOp index = integer.dtype().is_index() ? integer : cast(integer, dtypes::index);
      const UOp zero = index_const(arena_, 0), size = shape[i].as_uop(arena_);
      const UOp last = index_const(arena_, shape[i].value() - 1);
      named.gate =
          index_and(arena_, named.gate,
                    arena_.make(Op::CMPLT, dtypes::bool_, {index_const(arena_, -1), index}));
      named.gate =
          index_and(arena_, named.gate, arena_.make(Op::CMPLT, dtypes::bool_, {index, size}));
      within.push_back(arena_.make(Op::MAX, dtypes::index,
                                   {arena_.make(Op::MIN, dtypes::index, {index, last}), zero}));
    }
    UOp base = n.src(0);
    std::vector<UOp> ops;
    while (is_movement(base.op()) && !is_base_of(base)) {
      ops.push_back(base);
      base = base.src(0);
    }
    named.at = within;
    for (UOp op : ops) {
      const Access access = follow_views(arena_.with_srcs(op, with_stub(op)), named.at);
      named.at = access.at;
      named.gate = index_and(arena_, named.gate, access.gate);
    }
    return named;
  }
  // What a gather stands on is the first of its sources that is no movement op, or is kept.
  bool is_base_of(UOp n) const { return base_ && n == base_; }

  UOp gathered(const LoopItem& item, const IndexList& at) {
    base_ = body_->items[item.sources[0]].node;
    const Named named = named_elements(item.node, std::span(item.sources).subspan(1), at);
    base_ = {};
    return gated(value_of(item.sources[0], named.at), named.gate, item.node.dtype());
  }

  Arena& arena_;
  const LoopProgram& program_;
  LoopCounts counts_;
  const LoopBuffers& buffers_;
  std::string device_;
  Tables& tables_;
  // Numbers of little work come from tables: the same kernel then serves programs that differ in
  // them. A compilation costs more than they do.
  enum class Numbers : uint8_t { kFormulas, kTables };
  Numbers numbers_in_ = Numbers::kFormulas;
  std::map<std::pair<uint32_t, Numbers>, Table> tables_by_type_;
  std::vector<std::pair<UOp, UOp>> globals_;  // BUFFER, DEFINE_GLOBAL
  std::vector<UOp> written_;                  // BUFFERs
  // Of the body that is added:
  const LoopBody* body_ = nullptr;
  UOp step_;  // its number among those of the body
  UOp base_;
  std::vector<UOp> waits_;
  std::vector<UOp> parameters_;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, UOp> computed_;  // items at ids of indices
};

}  // namespace

LoopKernel loop_kernel(const LoopProgram& program, std::span<const LoopStep> steps, StepOrder order,
                       LoopCounts counts, const LoopBuffers& buffers, const std::string& device,
                       Tables& tables) {
  Arena& arena = buffers.memories.empty() ? buffers.slots[0].arena() : buffers.memories[0].arena();
  return Builder(arena, program, counts, buffers, device, tables).run(steps, order);
}

double most_iterations(const LoopProgram& program, std::span<const LoopStep> steps) {
  double all = 0;
  for (const Runs& r : runs_of(steps, program.bodies.size())) {
    const auto most = double(std::ranges::max(r.counts));
    all += double(r.counts.size()) * most * program.bodies[r.body].work;
  }
  return all;
}

}  // namespace weft
