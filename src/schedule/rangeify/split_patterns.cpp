// Rules and renumbering of one kernel.
#include "schedule/rangeify/split_patterns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "rewrite/pattern.h"
#include "rewrite/rule.h"
#include "rewrite/rule_set.h"
#include "schedule/rangeify/kernel_context.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {
using namespace names;

// ---- before the split

bool never_runs(std::span<const UOp> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [](UOp r) {
    return r.is(Op::RANGE) && r.src(0).is_const() && r.src(0).const_int() == 0;
  });
}

UOp reduce_of_nothing(Match& m) {
  const UOp n = m.root();
  if (!never_runs(n.srcs().subspan(1))) return {};
  return constant_bits(m.arena(), n.dtype(), *identity_bits(n.arg_op(), n.dtype()));
}

// A reduction of a value that its loop does not change: of integers, and by ops that do not count.
UOp reduce_of_same(Match& m) {
  constexpr OpSet k_idempotent = {Op::MAX, Op::MIN, Op::AND, Op::OR};
  const UOp n = m.root();
  Arena& arena = m.arena();
  UOp value = n.src(0);
  std::vector<UOp> kept;
  for (UOp r : n.srcs().subspan(1)) {
    const bool is_fixed = r.is(Op::RANGE) && r.src(0).is_const() && !is_in_scope(r, value);
    if (is_fixed && k_idempotent.has(n.arg_op())) continue;
    if (is_fixed && n.arg_op() == Op::ADD && n.dtype().is_int()) {
      const uint64_t times = bits_of_int(n.dtype(), r.src(0).const_int());
      value = value * constant_bits(arena, n.dtype(), times);
      continue;
    }
    kept.push_back(r);
  }
  if (kept.size() + 1 == n.src_count()) return {};
  return kept.empty() ? value : reduce(n.arg_op(), value, kept);
}

UOp after_no_runs(Match& m) {
  const UOp n = m.root();
  std::vector<UOp> srcs{n.src(0)};
  for (UOp s : n.srcs().subspan(1)) {
    if (!(s.is(Op::END) && never_runs(s.srcs().subspan(1)))) srcs.push_back(s);
  }
  if (srcs.size() == n.src_count()) return {};
  return srcs.size() == 1 ? n.src(0) : m.arena().with_srcs(n, srcs);
}

// A write that a loop does not change, as simplifying has shown, is done once.
UOp end_of_same(Match& m) {
  const UOp n = m.root();
  if (!n.src(0).is(Op::STORE) || n.src(0).accumulates()) return {};
  std::vector<UOp> srcs{n.src(0)};
  for (UOp r : n.srcs().subspan(1)) {
    const bool may_not_run = !r.src(0).is_const();
    if (is_in_scope(r, n.src(0)) || may_not_run) srcs.push_back(r);
  }
  if (srcs.size() == n.src_count() || never_runs(n.srcs().subspan(1))) return {};
  return srcs.size() == 1 ? n.src(0) : m.arena().with_srcs(n, srcs);
}

// clang-format off
constexpr Rule kBeforeSplitRules[] = {
    rule("reduce-of-nothing", op(Op::REDUCE, rest), reduce_of_nothing),
    rule("reduce-of-same", op(Op::REDUCE, rest), reduce_of_same),
    rule("after-no-runs", op(Op::AFTER, rest), after_no_runs),
    rule("end-of-same", op(Op::END, rest), end_of_same),
};
// clang-format on

// ---- one kernel

// Copies what one kernel computes, down to memory as the kernel finds it.
class KernelCopy {
 public:
  KernelCopy(Arena& into, KernelContext& context, UOp sink)
      : into_(into), c_(context), done_(sink.arena()) {}

  UOp run(UOp sink) {
    std::vector<UOp> stack{sink};
    while (!stack.empty()) {
      const UOp n = stack.back();
      const std::span<const UOp> needed = needs(n);
      const size_t before = stack.size();
      for (UOp s : needed) {
        if (!done_.has(s)) stack.push_back(s);
      }
      if (stack.size() > before) continue;
      if (!done_.has(n)) done_.put(n, copied(n));
      stack.pop_back();
    }
    return done_.get(sink);
  }

