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

#include "base/huge_pages.h"
#include "base/huge_vector.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "ir/op.h"
#include "value/call.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {

namespace {

// What lies in memory that was touched: pages past that cost nothing.
constexpr size_t kMostSpare = size_t(1) << 18;  // Nodes

// The memory of a closure that has gone, for the next one: under the lock of realise there is one
// at a time, and the system would take large pieces back each time.
HugeVector<Closure::Node>& spare() {
  static auto& nodes = *new HugeVector<Closure::Node>;  // outlives every thread
  return nodes;
}

// Under the lock of the graph: the first mark that no Value has yet.
uint64_t next_mark = 1;

}  // namespace

Closure::Closure(std::span<Value* const> roots) : first_mark_(next_mark) {
  nodes_.swap(spare());
  try {
    for (Value* root : roots) visit(root);
  } catch (...) {
    next_mark += nodes_.size();
    throw;
  }
  next_mark += nodes_.size();
  for (Value* root : roots) nodes_[index_of(*root)].roots++;
}

Closure::~Closure() {
  if (nodes_.size() > kMostSpare || nodes_.capacity() < spare().capacity()) return;
  nodes_.clear();
  spare().swap(nodes_);
}

namespace {

constexpr size_t kAhead = 8;  // Values that are on their way from memory while one is looked at

// A Value whose sources are being visited; `next` of them have been.
struct Opened {
  Value* value;
  size_t next;
};

// Values were mostly made in the order in which they are met: what lies behind one in memory has
// its turn soon.
void prefetch_behind(const Value* value) {
  constexpr size_t bytes = 1024;
  __builtin_prefetch(reinterpret_cast<const char*>(value) + bytes);
}

// Of a Value that is not in memory, and is not computed by other means.
std::span<const Ref<Value>> read_sources(const Value& value) {
  return value.is_staged() ? std::span<const Ref<Value>>() : value.sources();
}

}  // namespace

void Closure::visit(Value* root) {
  if (has(*root)) return;
  HugeVector<Opened> stack;
  const auto open = [&](Value* value) {
    const std::span<const Ref<Value>> sources = read_sources(*value);
    for (size_t i = 1; i < sources.size(); i++) __builtin_prefetch(sources[i].get());
    stack.push_back({value, 0});
  };
  open(root);
  while (!stack.empty()) {
    Opened& top = stack.back();
    const std::span<const Ref<Value>> sources = read_sources(*top.value);
    if (top.next < sources.size()) {
      Value* source = sources[top.next++].get();
      if (!has(*source)) open(source);
      continue;
    }
    if (stack.size() > kAhead) __builtin_prefetch(stack[stack.size() - kAhead].value);
    prefetch_behind(top.value);
    close(top.value, sources);
    stack.pop_back();
  }
}

// All sources have their places.
void Closure::close(Value* value, std::span<const Ref<Value>> sources) {
  Node n{.value = value, .op = value->op(), .is_filled = value->is_filled()};
  for (const Ref<Value>& source : sources) {
    const uint32_t place = index_of(*source);
    n.places[n.source_count++] = place;
    nodes_[place].edges++;
    if (n.source_count == 1 && n.is(Op::AFTER)) nodes_[place].nexts++;
  }
  note_holders(n);
  if (value->is_staged() && !n.is_filled) copies_.push_back(value);
  if (value->pending_of_ != nullptr) pending_.push_back(value);
  if (nodes_.size() == nodes_.capacity()) make_room();
  value->mark_ = first_mark_ + nodes_.size();
  nodes_.push_back(n);
}

// A large one is not moved again and again: it is no larger than all Values that are to be
// computed, and seldom much larger than that with those in memory.
void Closure::make_room() {
  const size_t large = kHugePage / sizeof(Node);
  if (nodes_.size() < large) return;
  nodes_.reserve(
      std::max(nodes_.size() * 2, size_t(std::max<int64_t>(pending_values(), 0)) + large));
}

