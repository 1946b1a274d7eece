// The writes of a tensor graph in one order, and when each version of a memory is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "schedule/roll/region.h"
#include "schedule/roll/write_times.h"

namespace weft {

// Why a graph is not run as a loop program.
struct LoopRefusal {
  UOp node;
  std::string reason;
};

// One write, or the first content of a memory that the graph makes. Events are numbered in an order
// that is right; time t is the moment before event t.
struct LoopEvent {
  UOp store;  // null: `value` fills the memory
  UOp value;
  uint32_t memory;
  std::optional<Region> region;  // of the target; empty: data decides
  size_t key = 0;                // place of the value in the graph
};

class LoopEvents {
 public:
  // `order` is a tensor graph of known sizes, sources first, its SINK last.
  explicit LoopEvents(std::span<const UOp> order);
  LoopEvents(const LoopEvents&) = delete;
  LoopEvents& operator=(const LoopEvents&) = delete;

  const std::optional<LoopRefusal>& refusal() const { return refusal_; }
  std::span<const LoopEvent> events() const { return events_; }

  // BUFFERs, and CONTIGUOUS that are written: the nodes that stand for their first content.
  std::span<const UOp> memories() const { return memories_; }
  bool has_memory(UOp n) const { return memory_of_.has(n); }
  // Of a memory, or an AFTER.
  uint32_t memory_of(UOp n) const { return uint32_t(memory_of_.number(n) - 1); }
  bool is_made(UOp n) const { return n.is(Op::CONTIGUOUS) && has_memory(n); }

  // The event of a STORE, or of a CONTIGUOUS that is written.
  uint32_t event_of(UOp n) const { return uint32_t(event_of_.number(n) - 1); }
  // From which time on a version, or a value, can be had.
  uint32_t time_of(UOp n) const { return uint32_t(time_of_.number(n)); }
  // The first event from `time` on that touches the region of a memory; at least past the last one.
  uint32_t first_write(uint32_t memory, const Region& region, uint32_t time) const;
  // The last event of a memory; none: nothing writes it.
  std::optional<uint32_t> last_event(uint32_t memory) const;

  static constexpr uint32_t kNever = WriteTimes::kNever;

 private:
  bool refuse(UOp node, std::string reason);
  bool is_sound();
  bool find_memories();
  bool find_chains(std::vector<std::vector<LoopEvent>>& chains);
  std::optional<Region> region_of_target(UOp target) const;
  void merge(std::vector<std::vector<LoopEvent>>& chains);
  bool find_writes();
  void find_times();

  std::span<const UOp> order_;
  Arena& arena_;
  NodeMap places_;     // 1 + place in order_
  NodeMap memory_of_;  // 1 + memory
  NodeMap event_of_;   // 1 + event
  NodeMap time_of_;
  std::vector<UOp> memories_;
  std::vector<LoopEvent> events_;
  std::vector<std::optional<WriteTimes>> writes_;  // of each memory that is written
  std::vector<uint32_t> last_;                     // 1 + the last event of each memory
  std::optional<LoopRefusal> refusal_;
};

}  // namespace weft