 private:
  bool is_memory(UOp n) const {
    if (n.is(Op::AFTER)) return n.src_count() > 1 && c_.is_outside(n.src(1));
    return n.is(Op::BUFFER) || (n.is(Op::DEFINE_GLOBAL) && n.dtype().is_pointer());
  }
  std::span<const UOp> needs(UOp n) const {
    if (is_memory(n)) return memory_of(n).srcs().first(1);  // its size
    if (n.is(Op::BIND)) return n.srcs().first(1);
    return n.srcs();
  }

  UOp copied(UOp n) {
    if (is_memory(n)) return debuf(n);
    if (n.is(Op::BIND)) return unbind_kernel(n);
    if (n.is(Op::AFTER)) return handle_after(n);
    sources(n);
    return into_.make(n.op(), n.dtype(), srcs_, arg_of(n));
  }

  UOp debuf(UOp memory) {
    const UOp base = memory_of(memory), size = done_.get(base.src(0));
    const UOp own = define_global(into_, base.dtype().pointee(), size, into_.fresh_id());
    c_.memories.emplace_back(own, memory);
    return own;
  }

  // Memory AFTER the kernel's own writes: it may be a pointer by now.
  UOp handle_after(UOp n) {
    sources(n);
    return into_.make(Op::AFTER, srcs_[0].dtype(), srcs_);
  }

  UOp unbind_kernel(UOp n) {
    c_.variables.push_back(n);
    return done_.get(n.src(0));
  }

  void sources(UOp n) {
    srcs_.clear();
    for (UOp s : n.srcs()) srcs_.push_back(done_.get(s));
  }

  Arena& into_;
  KernelContext& c_;
  NodeMap done_;
  std::vector<UOp> srcs_;
};

UOp load_element(Match& m) {
  const UOp n = m.root();
  if (!n.src(0).dtype().is_pointer() || n.dtype().is_pointer()) return {};
  return load(m.arena().with_srcs(n, n.srcs(), n.src(0).dtype()));
}

UOp store_to_place(Match& m) {
  const UOp n = m.root();
  if (!n.dtype().is_void() || !n.src(0).is(Op::LOAD)) return {};
  std::vector<UOp> srcs(n.srcs().begin(), n.srcs().end());
  srcs[0] = srcs[0].src(0);
  return m.arena().with_srcs(n, srcs);
}

UOp drop_mark(Match& m) { return m.root().src(0); }

UOp range_of_one(Match& m) {
  const UOp size = m.root().src(0);
  if (!size.is_const() || size.const_int() != 1) return {};
  return constant(m.arena(), m.root().dtype(), int64_t(0));
}

// An index that was an integer on its way, in range of each, is the index itself.
UOp index_of_index(Match& m) {
  if (!m.root().dtype().is_index()) return {};
  for (UOp n = m.root().src(0); n.is(Op::CAST) && n.dtype().is_int(); n = n.src(0)) {
    const UOp from = n.src(0);
    if (!from.dtype().is_int() && !from.dtype().is_index()) return {};
    const Interval own = bounds(from), all = bounds_of(n.dtype());
    if (own.lo < all.lo || own.hi > all.hi) return {};
    if (from.dtype().is_index()) return from;
  }
  return {};
}

// Loops that a rule has replaced by 0 are closed no more.
UOp close_fewer(Match& m) {
  const UOp n = m.root();
  std::vector<UOp> srcs{n.src(0)};
  for (UOp r : n.srcs().subspan(1)) {
    if (r.is(Op::RANGE)) srcs.push_back(r);
  }
  if (srcs.size() == n.src_count()) return {};
  return srcs.size() == 1 ? n.src(0) : m.arena().with_srcs(n, srcs);
}

// clang-format off
constexpr Rule kKernelRules[] = {
    rule("load-element", op(Op::INDEX, rest), load_element),
    rule("store-to-place", op(Op::STORE, rest), store_to_place),
    rule("cleanup-mark", op({Op::CONTIGUOUS, Op::COPY}, rest), drop_mark),
    rule("cleanup-range-of-one", op(Op::RANGE, x), range_of_one),
    rule("cleanup-index-of-index", op(Op::CAST, x), index_of_index),
    rule("close-fewer", op({Op::END, Op::REDUCE}, rest), close_fewer),
};
// clang-format on

