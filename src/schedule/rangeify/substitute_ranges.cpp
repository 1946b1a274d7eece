// One walk over what depends on the ranges.
#include "schedule/rangeify/substitute_ranges.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/origins.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "schedule/rangeify/index_math.h"

namespace weft {
namespace {

// AFTER(register, ranges...) stands in these loops: in those of the indices that replace them.
void name_loops(std::vector<UOp>& srcs) {
  std::vector<UOp> named;
  for (UOp s : srcs) {
    if (!s.dtype().is_index() || s.is(Op::RANGE)) {
      named.push_back(s);
      continue;
    }
    for (UOp r : ranges_of(s)) {
      if (std::find(named.begin(), named.end(), r) == named.end()) named.push_back(r);
    }
  }
  srcs = std::move(named);
}

}  // namespace

UOp substitute_ranges(UOp value, std::span<const UOp> ranges, std::span<const UOp> at) {
  Arena& arena = value.arena();
  NodeMap done(arena);
  std::vector<UOp> replaced;
  for (size_t i = 0; i < ranges.size(); i++) {
    if (!ranges[i].is(Op::RANGE) || ranges[i] == at[i]) continue;
    done.put(ranges[i], at[i]);
    replaced.push_back(ranges[i]);
  }
  if (replaced.empty()) return value;
  const auto is_touched = [&](UOp n) {
    const std::span<const UOp> scope = ranges_of(n);
    return std::any_of(scope.begin(), scope.end(), [&](UOp r) {
      return std::find(replaced.begin(), replaced.end(), r) != replaced.end();
    });
  };
  std::vector<UOp> srcs;
  visit_missing(
      value,
      [&](UOp n) {
        if (done.has(n)) return true;
        if (is_touched(n)) return false;
        done.put(n, n);
        return true;
      },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) srcs.push_back(done.get(s));
        if (n.is(Op::INDEX)) {
          for (size_t i = 1; i < srcs.size(); i++) srcs[i] = simplify_index(srcs[i]);
        }
        if (n.is(Op::AFTER)) name_loops(srcs);
        done.put(n, followed(n, arena.with_srcs(n, srcs)));
      });
  return done.get(value);
}

}  // namespace weft