std::vector<Ref<Value>> Closure::waiting_beneath(std::span<Value* const> roots) {
  std::vector<Ref<Value>> waiting;
  if (waiting_values() == 0) return waiting;
  const uint64_t mark = next_mark++;
  HugeVector<std::pair<Value*, uint64_t>> seen;  // with the marks of closures that there are
  HugeVector<Opened> stack;
  const auto open = [&](Value* value) {
    if (value->mark_ == mark) return;
    seen.emplace_back(value, std::exchange(value->mark_, mark));
    stack.push_back({value, 0});
  };
  for (Value* root : roots) {
    open(root);
    while (!stack.empty()) {
      Opened& top = stack.back();
      if (top.next < top.value->sources().size()) {
        open(top.value->sources()[top.next++].get());
        continue;
      }
      if (top.value->is_waiting()) waiting.emplace_back(top.value);
      stack.pop_back();
    }
  }
  for (const auto& [value, before] : seen) value->mark_ = before;
  return waiting;
}

void Closure::open_calls(std::span<const Ref<Value>> waiting) {
  const InterruptScope whole(InterruptScope::Kind::kNever);
  show_calls(waiting);
  for (const Ref<Value>& call : waiting) {
    Ref<Value> body = body_of(*call);
    std::array<Ref<Value>, Value::kMostSources> released;
    const std::lock_guard lock(graph_mutex());
    call->open(std::move(body), released);
  }
}

void Closure::open_calls_beneath(std::span<Value* const> roots) {
  if (waiting_values() == 0) return;
  std::vector<Ref<Value>> waiting;
  {
    const std::lock_guard lock(graph_mutex());
    waiting = waiting_beneath(roots);
  }
  open_calls(waiting);
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
    source.is_taped |= source.is_tracked;
  }
}

// A kept AFTER that may be in the pending stores of a Storage which has gone on since: a read there
// finds the value that was written until this schedule has run. Only one Storage surely is none.
bool Closure::may_be_read_through(const Node& n) {
  if (!n.is(Op::AFTER)) return false;
  const uint32_t outside = n.value->owners() - n.edges - n.roots;
  return outside > 1 || n.value->storages() == 0;
}

void Closure::note_holders(Node& n) {
  n.owners = n.value->owners();
  n.is_version = n.value->storages() > 0;
  n.is_tracked = n.value->is_tracked();
  n.is_step = n.value->is_step();
}

void Closure::find_candidates() {
  // Who holds a Value was noted when it was met. Pending stores have gone since; what is in memory
  // may have been taken hold of by whoever made this closure.
  const bool has_changed = !pending_.empty();
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (has_changed && i + kAhead < nodes_.size()) __builtin_prefetch(nodes_[i + kAhead].value);
    Node& n = nodes_[i];
    if (has_changed || n.is_filled) note_holders(n);
    n.is_kept = n.owners > n.edges;
    n.is_taped = n.is_tracked && (n.owners > n.edges + n.roots || n.is_step);
    if (n.is_filled) continue;
    n.is_free = n.is(Op::CONST) || n.is(Op::IOTA) || n.is(Op::BUFFER) || n.is_staged();
    n.reduces = n.is(Op::REDUCE_AXIS) || n.is(Op::SCAN);
    const bool is_call = n.is(Op::CONTIGUOUS_BACKWARD) && n.value->is(Value::Kind::kCall);
    for (const uint32_t source : n.sources()) {
      const Node& s = nodes_[source];
      if (is_movement(n.op) || is_call) n.is_free = s.is_free;
      if (!s.is_candidate) n.reduces |= s.reduces;
    }
    if (n.is(Op::DETACH) && n.value->is(Value::Kind::kGuard)) note_check(nodes_[n.places[1]]);
    // A version that is read goes to memory anyway: writes go on from there.
    const bool is_read_version = n.is(Op::AFTER) && n.edges > n.nexts;
    n.is_candidate = n.is_candidate || n.roots > 0 || (n.is_version && !n.is_free) ||
                     (n.is_kept && (n.reduces || is_read_version));
  }
}

// Somebody looks at it.
void Closure::note_check(Node& check) {
  if (check.is_candidate) return;
  check.is_candidate = true;
  check.is_check = !check.is_filled;
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
