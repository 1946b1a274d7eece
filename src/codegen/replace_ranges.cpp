// Walks what stands in the scope of the ranges, and nothing else.
#include "codegen/replace_ranges.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {

namespace {

// What AFTER waits for, once a RANGE among it is an expression of others: it stands in those now.
void open_ranges(UOp after, std::vector<UOp>& srcs) {
  std::vector<UOp> waits{srcs[0]};
  for (size_t i = 1; i < srcs.size(); i++) {
    if (!after.src(i).is(Op::RANGE) || srcs[i].is(Op::RANGE)) {
      waits.push_back(srcs[i]);
      continue;
    }
    const std::span<const UOp> loops = ranges_of(srcs[i]);
    waits.insert(waits.end(), loops.begin(), loops.end());
  }
  srcs = std::move(waits);
}

// AFTER(local memory, RANGEs) alone: memory that each iteration of them has for itself.
bool opens_memory(UOp n) {
  return n.is(Op::AFTER) && n.src(0).is(Op::DEFINE_LOCAL) &&
         std::ranges::all_of(n.srcs().subspan(1), [](UOp s) { return s.is(Op::RANGE); });
}

}  // namespace

UOp replace_ranges(UOp root, std::span<const std::pair<UOp, UOp>> replacements,
                   Registers registers) {
  Arena& arena = root.arena();
  const auto is_kept = [&](UOp n) {
    return std::ranges::none_of(replacements,
                                [&](const auto& r) { return is_in_scope(r.first, n); });
  };
  std::unordered_map<UOp, UOp> own;
  const auto of_its_own = [&](UOp definition) {
    UOp& copy = own[definition];
    if (!copy) {
      copy = arena.make(definition.op(), definition.dtype(), definition.srcs(),
                        Arg::integer(arena.fresh_id()));
    }
    return copy;
  };
  return rebuild_part(root, is_kept, [&](UOp n, std::vector<UOp>& srcs) {
    for (const auto& [from, to] : replacements) {
      if (n == from) return to;
    }
    if (registers == Registers::kOwn && n.src_count() > 0) {
      const UOp first = n.src(0);
      if (first.is(Op::DEFINE_REG) || opens_memory(n) || own.contains(first)) {
        srcs[0] = of_its_own(first);
      }
    }
    if (n.is(Op::AFTER)) open_ranges(n, srcs);
    const bool waits_for_nothing = n.is(Op::AFTER) && srcs.size() == 1;
    return waits_for_nothing ? srcs[0] : arena.with_srcs(n, srcs);
  });
}

UOp with_simple_sizes(UOp root) {
  const std::vector<UOp> order = toposort(root);
  const auto may_change = [](UOp n) { return n.is(Op::RANGE) && !n.src(0).is_const(); };
  if (std::ranges::none_of(order, may_change)) return root;
  return rebuild(root, [&](UOp n, std::vector<UOp>& srcs) {
    if (may_change(n)) srcs[0] = simplify(srcs[0]);
    return n.arena().with_srcs(n, srcs);
  });
}

UOp flattened(UOp n, std::span<const UOp> srcs) {
  if (std::ranges::none_of(srcs, [](UOp s) { return s.is(Op::SINK); })) {
    return n.arena().with_srcs(n, srcs);
  }
  std::vector<UOp> all;
  if (n.is(Op::END)) {  // it closes the loops around each of them
    for (UOp effect : srcs[0].srcs()) {
      std::vector<UOp> closed(srcs.begin(), srcs.end());
      closed[0] = effect;
      all.push_back(n.arena().with_srcs(n, closed));
    }
    return n.arena().make(Op::SINK, dtypes::void_, all);
  }
  for (UOp s : srcs) {
    if (s.is(Op::SINK)) {
      all.insert(all.end(), s.srcs().begin(), s.srcs().end());
    } else {
      all.push_back(s);
    }
  }
  return n.arena().with_srcs(n, all);
}

}  // namespace weft
