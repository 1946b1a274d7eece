// Walks Values from the roots; all walks are iterative.
#include "value/closure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/op.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {

Closure::Closure(std::span<Value* const> roots) {
  try {
    for (Value* root : roots) visit(root);
  } catch (...) {
    unmark();
    throw;
  }
  for (Value* root : roots) node(*root).roots++;
}

Closure::~Closure() { unmark(); }

void Closure::unmark() noexcept {
  for (const Node& n : nodes_) n.value->mark_ = 0;
}

namespace {

constexpr uint32_t kOpened = UINT32_MAX;

// Values whose sources are being visited; `next` of them have been.
struct Opened {
  Value* value;
  size_t next;
};

}  // namespace

std::span<const Ref<Value>> Closure::sources_of(const Value& value) {
  if (value.is_staged()) return {};
  return value.sources();
}

void Closure::visit(Value* root) {
  if (root->mark_ != 0) return;
  std::vector<Opened> stack;
  const auto open = [&](Value* value) {
    stack.push_back({value, 0});
    value->mark_ = kOpened;
  };
  try {
    open(root);
    while (!stack.empty()) {
      auto& [value, next] = stack.back();
      if (next < sources_of(*value).size()) {
        Value* source = sources_of(*value)[next++].get();
        if (source->mark_ == 0) open(source);
        continue;
      }
      nodes_.push_back({.value = value, .is_filled = value->is_filled()});
      for (const Ref<Value>& source : sources_of(*value)) node(*source).edges++;
      if (value->is_staged() && !value->is_filled()) copies_.push_back(value);
      value->mark_ = uint32_t(nodes_.size());
      stack.pop_back();
    }
  } catch (...) {
    for (const Opened& opened : stack) opened.value->mark_ = 0;
    throw;
  }
}

void Closure::decide() {
  find_candidates();
  for (Node& n : nodes_) n.is_needed = n.roots > 0;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (nodes_[i].is_needed) need_sources(uint32_t(i));
    const Node& n = nodes_[i];
    if (n.is_taped) keep_for_gradients(n);
    if (!n.is_kept) continue;
    if (!n.is_stored()) {
      for (const Ref<Value>& source : sources_of(*n.value)) node(*source).is_kept = true;
    } else if (may_be_read_through(n)) {
      node(*n.value->sources()[1]).is_kept = true;
    }
  }
}

// What the tape goes on to hold when this is in memory, or nobody owns it any more.
void Closure::keep_for_gradients(const Node& n) {
  const auto sources = sources_of(*n.value);
  for (size_t i = 0; i < sources.size(); i++) {
    Node& source = node(*sources[i]);
    source.is_kept |= n.value->keeps_data_of(i);
    source.is_taped |= sources[i]->is_tracked();
  }
}

// A kept AFTER that may be in the pending stores of a Storage which has gone on since: a read there
// finds the value that was written until this schedule has run. Only one Storage surely is none.
bool Closure::may_be_read_through(const Node& n) {
  const uint32_t outside = n.value->owners() - n.edges - n.roots;
  return n.value->is(Op::AFTER) && (outside > 1 || n.value->storages() == 0);
}

void Closure::find_candidates() {
  for (Node& n : nodes_) {
    Value& v = *n.value;
    n.is_kept = v.owners() > n.edges;
    n.is_taped = v.is_tracked() && (v.owners() > n.edges + n.roots || v.is_step());
    if (n.is_filled) continue;
    n.is_free = v.is(Op::CONST) || v.is(Op::IOTA) || v.is(Op::BUFFER) || v.is_staged();
    n.reduces = v.is(Op::REDUCE_AXIS);
    for (const Ref<Value>& source : sources_of(v)) {
      const Node& s = node(*source);
      if (is_movement(v.op())) n.is_free = s.is_free;
      if (!s.is_candidate) n.reduces |= s.reduces;
    }
    if (v.is_guard()) node(*v.sources()[1]).is_candidate = true;  // somebody looks at it
    n.is_candidate = n.is_candidate || n.roots > 0 || (v.storages() > 0 && !n.is_free) ||
                     (n.is_kept && n.reduces);
  }
}

void Closure::need_sources(uint32_t index) {
  Value& v = *nodes_[index].value;
  if (!v.is(Op::AFTER) || nodes_[index].is_filled) {
    for (const Ref<Value>& source : sources_of(v)) node(*source).is_needed = true;
    return;
  }
  Chain chain = chain_of(v);
  for (const uint32_t write : chain.writes) {
    for (const Ref<Value>& source : nodes_[write].value->sources().subspan(1)) {
      node(*source).is_needed = true;
    }
  }
  if (!chain.hides_base) nodes_[chain.base].is_needed = true;
  chains_.push_back(std::move(chain));
  nodes_[index].chain = uint32_t(chains_.size());
}

Closure::Chain Closure::chain_of(const Value& top) {
  Chain chain{.base = 0, .writes = {index_of(top)}, .hides_base = false};
  const Value* old = top.sources()[0].get();
  while (old->is(Op::AFTER)) {
    const Node& n = node(*old);
    if (n.is_filled || n.is_candidate || n.edges > 1) break;
    chain.writes.push_back(index_of(*old));
    old = old->sources()[0].get();
  }
  chain.base = index_of(*old);
  drop_covered(chain, top.numel());
  std::reverse(chain.writes.begin(), chain.writes.end());
  return chain;
}

namespace {

// Disjoint intervals, neighbours merged: from key to value - 1.
class Intervals {
 public:
  bool has(Hull hull) const {
    auto after = spans_.upper_bound(hull.lo);
    return after != spans_.begin() && std::prev(after)->second >= hull.hi;
  }
  void add(Hull hull) {
    auto at = spans_.upper_bound(hull.lo);
    if (at != spans_.begin() && std::prev(at)->second >= hull.lo) {
      at = std::prev(at);
      hull.lo = at->first;
    }
    while (at != spans_.end() && at->first <= hull.hi) {
      hull.hi = std::max(hull.hi, at->second);
      at = spans_.erase(at);
    }
    spans_.emplace_hint(at, hull.lo, hull.hi);
  }

 private:
  std::map<int64_t, int64_t> spans_;
};

}  // namespace

// Writes stand newest first.
void Closure::drop_covered(Chain& chain, int64_t numel) {
  Intervals covered;
  std::vector<uint32_t> live;
  for (const uint32_t write : chain.writes) {
    const View view = nodes_[write].value->written();
    const Hull hull = hull_of(view);
    if (covered.has(hull)) continue;
    live.push_back(write);
    if (is_dense(view) && !nodes_[write].value->scatter()) covered.add(hull);
  }
  chain.writes = std::move(live);
  chain.hides_base = covered.has({0, numel});
}

}  // namespace weft
