// Walks Values from the roots; all walks are iterative.
#include "value/closure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ref.h"
#include "ir/op.h"
#include "value/deferred.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {

namespace {

constexpr size_t kMostSpare = size_t(1) << 18;  // Nodes

// The memory of a closure that has gone, for the next one: under the lock of realise there is one
// at a time, and the system would take large pieces back each time.
std::vector<Closure::Node>& spare() {
  static auto& nodes = *new std::vector<Closure::Node>;  // outlives every thread
  return nodes;
}

}  // namespace

Closure::Closure(std::span<Value* const> roots) {
  nodes_.swap(spare());
  try {
    for (Value* root : roots) visit(root);
  } catch (...) {
    unmark();
    throw;
  }
  for (Value* root : roots) nodes_[index_of(*root)].roots++;
}

Closure::~Closure() {
  unmark();
  if (nodes_.capacity() > kMostSpare || nodes_.capacity() < spare().capacity()) return;
  nodes_.clear();
  spare().swap(nodes_);
}

void Closure::unmark() noexcept {
  for (const Node& n : nodes_) n.value->mark_ = 0;
}

namespace {

constexpr uint32_t kOpened = UINT32_MAX;

constexpr size_t kAhead = 8;  // Values that are on their way from memory while one is looked at

// Values whose sources are being visited; `next` of them have been.
struct Opened {
  Value* value;
  std::span<const Ref<Value>> sources;
  size_t next;
};

}  // namespace

void Closure::visit(Value* root) {
  if (root->mark_ != 0) return;
  std::vector<Opened> stack;
  const auto open = [&](Value* value) {
    const std::span<const Ref<Value>> sources =
        value->is_staged() ? std::span<const Ref<Value>>() : value->sources();
    for (size_t i = 1; i < sources.size(); i++) __builtin_prefetch(sources[i].get());
    stack.push_back({value, sources, 0});
    value->mark_ = kOpened;
  };
  try {
    open(root);
    while (!stack.empty()) {
      Opened& top = stack.back();
      if (top.next < top.sources.size()) {
        Value* source = top.sources[top.next++].get();
        if (source->mark_ == 0) open(source);
        continue;
      }
      close(top.value, top.sources);
      stack.pop_back();
    }
  } catch (...) {
    for (const Opened& opened : stack) opened.value->mark_ = 0;
    throw;
  }
}

// All sources have their places.
void Closure::close(Value* value, std::span<const Ref<Value>> sources) {
  Node n{.value = value, .op = value->op(), .is_filled = value->is_filled()};
  for (const Ref<Value>& source : sources) {
    const uint32_t place = index_of(*source);
    n.places[n.source_count++] = place;
    nodes_[place].edges++;
  }
  if (value->is_staged() && !n.is_filled) copies_.push_back(value);
  if (value->pending_of_ != nullptr) pending_.push_back(value);
  nodes_.push_back(n);
  value->mark_ = uint32_t(nodes_.size());
}

std::vector<Ref<Value>> Closure::waiting_beneath(std::span<Value* const> roots) {
  std::vector<Ref<Value>> waiting;
  if (waiting_values() == 0) return waiting;
  std::vector<Value*> seen;
  std::vector<Opened> stack;
  const auto open = [&](Value* value) {
    if (value->mark_ != 0) return;
    value->mark_ = kOpened;
    seen.push_back(value);
    stack.push_back({value, value->sources(), 0});
  };
  for (Value* root : roots) {
    open(root);
    while (!stack.empty()) {
      Opened& top = stack.back();
      if (top.next < top.sources.size()) {
        open(top.sources[top.next++].get());
        continue;
      }
      if (is_waiting(*top.value)) waiting.emplace_back(top.value);
      stack.pop_back();
    }
  }
  for (Value* value : seen) value->mark_ = 0;
  return waiting;
}

