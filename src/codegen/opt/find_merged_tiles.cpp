// What a kernel computes -> the rows, places and columns of its products.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/opt/merged_tiles.h"
#include "codegen/opt/tensor_tiles.h"
#include "codegen/opt/tile_factors.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/merge_rules.h"

namespace weft {
namespace {

constexpr int64_t kMostColumns = 256;

int64_t size_of(UOp range) { return range.src(0).const_int(); }

bool has(std::span<const UOp> list, UOp n) { return std::ranges::find(list, n) != list.end(); }
bool is_within(UOp n, std::span<const UOp> loops) {
  return std::ranges::all_of(ranges_of(n), [&](UOp r) { return has(loops, r); });
}

// The same graph, where reductions that have no other in them, of one size, have one range: then
// equal ones are one node.
UOp with_shared_ranges(UOp sink) {
  std::map<int64_t, UOp> shared;
  std::unordered_set<UOp> reduced;
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    UOp made = n.arena().with_srcs(n, srcs);
    const bool is_outer = std::ranges::any_of(srcs, [&](UOp s) { return reduced.contains(s); });
    if (n.is(Op::REDUCE) && !is_outer && n.src_count() == 2 && n.src(1).src(0).is_const()) {
      const UOp range = shared.emplace(size_of(n.src(1)), n.src(1)).first->second;
      const std::pair<UOp, UOp> place{n.src(1), range};
      const std::array all = {replace_ranges(srcs[0], {&place, 1}), range};
      made = n.arena().with_srcs(n, all);
    }
    if (is_outer || n.is(Op::REDUCE)) reduced.insert(made);
    return made;
  });
}

std::optional<TileProduct> product_of(UOp reduce, UOp body, UOp sum) {
  if (reduce.arg_op() != Op::ADD || reduce.dtype() != dtypes::float32 || !body.is(Op::MUL))
    return {};
  const UOp a = half_of(body.src(0)), b = half_of(body.src(1));
  if (!a || !b || a.dtype() != b.dtype()) return {};
  return TileProduct{reduce, a, b, sum};
}

class Finder {
 public:
  Finder(UOp sink, int64_t axis) : sink_(sink), axis_(axis) {}

  FoundMergedTiles run() {
    const std::string why_not = look();
    return {out_, why_not};
  }

 private:
  std::string look() {
    loops_ = loops_of_all(sink_);
    if (loops_.empty()) return "there are writes in different loops";
    const UOp sink = with_shared_ranges(sink_);
    out_.ends.assign(sink.srcs().begin(), sink.srcs().end());
    const bool are_stores = std::ranges::all_of(
        out_.ends, [](UOp e) { return e.src(0).is(Op::STORE) && !is_register(e.src(0).src(0)); });
    if (!are_stores) return "it writes no memory";
    const bool is_bare = std::ranges::all_of(
        loops_, [](UOp r) { return r.axis() == AxisType::kGlobal && r.src(0).is_const(); });
    if (!is_bare) return "loops of it are cut already, or of no constant size";
    if (std::string why = find_reductions(sink); !why.empty()) return why;
    if (std::string why = find_scores(); !why.empty()) return why;
    return find_rows();
  }

  std::string find_reductions(UOp sink) {
    std::vector<UOp> reduces;
    for (UOp n : toposort(sink)) {
      if (n.is(Op::REDUCE) && is_within(n, loops_)) reduces.push_back(n);
      if (n.is(Op::RANGE) && n.range_id() == axis_) out_.along = n;
    }
    const bool is_of_it = out_.along && std::ranges::any_of(reduces, [&](UOp n) {
                            return n.src_count() == 2 && n.src(1) == out_.along;
                          });
    if (!is_of_it || reduces.size() < 2) return "it is not the range of one of several reductions";
    std::vector<std::pair<UOp, UOp>> bodies;
    for (UOp n : reduces) {
      const bool is_alike = n.src_count() == 2 && n.src(1).axis() == AxisType::kReduce &&
                            n.src(1).src(0) == out_.along.src(0);
      if (!is_alike || !n.src(1).src(0).is_const()) return "there are reductions over other ranges";
      const std::pair<UOp, UOp> place{n.src(1), out_.along};
      bodies.emplace_back(n, replace_ranges(n.src(0), {&place, 1}));
    }
    out_.reductions = merged_reductions(bodies, out_.along);
    const bool is_known = std::ranges::all_of(out_.reductions, [](const MergedReduction& r) {
      return r.correction != Correction::kSquaredDeviations;
    });
    return out_.reductions.size() == reduces.size() && is_known
               ? ""
               : "a reduction depends on another one in a way that has no rule";
  }

