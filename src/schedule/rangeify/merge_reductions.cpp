// Each stored value with all that is stored for it alone is proposed as one kernel.
#include "schedule/rangeify/merge_reductions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/machine.h"
#include "schedule/rangeify/block_loops.h"
#include "schedule/rangeify/buffer_cost.h"
#include "schedule/rangeify/loop_order.h"
#include "schedule/rangeify/merge_rules.h"
#include "schedule/rangeify/stored_values.h"
#include "schedule/rangeify/substitute_ranges.h"
#include "schedule/schedule.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr double kLeastRows = 16;  // with fewer, the range itself is for several cores
// Columns and rows of products in tiles, and the side of one.
constexpr double kMostTile = 128, kLeastTiled = 32, kTile = 64;
constexpr double kClearly = 0.95;    // of a time: estimates that differ by less are the same
constexpr double kMostBlocks = 256;  // sums of blocks that are added up in a row
// Bytes of cache for each place of a block: of a core's own cache, which holds what several rows
// have there beside what they read, and of the nearest one, which holds a line that is read twice.
constexpr double kPlaceBytes = 4096, kLinePlaceBytes = 6;
constexpr int64_t kLeastBlock = 4, kMostBlock = 512, kMostLineBlock = 16384;

int64_t block_of(const Machine& machine, bool is_line) {
  const double places =
      is_line ? machine.levels[0].bytes / kLinePlaceBytes : machine.own_cache().bytes / kPlaceBytes;
  const auto whole = int64_t(std::bit_floor(uint64_t(std::max(places, 1.0))));
  return std::clamp(whole, kLeastBlock, is_line ? kMostLineBlock : kMostBlock);
}

// What is proposed.
struct Group {
  UOp value;                       // with what is put into it
  std::vector<uint32_t> put_in{};  // stored values
  BlockLoops loops{};
};

class Merger {
 public:
  Merger(UOp sink, const KernelLimits& limits)
      : sink_(sink),
        arena_(sink.arena()),
        limits_(limits),
        machine_(limits.machine),
        values_(stored_values(sink)),
        numbers_(arena_),
        owner_(arena_),
        replaced_(arena_) {
    machine_.units = 1;  // what is summed in which order is the same for any number of cores
    is_gone_.resize(values_.size());
    user_.resize(values_.size(), kNobody);
    for (size_t i = 0; i < values_.size(); i++) numbers_.put_number(values_[i].node, i + 1);
  }

