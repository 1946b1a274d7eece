// Clean-ups before ranges, and of stored values before their cost is weighed.
#include "schedule/rangeify/patterns.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "ir/shape.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "schedule/rangeify/substitute_ranges.h"

namespace weft {
namespace {
using namespace names;

UOp first_source(Match& m) { return m.root().src(0); }

// Writes to no elements are none.
bool writes_nothing(UOp effect) {
  const UOp store = effect.is(Op::END) ? effect.src(0) : effect;
  if (!store.is(Op::STORE)) return false;
  const auto is_empty = [](UOp n) {
    return std::ranges::any_of(shape_of(n), [](Dim d) { return d.is(0); });
  };
  const UOp target = store.src(0);
  return is_empty(store) || (target.is(Op::INDEX) && is_empty(target.src(0)));
}

// A write that is done again by a later one is done once: later ones cover it.
UOp after_nothing(Match& m) {
  const UOp n = m.root();
  NodeMap later(m.arena());
  std::vector<UOp> srcs;
  for (size_t i = n.src_count(); i-- > 1;) {
    const UOp effect = n.src(i);
    const bool is_repeated = later.has(effect) && is_effect(effect.op()) && !effect.accumulates();
    if (writes_nothing(effect) || is_repeated) continue;
    later.put_number(effect, 1);
    srcs.push_back(effect);
  }
  if (srcs.empty()) return n.src(0);
  srcs.push_back(n.src(0));
  std::reverse(srcs.begin(), srcs.end());
  return srcs.size() == n.src_count() ? UOp() : m.arena().with_srcs(n, srcs);
}

// What another device is to have exists on its own first: a transfer moves memory as it lies.
UOp copy_of_computed(Match& m) {
  constexpr OpSet k_memory = {Op::BUFFER, Op::AFTER, Op::CONTIGUOUS, Op::COPY};
  const UOp n = m.root();
  UOp base = n.src(0);
  while (base.is(Op::RESHAPE)) base = base.src(0);
  if (k_memory.has(base.op())) return {};
  const UOp srcs[] = {contiguous(n.src(0)), n.src(1)};
  return m.arena().with_srcs(n, srcs);
}

// clang-format off
constexpr Rule kEarlyRules[] = {
    rule("detach", op(Op::DETACH, x), first_source),
    rule("contiguous-backward", op(Op::CONTIGUOUS_BACKWARD, x), first_source),
    rule("after-nothing", op(Op::AFTER, rest), after_nothing),
    rule("copy-of-computed", op(Op::COPY, x, y), copy_of_computed),
};
// clang-format on

bool must_be_stored(UOp bufferize) { return bufferize.src(0).is(Op::CONTIGUOUS); }

std::span<const UOp> tail(UOp n) { return n.srcs().subspan(1); }

// INDEX(BUFFERIZE(INDEX(m, i...), ranges...), at...) -> INDEX(m, i[ranges := at]...)
UOp index_of_copy(Match& m) {
  const UOp stored = m.root().src(0);
  if (!stored.is(Op::BUFFERIZE)) return {};
  const UOp value = stored.src(0);
  if (!value.is(Op::INDEX) && !value.is_const()) return {};
  return substitute_ranges(value, tail(stored), tail(m.root()));
}

// INDEX(BUFFERIZE(CAST(x), ranges...), at...) -> CAST(INDEX(BUFFERIZE(x, ranges...), at...))
// where x is narrower: memory holds what takes fewer bytes, and readers widen it.
UOp index_of_widened(Match& m) {
  const UOp n = m.root(), stored = n.src(0);
  if (!stored.is(Op::BUFFERIZE) || !stored.src(0).is(Op::CAST)) return {};
  const UOp narrow = stored.src(0).src(0);
  const DType type = narrow.dtype();
  if (type.is_index() || type.item_bytes() >= stored.dtype().item_bytes()) return {};
  const UOp memory = bufferize(narrow, tail(stored), stored.space());
  return cast(index(memory, tail(n)), n.dtype());
}

// A range that the value does not depend on becomes the index 0: the axis has one place.
UOp dead_axis(Match& m) {
  const UOp n = m.root();
  if (must_be_stored(n)) return {};
  std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
  for (size_t i = 1; i < srcs.size(); i++) {
    if (srcs[i].is(Op::RANGE) && !is_in_scope(srcs[i], n.src(0))) {
      srcs[i] = index_const(m.arena(), 0);
    }
  }
  const UOp result = m.arena().with_srcs(n, srcs);
  return result == n ? UOp() : result;
}

UOp index_of_dead_axis(Match& m) {
  const UOp n = m.root();
  if (!n.src(0).is(Op::BUFFERIZE)) return {};
  std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
  for (size_t i = 1; i < srcs.size(); i++) {
    if (!n.src(0).src(i).is(Op::RANGE)) srcs[i] = index_const(m.arena(), 0);
  }
  const UOp result = m.arena().with_srcs(n, srcs);
  return result == n ? UOp() : result;
}

// clang-format off
constexpr Rule kBufferizeRules[] = {
    rule("dead-axis", op(Op::BUFFERIZE, rest), dead_axis),
    rule("index-of-dead-axis", op(Op::INDEX, rest), index_of_dead_axis),
    rule("index-of-copy", op(Op::INDEX, rest), index_of_copy),
    rule("index-of-widened", op(Op::INDEX, rest), index_of_widened),
};
// clang-format on

}  // namespace

const RuleSet& early_rules() {
  static const RuleSet kRules("early", {{"early", kAnyDType, kEarlyRules}});
  return kRules;
}

const RuleSet& bufferize_rules() {
  static const RuleSet kRules("bufferize", {{"bufferize", kAnyDType, kBufferizeRules}});
  return kRules;
}

}  // namespace weft
