// By memory, by the part of the index that is not constant, and by loops.
#include "codegen/widen_stores.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr int64_t kLeastLanes = 4;

// One write, alone or in the END around it.
struct Write {
  int64_t offset;
  UOp effect;
  UOp store() const { return effect.is(Op::END) ? effect.src(0) : effect; }
};

bool is_single_lane(UOp value) {
  return !value.dtype().is_vector() && (value.is_const() || value.is(Op::GEP));
}

bool is_candidate(UOp effect) {
  const UOp store = effect.is(Op::END) ? effect.src(0) : effect;
  return store.is(Op::STORE) && store.src_count() == 2 && !is_register(store.src(0)) &&
         store.src(0).is(Op::INDEX) && is_single_lane(store.src(1));
}

class Widener {
 public:
  Widener(UOp sink, const Target& target)
      : sink_(sink), arena_(sink.arena()), target_(target), is_found_(sink.arena()) {}

  UOp run() {
    for (UOp effect : sink_.srcs()) add(effect);
    for (auto& [key, writes] : groups_) widen(writes);
    if (instead_.empty()) return sink_;
    return rebuild(sink_, [&](UOp n, std::vector<UOp>& srcs) {
      if (const auto at = instead_.find(n); at != instead_.end()) return at->second;
      if (n != sink_) return arena_.with_srcs(n, srcs);
      std::vector<UOp> effects;
      for (UOp s : srcs) {
        if (std::ranges::find(effects, s) == effects.end()) effects.push_back(s);
      }
      return arena_.with_srcs(n, effects);
    });
  }

 private:
  void add(UOp effect) {
    if (!is_candidate(effect) || is_found_.has(effect)) return;
    is_found_.put_number(effect, 1);
    const UOp pointer = Write{0, effect}.store().src(0);
    std::optional<LinearSum> sum = linear_sum(pointer.src(1));
    if (!sum) return;
    const int64_t offset = std::exchange(sum->constant, 0);
    std::vector<uint32_t> key{pointer.src(0).id(), build_sum(arena_, *sum).id()};
    if (effect.is(Op::END)) {
      for (UOp r : effect.srcs().subspan(1)) key.push_back(r.id());
    }
    groups_[key].push_back({offset, effect});
  }

  // Runs of neighbours, cut into the powers of two that the target has.
  void widen(std::vector<Write>& writes) {
    std::ranges::stable_sort(writes, {}, &Write::offset);
    if (std::ranges::adjacent_find(writes, {}, &Write::offset) != writes.end()) return;
    const int64_t most = int64_t(target_.lanes(writes[0].store().src(1).dtype()));
    for (size_t begin = 0; begin < writes.size();) {
      size_t end = begin + 1;
      while (end < writes.size() && writes[end].offset == writes[end - 1].offset + 1) end++;
      while (begin < end) {
        const auto run = int64_t(std::bit_floor(end - begin));
        const int64_t lanes = std::min(run, most);
        if (lanes >= kLeastLanes) make_vector(std::span(writes).subspan(begin, size_t(lanes)));
        begin += size_t(std::max<int64_t>(lanes, 1));
      }
    }
  }

  void make_vector(std::span<const Write> writes) {
    std::vector<UOp> values, effects;
    for (const Write& w : writes) {
      values.push_back(w.store().src(1));
      effects.push_back(w.effect);
    }
    const auto lanes = uint16_t(values.size());
    const UOp value = arena_.make(Op::VECTORIZE, values[0].dtype().vec(lanes), values);
    const UOp pointer = writes[0].store().src(0);
    const UOp address = arena_.make(Op::CAST, pointer.dtype().vec(lanes), {pointer});
    UOp made = arena_.make(Op::STORE, dtypes::void_, {address, value});
    // What comes AFTER a write that may itself become another one stays as it is.
    const std::vector<UOp> below = toposort(made);
    if (std::ranges::any_of(below, [&](UOp n) { return is_found_.has(n); })) return;
    if (const UOp first = writes[0].effect; first.is(Op::END)) {
      std::vector<UOp> srcs(first.srcs().begin(), first.srcs().end());
      srcs[0] = made;
      made = arena_.with_srcs(first, srcs);
    }
    for (UOp effect : effects) instead_[effect] = made;
  }

  UOp sink_;
  Arena& arena_;
  const Target& target_;
  NodeMap is_found_;
  std::map<std::vector<uint32_t>, std::vector<Write>> groups_;
  std::unordered_map<UOp, UOp> instead_;
};

}  // namespace

UOp widen_stores(UOp sink, const Target& target) {
  return target.vector_arithmetic ? Widener(sink, target).run() : sink;
}

}  // namespace weft
