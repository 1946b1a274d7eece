// outer * n + inner becomes one range: outer is its quotient by n, inner its remainder, and index
// arithmetic puts the two together.
#include "codegen/opt/merge_ranges.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kMostPlaces = int64_t(1) << 40;

bool are_neighbours(UOp closer, UOp outer, UOp inner) {
  const auto listed = closer.srcs().subspan(1);
  const auto at = std::ranges::find(listed, outer);
  return at != listed.end() && at + 1 != listed.end() && *(at + 1) == inner;
}

// Index arithmetic, which linear_sum sees through; all else uses its result.
bool is_arithmetic(UOp n) { return n.dtype().is_index() && is_elementwise(n.op()); }

bool is_walked_as_one(UOp index, UOp outer, UOp inner) {
  const std::optional<LinearSum> sum = linear_sum(index);
  if (!sum) return false;
  int64_t by_outer = 0, by_inner = 0, wanted = 0;
  for (const Term& t : sum->terms) {
    if (t.base == outer) {
      by_outer = t.coefficient;
    } else if (t.base == inner) {
      by_inner = t.coefficient;
    } else if (is_in_scope(outer, t.base) || is_in_scope(inner, t.base)) {
      return false;
    }
  }
  return !__builtin_mul_overflow(by_inner, inner.src(0).const_int(), &wanted) && by_outer == wanted;
}

// outer < c, which is a comparison of both as one, too.
bool compares_outer(UOp n, UOp outer, UOp inner) {
  if (!n.is(Op::CMPLT)) return false;
  const bool is_left = n.src(1).is_const();
  if (!is_left && !n.src(0).is_const()) return false;
  const std::optional<LinearSum> sum = linear_sum(n.src(is_left ? 0 : 1));
  return sum && sum->terms.size() == 1 && sum->terms[0].base == outer &&
         sum->terms[0].coefficient == 1 && !is_in_scope(inner, n);
}

bool uses_as_one(UOp n, UOp outer, UOp inner) {
  if (is_arithmetic(n) || compares_outer(n, outer, inner)) return true;
  const bool is_closer = n.is(Op::END) || n.is(Op::REDUCE);
  const auto used = n.srcs().subspan(0, is_closer ? 1 : n.src_count());
  return std::ranges::all_of(used, [&](UOp s) {
    const bool is_index = s.dtype().is_index() && (is_in_scope(outer, s) || is_in_scope(inner, s));
    return !is_index || is_walked_as_one(s, outer, inner);
  });
}

}  // namespace

std::string why_not_merge(UOp sink, UOp outer, UOp inner) {
  if (outer == inner || outer.axis() != inner.axis()) return "they are not two loops of one type";
  if (!inner.src(0).is_const()) return "the inner loop is not of constant size";
  if (!ranges_of(outer.src(0)).empty()) return "the size of the outer loop depends on a loop";
  const int64_t size = inner.src(0).const_int();
  if (size < 1 || bounds(outer.src(0)).hi > kMostPlaces / size) return "they have no such size";
  const std::vector<UOp> closers = closers_of(sink, outer);
  if (closers != closers_of(sink, inner) ||
      !std::ranges::all_of(closers, [&](UOp n) { return are_neighbours(n, outer, inner); })) {
    return "one is not the next inside of the other";
  }
  const std::vector<UOp> order = toposort(sink);
  return std::ranges::all_of(order, [&](UOp n) { return uses_as_one(n, outer, inner); })
             ? ""
             : "memory is not walked as if they were one";
}

UOp merge_ranges(UOp sink, UOp outer, UOp inner) {
  Arena& arena = sink.arena();
  const UOp size = inner.src(0);
  const UOp both = arena.make(Op::RANGE, outer.dtype(), {simplify(outer.src(0) * size)},
                              Arg::range(outer.range_id(), outer.axis()));
  const std::array<std::pair<UOp, UOp>, 2> places{{{outer, both / size}, {inner, both % size}}};
  const UOp merged = rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = arena.with_srcs(n, srcs);
    const bool is_closer = made.is(Op::END) || made.is(Op::REDUCE);
    if (!is_closer || !are_neighbours(made, outer, inner)) return made;
    std::vector<UOp> of_closer{replace_ranges(made.src(0), places)};
    for (UOp r : made.srcs().subspan(1)) {
      if (r != inner) of_closer.push_back(r == outer ? both : r);
    }
    return arena.with_srcs(made, of_closer);
  });
  return simplify(merged, nullptr, Loads::kStay);
}

}  // namespace weft