// Reductions of the same sizes in the same loops, none inside of another, run in the same loops.
UOp share_reduce_loops(UOp ast) {
  Arena& arena = ast.arena();
  NodeMap depths(arena), results(arena);
  using Key = std::tuple<uint64_t, std::vector<uint32_t>, std::vector<uint32_t>>;
  std::map<Key, std::vector<UOp>> shared;
  std::vector<UOp> srcs;
  visit_missing(
      ast, [&](UOp n) { return results.has(n); },
      [&](UOp n) {
        uint64_t depth = 1;
        srcs.clear();
        for (UOp s : n.srcs()) {
          depth = std::max(depth, depths.number(s));
          srcs.push_back(results.get(s));
        }
        UOp result = arena.with_srcs(n, srcs);
        if (n.is(Op::REDUCE)) {
          depth++;
          Key key{depth, {}, {}};
          for (UOp r : ranges_of(result)) std::get<1>(key).push_back(r.id());
          for (UOp r : result.srcs().subspan(1)) std::get<2>(key).push_back(r.src(0).id());
          const auto [at, is_first] = shared.try_emplace(std::move(key));
          const std::span<const UOp> own = result.srcs().subspan(1);
          if (is_first) {
            at->second.assign(own.begin(), own.end());
          } else {
            std::vector<std::pair<UOp, UOp>> pairs;
            pairs.reserve(own.size());
            for (size_t i = 0; i < own.size(); i++) pairs.emplace_back(own[i], at->second[i]);
            result = substitute(result, pairs);
          }
        }
        results.put(n, result);
        depths.put_number(n, depth);
      });
  return results.get(ast);
}

}  // namespace

const RuleSet& before_split_rules() {
  static const RuleSet kRules("before split", {{"before split", kAnyDType, kBeforeSplitRules}});
  return kRules;
}

const RuleSet& kernel_rules() {
  static const RuleSet kRules("kernel", {{"kernel", kAnyDType, kKernelRules}});
  return kRules;
}

UOp copy_kernel(Arena& into, UOp sink, KernelContext& context) {
  return KernelCopy(into, context, sink).run(sink);
}

UOp expand_accumulation(UOp ast) {
  Arena& arena = ast.arena();
  // What is there is read again in every iteration, also where its place turns out to be the same.
  const auto expanded = [&](UOp store, std::span<const UOp> ranges) {
    const UOp place = store.src(0);
    const UOp now = ranges.empty() ? place.src(0) : after(place.src(0), ranges);
    const UOp value = binary(store.arg_op(), load(index(now, place.src(1))), store.src(1));
    std::vector<UOp> srcs(store.srcs().begin(), store.srcs().end());
    srcs[1] = value;
    return arena.make(Op::STORE, dtypes::void_, srcs);
  };
  return rebuild(ast, [&](UOp n, std::vector<UOp>& srcs) {
    if (n.is(Op::END) && srcs[0].accumulates()) {
      srcs[0] = expanded(srcs[0], std::span(srcs).subspan(1));
    } else if (!n.is(Op::END)) {
      for (UOp& s : srcs) {
        if (s.accumulates()) s = expanded(s, {});
      }
    }
    return arena.with_srcs(n, srcs);
  });
}

UOp renumber_kernel(UOp ast, std::vector<UOp>& order) {
  ast = share_reduce_loops(ast);
  Arena& arena = ast.arena();
  const std::vector<UOp> nodes = toposort(ast);
  NodeMap seen(arena);
  const auto add = [&](UOp memory) {
    if (!memory.is(Op::DEFINE_GLOBAL) || seen.has(memory)) return;
    seen.put_number(memory, 1);
    order.push_back(memory);
  };
  for (UOp n : nodes) {
    if (n.is(Op::STORE)) add(memory_of(n.src(0)));
  }
  NodeMap numbers(arena);  // 1 + the new one
  int64_t loops = 0, registers = 0, locals = 0;
  for (UOp n : nodes) {
    add(n);
    if (n.is(Op::RANGE)) numbers.put_number(n, uint64_t(++loops));
    if (n.is(Op::DEFINE_REG)) numbers.put_number(n, uint64_t(++registers));
    if (n.is(Op::DEFINE_LOCAL)) numbers.put_number(n, uint64_t(++locals));
  }
  for (size_t i = 0; i < order.size(); i++) numbers.put_number(order[i], i + 1);
  return rebuild(ast, [&](UOp n, std::span<const UOp> srcs) {
    if (!numbers.has(n)) return arena.with_srcs(n, srcs);
    const auto number = int64_t(numbers.number(n) - 1);
    const Arg arg = n.is(Op::RANGE) ? Arg::range(number, n.axis()) : Arg::integer(number);
    return arena.make(n.op(), n.dtype(), srcs, arg);
  });
}

}  // namespace weft