  std::string find_scores() {
    for (const MergedReduction& r : out_.reductions) {
      for (UOp n : toposort(r.body)) {
        if (!n.is(Op::REDUCE) || !is_in_scope(out_.along, n)) continue;
        const bool is_known =
            std::ranges::any_of(out_.scores, [&](const TileProduct& p) { return p.reduce == n; });
        if (is_known) continue;
        const bool is_simple = n.src_count() == 2 && n.src(1).src(0).is_const();
        auto p = is_simple ? product_of(n, n.src(0), n.src(1)) : std::nullopt;
        if (p && is_in_scope(out_.along, p->a)) std::swap(p->a, p->b);
        if (!p || is_in_scope(out_.along, p->a) || !is_in_scope(out_.along, p->b))
          return "what is reduced has another reduction in it";
        out_.scores.push_back(*p);
      }
    }
    return out_.scores.empty() ? "what is reduced has no products in it" : "";
  }

  // Rows are a loop of the scores' first factors alone, columns one of a product's second factor.
  std::string find_rows() {
    const auto fewest = std::ranges::min_element(
        out_.reductions, {}, [](const MergedReduction& r) { return ranges_of(r.reduce).size(); });
    const std::vector<UOp> around(ranges_of(fewest->reduce).begin(),
                                  ranges_of(fewest->reduce).end());
    bool has_product = false;
    for (const MergedReduction& r : out_.reductions) {
      out_.products.emplace_back();
      std::vector<UOp> free;
      for (UOp loop : ranges_of(r.reduce)) {
        if (!has(around, loop)) free.push_back(loop);
      }
      if (free.empty()) continue;
      if (free.size() != 1 || (out_.columns && out_.columns != free[0]))
        return "results have several columns";
      out_.columns = free[0];
      auto p = product_of(r.reduce, r.body, out_.along);
      if (p && is_in_scope(out_.columns, p->a)) std::swap(p->a, p->b);
      if (!p || is_in_scope(out_.columns, p->a) || !is_in_scope(out_.columns, p->b))
        return "a result with columns is no product";
      out_.products.back() = p;
      has_product = true;
    }
    if (!has_product) return "no result has columns";
    for (UOp loop : around) {
      const bool is_of_first = std::ranges::all_of(out_.scores, [&](const TileProduct& p) {
        return is_in_scope(loop, p.a) && !is_in_scope(loop, p.b);
      });
      const bool is_of_second = std::ranges::any_of(
          out_.products, [&](const auto& p) { return p && is_in_scope(loop, p->b); });
      if (!is_of_first || is_of_second) continue;
      if (!out_.rows || size_of(loop) > size_of(out_.rows)) out_.rows = loop;
    }
    if (!out_.rows) return "there are no rows";
    const DType type = out_.scores[0].a.dtype();
    for (const TileProduct& p : out_.scores) {
      if (p.a.dtype() != type) return "products are of several dtypes";
    }
    for (const auto& p : out_.products) {
      if (p && p->a.dtype() != type) return "products are of several dtypes";
    }
    return size_of(out_.columns) > kMostColumns ? "there are too many columns" : "";
  }

  UOp sink_;
  int64_t axis_;
  std::vector<UOp> loops_;
  MergedTiles out_;
};

}  // namespace

FoundMergedTiles find_merged_tiles(UOp sink, int64_t axis) { return Finder(sink, axis).run(); }

std::vector<int64_t> ranges_to_merge(UOp sink) {
  std::vector<int64_t> out;
  const std::vector<UOp> loops = loops_of_all(sink);
  if (loops.empty()) return out;
  for (UOp n : toposort(sink)) {
    if (n.is(Op::REDUCE) && n.src_count() == 2 && is_within(n, loops))
      out.push_back(n.src(1).range_id());
  }
  return out;
}

}  // namespace weft