void Closure::write_out(std::span<const Ref<Value>> waiting) {
  for (const Ref<Value>& value : waiting) {
    Ref<Value> formula = formula_of(*value);
    if (formula->dtype() != value->dtype() ||
        !std::ranges::equal(formula->shape(), value->shape())) {
      throw InternalError("[value] a formula gives another dtype or shape than it was to");
    }
    std::array<Ref<Value>, Value::kMostSources> released;
    const std::lock_guard lock(graph_mutex());
    count_waiting(*value, -1);
    for (size_t i = 0; i < value->source_count_; i++) released[i] = std::move(value->sources_[i]);
    value->sources_[0] = std::move(formula);
    value->source_count_ = value->read_count_ = 1;
    value->tail()[value->rank_ + detail::kState] = detail::kWrittenOut;
  }
}

void Closure::write_out_beneath(std::span<Value* const> roots) {
  if (waiting_values() == 0) return;
  std::vector<Ref<Value>> waiting;
  {
    const std::lock_guard lock(graph_mutex());
    waiting = waiting_beneath(roots);
  }
  write_out(waiting);
}

void Closure::drop_pending() {
  for (Value* version : pending_) Storage::drop_pending(*version);
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
      for (const uint32_t source : n.sources()) nodes_[source].is_kept = true;
    } else if (may_be_read_through(n)) {
      nodes_[n.places[1]].is_kept = true;
    }
  }
}

// What the tape goes on to hold when this is in memory, or nobody owns it any more.
void Closure::keep_for_gradients(const Node& n) {
  for (size_t i = 0; i < n.source_count; i++) {
    Node& source = nodes_[n.places[i]];
    source.is_kept |= n.value->keeps_data_of(i);
    source.is_taped |= source.value->is_tracked();
  }
}

// A kept AFTER that may be in the pending stores of a Storage which has gone on since: a read there
// finds the value that was written until this schedule has run. Only one Storage surely is none.
bool Closure::may_be_read_through(const Node& n) {
  if (!n.is(Op::AFTER)) return false;
  const uint32_t outside = n.value->owners() - n.edges - n.roots;
  return outside > 1 || n.value->storages() == 0;
}

void Closure::find_candidates() {
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (i + kAhead < nodes_.size()) __builtin_prefetch(nodes_[i + kAhead].value);
    Node& n = nodes_[i];
    const Value& v = *n.value;
    n.is_kept = v.owners() > n.edges;
    n.is_taped = v.is_tracked() && (v.owners() > n.edges + n.roots || v.is_step());
    if (n.is_filled) continue;
    n.is_free = n.is(Op::CONST) || n.is(Op::IOTA) || n.is(Op::BUFFER) || v.is_staged();
    n.reduces = n.is(Op::REDUCE_AXIS);
    for (const uint32_t source : n.sources()) {
      const Node& s = nodes_[source];
      if (is_movement(n.op) || is_deferred(v)) n.is_free = s.is_free;
      if (!s.is_candidate) n.reduces |= s.reduces;
    }
    if (v.is_guard()) nodes_[n.places[1]].is_candidate = true;  // somebody looks at it
    n.is_candidate = n.is_candidate || n.roots > 0 || (v.storages() > 0 && !n.is_free) ||
                     (n.is_kept && n.reduces);
  }
}

void Closure::need_sources(uint32_t index) {
  const Node& n = nodes_[index];
  if (!n.is(Op::AFTER) || n.is_filled) {
    for (const uint32_t source : n.sources()) nodes_[source].is_needed = true;
    return;
  }
  Chain chain = chain_of(index);
  for (const uint32_t write : chain.writes) {
    for (const uint32_t source : nodes_[write].sources().subspan(1)) {
      nodes_[source].is_needed = true;
    }
  }
  if (!chain.hides_base) nodes_[chain.base].is_needed = true;
  chains_.push_back(std::move(chain));
  nodes_[index].chain = uint32_t(chains_.size());
}

Closure::Chain Closure::chain_of(uint32_t top) {
  Chain chain{.base = 0, .writes = {top}, .hides_base = false};
  uint32_t old = nodes_[top].places[0];
  while (nodes_[old].is(Op::AFTER)) {
    const Node& n = nodes_[old];
    if (n.is_filled || n.is_candidate || n.edges > 1) break;
    chain.writes.push_back(old);
    old = n.places[0];
  }
  chain.base = old;
  drop_covered(chain, nodes_[top].value->numel());
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
  if (number_watch() != nullptr) return;  // for other numbers they may not be
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
