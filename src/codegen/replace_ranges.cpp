// Walks what stands in the scope of the ranges, and nothing else.
#include "codegen/replace_ranges.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {

UOp replace_ranges(UOp root, std::span<const std::pair<UOp, UOp>> replacements,
                   Registers registers) {
  Arena& arena = root.arena();
  const auto is_touched = [&](UOp n) {
    return std::ranges::any_of(replacements,
                               [&](const auto& r) { return is_in_scope(r.first, n); });
  };
  NodeMap results(arena);
  for (const auto& [from, to] : replacements) results.put(from, to);
  std::unordered_map<UOp, UOp> own;
  const auto own_register = [&](UOp reg) {
    UOp& copy = own[reg];
    if (!copy) copy = arena.make(Op::DEFINE_REG, reg.dtype(), {}, Arg::integer(arena.fresh_id()));
    return copy;
  };
  std::vector<UOp> srcs;
  visit_missing(
      root, [&](UOp n) { return results.has(n) || !is_touched(n); },
      [&](UOp n) {
        srcs.clear();
        for (UOp s : n.srcs()) {
          const UOp made = results.has(s) ? results.get(s) : s;
          if (n.is(Op::AFTER) && s.is(Op::RANGE) && made != s) {
            const std::span<const UOp> loops = ranges_of(made);  // it stands in these now
            srcs.insert(srcs.end(), loops.begin(), loops.end());
          } else {
            srcs.push_back(made);
          }
        }
        if (registers == Registers::kOwn && n.src_count() > 0 && n.src(0).is(Op::DEFINE_REG)) {
          srcs[0] = own_register(n.src(0));
        }
        const bool waits_for_nothing = n.is(Op::AFTER) && srcs.size() == 1;
        results.put(n, waits_for_nothing ? srcs[0] : arena.with_srcs(n, srcs));
      });
  return results.has(root) ? results.get(root) : root;
}

UOp flattened(UOp n, std::span<const UOp> srcs) {
  if (std::ranges::none_of(srcs, [](UOp s) { return s.is(Op::SINK); })) {
    return n.arena().with_srcs(n, srcs);
  }
  std::vector<UOp> all;
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
