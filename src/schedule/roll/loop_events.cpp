// Chains of writes, merged by where their values stand in the graph.
#include "schedule/roll/loop_events.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "schedule/roll/region.h"
#include "schedule/roll/write_times.h"

namespace weft {
namespace {

int64_t numel_of(UOp n) {
  int64_t count = 1;
  for (const Dim d : shape_of(n)) count *= d.value();
  return count;
}

// Sizes that are known, of something.
bool has_elements(UOp n) {
  return std::ranges::all_of(shape_of(n), [](Dim d) { return d.is_int() && d.value() > 0; });
}

}  // namespace

LoopEvents::LoopEvents(std::span<const UOp> order)
    : order_(order),
      arena_(order.back().arena()),
      places_(arena_),
      memory_of_(arena_),
      event_of_(arena_),
      time_of_(arena_) {
  std::vector<std::vector<LoopEvent>> chains;
  if (!is_sound() || !find_memories() || !find_chains(chains)) return;
  merge(chains);
  if (find_writes()) find_times();
}

bool LoopEvents::refuse(UOp node, std::string reason) {
  refusal_ = {node, std::move(reason)};
  return false;
}

bool LoopEvents::is_sound() {
  constexpr OpSet k_refused = {Op::VARIABLE, Op::COPY, Op::RANGE, Op::DEFINE_REG, Op::BIND};
  UOp device;
  for (size_t i = 0; i < order_.size(); i++) {
    const UOp n = order_[i];
    places_.put_number(n, i + 1);
    if (k_refused.has(n.op())) return refuse(n, "it has sizes that vary, or copies, or loops");
    if (!has_elements(n)) return refuse(n, "its size is a formula, or it has no elements");
    if (!n.is(Op::DEVICE)) continue;
    if (device) return refuse(n, "there is memory of several devices");
    device = n;
  }
  return true;
}

// BUFFERs, and what AFTERs stand on. Each version goes on in at most one other.
bool LoopEvents::find_memories() {
  NodeMap continued(arena_);
  const auto add = [&](UOp n) {
    memories_.push_back(n);
    memory_of_.put_number(n, memories_.size());
  };
  for (UOp n : order_) {
    if (n.is(Op::BUFFER)) add(n);
    if (!n.is(Op::AFTER)) continue;
    for (UOp store : n.srcs().subspan(1)) {
      if (event_of_.has(store)) return refuse(store, "it is written twice");
      event_of_.put_number(store, 1);  // until events are numbered
    }
    const UOp base = n.src(0);
    if (!has_memory(base)) {
      if (!base.is(Op::CONTIGUOUS)) return refuse(base, "what is written is not memory");
      if (!Region::whole(base)) return refuse(base, "the memory has too many axes");
      add(base);
    }
    if (continued.has(base)) return refuse(base, "two versions follow one");
    continued.put_number(base, 1);
    memory_of_.put_number(n, memory_of_.number(base));
  }
  return true;
}

bool LoopEvents::find_chains(std::vector<std::vector<LoopEvent>>& chains) {
  chains.resize(memories_.size());
  for (UOp n : order_) {
    if (!n.is(Op::AFTER)) continue;
    const uint32_t memory = memory_of(n);
    std::vector<LoopEvent>& chain = chains[memory];
    const UOp base = n.src(0);
    if (chain.empty() && base.is(Op::CONTIGUOUS)) {
      chain.push_back({{}, base.src(0), memory, Region::whole(base), places_.number(base)});
    }
    for (UOp store : n.srcs().subspan(1)) {
      if (!store.is(Op::STORE) || store.src_count() != 2) {
        return refuse(store, "an effect is not a plain write");
      }
      LoopEvent e{store, store.src(1), memory, region_of_target(store.src(0)),
                  places_.number(store.src(1))};
      if (!e.region && !store.src(0).is(Op::INDEX)) {
        return refuse(store.src(0), "the place of a write has no strides");
      }
      if (store.src(1).dtype() != memories_[memory].dtype()) {
        return refuse(store, "it writes another dtype than the memory has");
      }
      if (store.src(0).is(Op::INDEX)) {
        for (UOp i : store.src(0).srcs().subspan(1))
          e.key = std::max(e.key, size_t(places_.number(i)));
      }
      if (!chain.empty()) e.key = std::max(e.key, chain.back().key);
      chain.push_back(std::move(e));
    }
  }
  return true;
}

// Stores of one memory keep their order; all together go by the places of their values, so that
// what a value reads has been written.
void LoopEvents::merge(std::vector<std::vector<LoopEvent>>& chains) {
  using Next = std::tuple<size_t, uint32_t, uint32_t>;  // key, memory, place in its chain
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (uint32_t m = 0; m < chains.size(); m++) {
    if (!chains[m].empty()) queue.emplace(chains[m][0].key, m, 0);
  }
  last_.assign(chains.size(), 0);
  while (!queue.empty()) {
    const auto [key, memory, at] = queue.top();
    queue.pop();
    LoopEvent& e = chains[memory][at];
    events_.push_back(std::move(e));
    event_of_.put_number(events_.back().store ? events_.back().store : memories_[memory],
                         events_.size());
    last_[memory] = uint32_t(events_.size());
    if (at + 1 < chains[memory].size()) queue.emplace(chains[memory][at + 1].key, memory, at + 1);
  }
}

std::optional<Region> LoopEvents::region_of_target(UOp target) const {
  std::vector<UOp> ops;
  while (is_movement(target.op())) {
    ops.push_back(target);
    target = target.src(0);
  }
  if (!has_memory(target)) return {};
  std::optional<Region> region = Region::whole(target);
  for (size_t i = ops.size(); region && i-- > 0;) {
    if (!region->apply(ops[i])) region.reset();
  }
  return region;
}

bool LoopEvents::find_writes() {
  std::vector<std::vector<WriteTimes::Write>> writes(memories_.size());
  for (uint32_t i = 0; i < events_.size(); i++) {
    writes[events_[i].memory].push_back({i, events_[i].region});
  }
  writes_.resize(memories_.size());
  for (uint32_t m = 0; m < writes.size(); m++) {
    if (writes[m].empty()) continue;
    writes_[m] = WriteTimes::of(numel_of(memories_[m]), writes[m]);
    if (!writes_[m]) return refuse(memories_[m], "the writes touch too many elements");
  }
  return true;
}

void LoopEvents::find_times() {
  for (UOp n : order_) {
    if (n.is(Op::STORE)) continue;
    uint64_t time = 0;
    if (n.is(Op::AFTER)) {
      time = time_of_.number(n.src(0));
      for (UOp store : n.srcs().subspan(1)) time = std::max(time, event_of_.number(store));
    } else if (is_made(n)) {
      time = event_of_.number(n);
    } else {
      for (UOp s : n.srcs()) time = std::max(time, time_of_.number(s));
    }
    if (time > 0) time_of_.put_number(n, time);
  }
}

uint32_t LoopEvents::first_write(uint32_t memory, const Region& region, uint32_t time) const {
  return writes_[memory] ? writes_[memory]->first(region, time) : kNever;
}

std::optional<uint32_t> LoopEvents::last_event(uint32_t memory) const {
  if (last_[memory] == 0) return {};
  return last_[memory] - 1;
}

}  // namespace weft
