// Sets of ranges, each distinct set kept once: long chains in one loop share one.
#include "ir/scope.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/huge_vector.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/walk.h"

namespace weft {
namespace {

bool before(UOp a, UOp b) {
  if (a.range_id() != b.range_id()) return a.range_id() < b.range_id();
  return a.id() < b.id();
}

struct ScopeTable : Facts {
  static constexpr FactSlot kSlot = FactSlot::kScopes;
  HugeVector<uint32_t> of;  // 0: not computed; else 1 + the number of a set
  std::deque<std::vector<UOp>> sets{{}};
  std::map<std::vector<uint32_t>, uint32_t> numbers{{{}, 0}};  // by the ids of the ranges
  std::unordered_map<uint64_t, uint32_t> unions;

  size_t bytes() const override { return of.capacity() * sizeof(uint32_t); }
  bool has(UOp n) const { return n.id() < of.size() && of[n.id()] != 0; }
  void put(UOp n, uint32_t set) {
    if (n.id() >= of.size()) of.resize(std::max<size_t>(n.arena().size(), of.size() * 3 / 2));
    of[n.id()] = set + 1;
  }
  uint32_t number(std::vector<UOp> set) {
    std::vector<uint32_t> key;
    key.reserve(set.size());
    for (UOp r : set) key.push_back(r.id());
    auto [at, fresh] = numbers.emplace(std::move(key), uint32_t(sets.size()));
    if (fresh) sets.push_back(std::move(set));
    return at->second;
  }
  uint32_t unite(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    auto [at, fresh] = unions.emplace(uint64_t(std::min(a, b)) << 32 | std::max(a, b), 0);
    if (fresh) {
      std::vector<UOp> both;
      std::set_union(sets[a].begin(), sets[a].end(), sets[b].begin(), sets[b].end(),
                     std::back_inserter(both), before);
      at->second = number(std::move(both));
    }
    return at->second;
  }
  uint32_t remove(uint32_t from, std::span<const UOp> closed) {
    std::vector<UOp> left;
    for (UOp r : sets[from]) {
      if (std::find(closed.begin(), closed.end(), r) == closed.end()) left.push_back(r);
    }
    return number(std::move(left));
  }
};

constexpr OpSet kClosesRanges = {Op::END, Op::REDUCE, Op::BUFFERIZE};

uint32_t compute(UOp n, ScopeTable& t) {
  uint32_t set = 0;
  for (UOp s : n.srcs()) set = t.unite(set, t.of[s.id()] - 1);
  if (n.is(Op::RANGE)) return t.unite(set, t.number({n}));
  if (kClosesRanges.has(n.op()) && n.src_count() > 0) return t.remove(set, n.srcs().subspan(1));
  return set;
}

}  // namespace

std::span<const UOp> ranges_of(UOp root) {
  auto& table = root.arena().facts<ScopeTable>();
  visit_missing(
      root, [&](UOp n) { return table.has(n); }, [&](UOp n) { table.put(n, compute(n, table)); });
  return table.sets[table.of[root.id()] - 1];
}

bool is_in_scope(UOp range, UOp n) {
  const std::span<const UOp> ranges = ranges_of(n);
  return std::find(ranges.begin(), ranges.end(), range) != ranges.end();
}

}  // namespace weft