  UOp run() {
    if (!has_candidates()) return sink_;
    note_users();
    bool has_changed = false;
    for (size_t i = values_.size(); i-- > 0;) has_changed = merge(uint32_t(i)) || has_changed;
    return has_changed ? rebuilt() : sink_;
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX, kSeveral = UINT32_MAX - 1;

  // ---- the graph as it is

  bool has_candidates() const {
    return std::ranges::any_of(values_, [](const StoredValue& v) {
      bool has_reduction = false;
      visit_computation(v.roots(), [&](UOp n) { has_reduction |= n.is(Op::REDUCE); });
      return has_reduction;
    });
  }

  void note_users() {
    const auto note = [&](UOp memory, uint32_t user) {
      for (; memory.is(Op::AFTER); memory = memory.src(0)) user = kSeveral;
      const uint64_t number = numbers_.number(memory);
      if (number == 0) return;
      uint32_t& known = user_[number - 1];
      known = known == kNobody || known == user ? user : kSeveral;
    };
    for (uint32_t i = 0; i < values_.size(); i++) {
      const StoredValue& v = values_[i];
      if (v.is_write) note(v.store().src(0).src(0), kSeveral);
      visit_computation(v.roots(), [&](UOp n) {
        if (is_read(n)) {
          note(n.src(0), i);
        } else if (n.is(Op::REDUCE)) {
          owner_.put_number(n, owner_.has(n) && owner_.number(n) != i + 1 ? kSeveral : i + 1);
        }
      });
    }
    for (UOp s : sink_.srcs()) note(s, kSeveral);
  }

  // ---- groups

  bool merge(uint32_t i) {
    const StoredValue& v = values_[i];
    if (v.is_write || is_gone_[i]) return false;
    std::optional<Group> best;
    Group group{v.value()};
    while (true) {
      if (const auto proposed = proposal(group, v); proposed && pays(*proposed, i)) {
        best = group;
        best->loops = proposed->loops;
      }
      if (!put_in_one(group, i)) break;
    }
    if (!best) return false;
    for (const uint32_t k : best->put_in) is_gone_[k] = true;
    // Without loops that follow each other, codegen does all of the group in tiles.
    const UOp value = limits_.sequences ? with_block_loops(best->value, best->loops) : best->value;
    std::vector<UOp> srcs(v.node.srcs().begin(), v.node.srcs().end());
    srcs[0] = arena_.make(Op::CONTIGUOUS, value.dtype(), {value});
    replaced_.put(v.node, arena_.with_srcs(v.node, srcs));
    return true;
  }

  // The group as one kernel would do it; none if none does.
  std::optional<Group> proposal(const Group& group, const StoredValue& v) const {
    Group out = group;
    std::vector<UOp> loops = loops_of(v.ranges());
    if (!limits_.sequences) split_loops(out.value, loops);
    if (!find_loops(out, loops) || (!limits_.sequences && !is_tiled(out.loops))) return {};
    return out;
  }

  // A loop whose quotient and remainder are what is asked for, as in two axes that are written as
  // one, is two loops. Codegen cuts it so, too.
  void split_loops(UOp& value, std::vector<UOp>& loops) const {
    for (size_t i = 0; i < loops.size(); i++) {
      const UOp loop = loops[i];
      if (!loop.is(Op::RANGE) || !loop.src(0).is_const()) continue;
      const int64_t size = loop.src(0).const_int();
      int64_t inner = 0;
      for (UOp n : toposort(value)) {
        const bool is_it = n.is(Op::IDIV) && n.src(0) == loop && n.src(1).is_const();
        if (is_it && n.src(1).const_int() > 1 && size % n.src(1).const_int() == 0)
          inner = n.src(1).const_int();
      }
      if (inner == 0 || inner == size) continue;
      const UOp high = range(arena_, Dim(size / inner), arena_.fresh_id()),
                low = range(arena_, Dim(inner), arena_.fresh_id());
      const UOp from[] = {loop}, to[] = {high * inner + low};
      value = simplify(substitute_ranges(value, from, to));
      loops[i] = high;
      loops.insert(loops.begin() + std::ptrdiff_t(i) + 1, low);
      i--;
    }
  }

  // Puts a value into the group that it is stored for alone, and that is read there once for each
  // place of a reduction's range and of loops around it.
  bool put_in_one(Group& group, uint32_t i) const {
    const std::vector<UOp> loops = loops_of(values_[i].ranges());
    std::vector<UOp> reads;
    std::vector<UOp> along;  // ranges of reductions
    uint32_t found = kNobody;
    visit_computation({&group.value, 1}, [&](UOp n) {
      if (n.is(Op::REDUCE) && n.src_count() == 2 && is_subset(ranges_of(n), loops))
        along.push_back(n.src(1));
      if (!is_read(n)) return;
      const uint64_t number = numbers_.number(n.src(0));
      if (number == 0 || is_gone_[number - 1] || values_[number - 1].is_write) return;
      const uint32_t user = user_[number - 1];
      const bool is_ours = user == i || (user < kSeveral && has(group.put_in, user));
      if (is_ours) reads.push_back(n);
    });
    for (UOp n : reads) {
      const auto number = uint32_t(numbers_.number(n.src(0)) - 1);
      const std::span<const UOp> same = {&reads[0], reads.size()};
      if (found == kNobody && is_read_along(n, number, same, along, loops)) found = number;
    }
    if (found == kNobody) return false;
    std::vector<std::pair<UOp, UOp>> pairs;
    for (UOp n : reads) {
      if (numbers_.number(n.src(0)) - 1 != found) continue;
      const StoredValue& v = values_[found];
      pairs.emplace_back(n, substitute_ranges(v.value(), v.ranges(), n.srcs().subspan(1)));
    }
    group.value = substitute(group.value, pairs);
    group.put_in.push_back(found);
    return true;
  }

  // All reads of the value are of one place, in terms of loops and of the range of a reduction.
  bool is_read_along(UOp read, uint32_t number, std::span<const UOp> reads,
                     std::span<const UOp> along, std::span<const UOp> loops) const {
    const std::optional<UOp> own = range_along(read, along, loops);
    if (!own || loops_of(values_[number].ranges()).size() != ranges_of_indices(read).size()) {
      return false;
    }
    return std::ranges::all_of(reads, [&](UOp n) {
      if (n.src(0) != read.src(0)) return true;
      const std::optional<UOp> other = range_along(n, along, loops);
      if (!other || other->src(0) != own->src(0)) return false;
      return substitute_ranges(n, {&*other, 1}, {&*own, 1}) == read;
    });
  }

  // The one range of a reduction that a read depends on, beside loops.
  static std::optional<UOp> range_along(UOp read, std::span<const UOp> along,
                                        std::span<const UOp> loops) {
    std::optional<UOp> found;
    for (UOp r : ranges_of_indices(read)) {
      if (has_range(along, r)) {
        if (found) return {};
        found = r;
      } else if (!has_range(loops, r)) {
        return {};
      }
    }
    return found;
  }

  static bool has(std::span<const uint32_t> list, uint32_t k) {
    return std::ranges::find(list, k) != list.end();
  }

  static std::vector<UOp> ranges_of_indices(UOp read) {
    std::vector<UOp> out;
    for (UOp i : read.srcs().subspan(1)) {
      for (UOp r : ranges_of(i)) {
        if (!has_range(out, r)) out.push_back(r);
      }
    }
    return out;
  }

  // The reductions of the value that can be done in one pass: all that there are.
  bool find_loops(Group& group, const std::vector<UOp>& loops) const {
    std::vector<UOp> reduces;
    bool is_possible = true;
    visit_computation({&group.value, 1}, [&](UOp n) {
      if (n.is(Op::DEFINE_REG) || n.is(Op::DEFINE_LOCAL)) is_possible = false;
      if (!n.is(Op::REDUCE) || !is_subset(ranges_of(n), loops)) return;
      reduces.push_back(n);
      const bool is_simple = n.src_count() == 2 && n.src(1).is(Op::RANGE) &&
                             n.src(1).src(0).is_const() && owner_.number(n) != kSeveral;
      is_possible = is_possible && is_simple;
    });
    if (!is_possible || reduces.size() < 2) return false;
    std::ranges::sort(reduces, {}, &UOp::id);  // sources first
    const UOp size = reduces[0].src(1).src(0);
    const UOp along = reduces[0].src(1);
    std::vector<std::pair<UOp, UOp>> bodies;
    for (UOp n : reduces) {
      if (n.src(1).src(0) != size) return false;
      const UOp from[] = {n.src(1)}, to[] = {along};
      bodies.emplace_back(n, substitute_ranges(n.src(0), from, to));
    }
    BlockLoops& out = group.loops;
    out = {.range = along};
    out.reductions = merged_reductions(bodies, along);
    if (out.reductions.size() != reduces.size()) return false;
    const auto around = [](UOp n) { return ranges_of(n).size(); };
    const std::span<const UOp> rows = ranges_of(*std::ranges::min_element(reduces, {}, around));
    out.rows.assign(rows.begin(), rows.end());
    const bool is_nested =
        std::ranges::all_of(reduces, [&](UOp n) { return is_subset(out.rows, ranges_of(n)); });
    if (!is_nested) return false;
    const int64_t places = size.const_int();
    const double least = std::ceil(double(places) / kMostBlocks);
    const bool is_line = staged_values(out).empty() && is_read_in_order(out);
    out.block = std::max(block_of(machine_, is_line), int64_t(least));
    out.end = end_of_places(out.reductions, along);
    if (out.end && !is_subset(ranges_of(out.end), out.rows)) out.end = {};
    return places >= 2 * out.block && weft::places(out.rows) >= kLeastRows;
  }

  // ---- tiles

  // A sum of products of float16 or bfloat16 numbers: the one that depends on a range, and the one
  // that does not.
  struct NarrowProduct {
    UOp with, without;
  };
  static std::optional<NarrowProduct> narrow_product(UOp reduce, UOp body, UOp range) {
    if (reduce.arg_op() != Op::ADD || reduce.dtype() != dtypes::float32 || !body.is(Op::MUL))
      return {};
    for (const size_t i : {0, 1}) {
      const UOp with = body.src(i), without = body.src(1 - i);
      const bool are_casts = with.is(Op::CAST) && without.is(Op::CAST);
      if (!are_casts || !is_in_scope(range, with) || is_in_scope(range, without)) continue;
      const DType type = with.src(0).dtype();
      const bool is_narrow = type == dtypes::float16 || type == dtypes::bfloat16;
      if (is_narrow && without.src(0).dtype() == type) return NarrowProduct{with, without};
    }
    return {};
  }

  // Whether codegen/opt/merged_tiles does it: maxima and sums of scores that are products, and
  // products of what they give, of rows and columns that fill tiles and fit into local memory.
  bool is_tiled(const BlockLoops& loops) const {
    std::vector<UOp> scores, columns, rows = loops.rows;
    DType type = dtypes::void_;
    double held = 0, of_block = 0;  // elements in local memory
    const auto take = [&](const std::optional<NarrowProduct>& p, UOp rows_of) {
      if (!p || (type != dtypes::void_ && type != p->with.src(0).dtype())) return false;
      type = p->with.src(0).dtype();
      // Rows are a loop of one factor alone.
      std::erase_if(rows, [&](UOp r) {
        const UOp other = rows_of == p->with ? p->without : p->with;
        return !is_in_scope(r, rows_of) || is_in_scope(r, other);
      });
      return true;
    };
    for (const MergedReduction& r : loops.reductions) {
      if (r.correction == Correction::kSquaredDeviations) return false;
      bool is_known = true;
      visit_computation({&r.body, 1}, [&](UOp n) {
        if (!n.is(Op::REDUCE) || !is_in_scope(loops.range, n) || has_range(scores, n)) return;
        scores.push_back(n);
        const auto p = narrow_product(n, n.src(0), loops.range);
        const auto sum = n.srcs().subspan(1);
        is_known = is_known && p && take(p, p->without) && sum.size() == 1 &&
                   sum[0].src(0).is_const() && places(sum) <= kMostTile;
        held += tile_places(places(sum)) * kTile * 2, of_block += tile_places(places(sum)) * kTile;
      });
      if (!is_known) return false;
      for (UOp c : ranges_of(r.reduce)) {
        if (has_range(loops.rows, c)) continue;
        const auto p = narrow_product(r.reduce, r.body, c);
        const bool is_other = !columns.empty() && columns[0] != c;
        if (is_other || !p || !take(p, p->without) || places({&c, 1}) > kMostTile) return false;
        columns.assign(1, c);
        of_block += tile_places(places({&c, 1})) * kTile;
      }
    }
    if (scores.empty() || columns.empty()) return false;
    std::vector<UOp> all = loops.rows;
    all.push_back(columns[0]);
    const bool is_known =
        std::ranges::all_of(all, [](UOp r) { return r.is(Op::RANGE) && r.src(0).is_const(); });
    constexpr double blocks = 3, bytes = 2, others = 8192;
    return is_known && (held + blocks * of_block) * bytes + others <= double(limits_.tile_bytes) &&
           std::ranges::any_of(rows, [](UOp r) { return places({&r, 1}) >= kLeastTiled; });
  }
  static double tile_places(double places) { return std::ceil(places / kTile) * kTile; }

  // What is read along the range lies side by side.
  static bool is_in_order(UOp read, UOp along) {
    int64_t step = 0;
    if (const auto sum = linear_sum(read.srcs().back())) {
      for (const Term& t : sum->terms) step = t.base == along ? t.coefficient : step;
    }
    return step == 1;
  }
  static bool is_read_in_order(const BlockLoops& loops) {
    bool all = true;
    for (const MergedReduction& r : loops.reductions) {
      visit_computation({&r.body, 1}, [&](UOp n) {
        if (!is_read(n) || !is_in_scope(loops.range, n)) return;
        all = all && is_in_order(n, loops.range);
      });
    }
    return all;
  }

  // ---- what it costs

  // What is computed and read, where nothing is done twice: each node once for each place of the
  // ranges that it depends on.
  struct Total {
    double operations = 0, bytes = 0;
    std::vector<std::pair<UOp, double>> distinct{};

    double among() const {
      double sum = 0;
      for (const auto& [memory, bytes_of] : distinct) sum += bytes_of;
      return sum;
    }
  };
  static Total total_of(std::span<const UOp> roots) {
    Total out;
    visit_computation(roots, [&](UOp n) {
      const double count = places(ranges_of(n));
      if (is_read(n)) {
        const double bytes = count * n.dtype().item_bytes();
        out.bytes += bytes;
        const auto at = std::ranges::find(out.distinct, n.src(0), &std::pair<UOp, double>::first);
        if (at == out.distinct.end()) {
          out.distinct.emplace_back(n.src(0), bytes);
        } else {
          at->second = std::max(at->second, bytes);
        }
      } else if (n.is(Op::REDUCE)) {
        out.operations += places(ranges_of(n.src(0)));
      } else if (!n.dtype().is_bool()) {
        out.operations += weight_of(n.op()) * count;
      }
    });
    return out;
  }

  // The kernels of the group as they are, against one that goes through blocks.
  bool pays(const Group& group, uint32_t i) const {
    double before = group.put_in.empty() ? again_ns(group) : 0;
    double near_bytes = 0;  // all that is read
    std::vector<uint32_t> all = group.put_in;
    all.push_back(i);
    for (const uint32_t k : all) {
      const UOp root[] = {values_[k].value()};
      const double size = places(values_[k].ranges());
      const double written = size * root[0].dtype().item_bytes();
      const Total own = total_of(root);
      before += machine_.launch_ns + bound({.operations = own.operations,
                                            .bytes = own.bytes + written,
                                            .among = own.among() + written,
                                            .parallel = size},
                                           machine_);
      near_bytes += own.bytes + (k == i ? written : 0);
    }
    std::vector<std::pair<UOp, UOp>> results;  // are at hand
    results.reserve(group.loops.reductions.size());
    for (const MergedReduction& r : group.loops.reductions) {
      results.emplace_back(r.reduce, constant_bits(arena_, r.reduce.dtype(), 0));
    }
    std::vector<UOp> roots{substitute(group.value, results)};
    double corrections = 0;
    const double blocks = places({&group.loops.range, 1}) / double(group.loops.block);
    for (const MergedReduction& r : group.loops.reductions) {
      roots.push_back(substitute(r.body, results));
      corrections += places(ranges_of(r.reduce)) * blocks * cost::kFunction;
    }
    const Total merged = total_of(roots);
    const double written = places(values_[i].ranges()) * values_[i].value().dtype().item_bytes();
    const KernelDemand demand{.operations = merged.operations + corrections,
                              .bytes = near_bytes,
                              .among = merged.among() + written,
                              .parallel = places(group.loops.rows)};
    const double after = machine_.launch_ns + bound(demand, machine_);
    return after < kClearly * before;
  }

  // What is read once for each reduction comes from afar each time, if all that lies along the
  // range does not stay in a core's cache.
  double again_ns(const Group& group) const {
    const BlockLoops& loops = group.loops;
    const double size = places({&loops.range, 1});
    double along = 0;
    for (const MergedReduction& r : loops.reductions) {
      double own = 0;
      visit_computation({&r.body, 1}, [&](UOp n) {
        if (!is_read(n) || !is_in_scope(loops.range, n)) return;
        const double item = n.dtype().item_bytes();
        own += size * (is_in_order(n, loops.range) ? item : std::max(item, machine_.line));
      });
      along = std::max(along, own);
    }
    if (along <= machine_.own_cache().bytes) return 0;
    const UOp root[] = {group.value};
    const double all = total_of(root).among();
    return all * byte_ns(all, machine_);
  }

  // ---- the new graph

  UOp rebuilt() {
    NodeMap done(arena_);
    std::vector<UOp> stack{sink_}, srcs;
    while (!stack.empty()) {
      const UOp n = stack.back();
      if (done.has(n)) {
        stack.pop_back();
        continue;
      }
      const UOp now = replaced_.has(n) ? replaced_.get(n) : n;
      const size_t before = stack.size();
      for (UOp s : now.srcs()) {
        if (!done.has(s)) stack.push_back(s);
      }
      if (stack.size() > before) continue;
      srcs.clear();
      for (UOp s : now.srcs()) srcs.push_back(done.get(s));
      done.put(n, arena_.with_srcs(now, srcs));
      stack.pop_back();
    }
    return done.get(sink_);
  }

  UOp sink_;
  Arena& arena_;
  const KernelLimits& limits_;
  Machine machine_;
  std::vector<StoredValue> values_;
  std::vector<uint32_t> user_;  // the one value that reads each
  std::vector<bool> is_gone_;   // it has been put into its user
  NodeMap numbers_;             // 1 + place in values_
  NodeMap owner_;               // of a REDUCE: 1 + the value that has it
  NodeMap replaced_;            // BUFFERIZE -> the new one
};

}  // namespace

UOp merge_reductions(UOp sink, const KernelLimits& limits) {
  return limits.sequences || limits.tile_bytes > 0 ? Merger(sink, limits).run() : sink;
}

}  // namespace weft
