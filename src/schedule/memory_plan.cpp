// Slots, first to last.
#include "schedule/memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/walk.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

using Kind = ScheduledBuffer::Kind;

int64_t bytes_of(const ScheduledBuffer& b) { return b.size * b.dtype.item_bytes(); }

struct Life {
  uint32_t first = UINT32_MAX, last = 0;  // calls
  bool is_used() const { return first != UINT32_MAX; }
};

std::vector<Life> lives_of(const Schedule& s) {
  std::vector<Life> lives(s.buffers.size());
  for (uint32_t c = 0; c < s.calls.size(); c++) {
    for (uint32_t b : s.calls[c].arguments) {
      lives[b].first = std::min(lives[b].first, c);
      lives[b].last = c;
    }
  }
  return lives;
}

// In this kernel every element of argument `input` is read only by the iteration that writes the
// same element of argument `output`.
bool is_elementwise_in(UOp ast, size_t output, size_t input) {
  UOp place;
  for (UOp n : toposort(ast)) {
    if (n.is(Op::AFTER) && n.dtype().is_pointer()) return false;  // loops one after the other
    if (!n.is(Op::STORE) || place_of(n.src(0)).base.number() != int64_t(output)) continue;
    if (!n.dtype().is_void() || place || n.src_count() > 2) return false;
    place = n.src(0).src(1);
  }
  if (!place) return false;
  for (UOp n : toposort(ast)) {
    if (!n.is(Op::INDEX) || n.src(0).number() != int64_t(input)) continue;
    if (n.src(1) != place) return false;
  }
  return true;
}

// The input whose memory output b can have.
std::optional<uint32_t> dying_input(const Schedule& s, uint32_t b, const std::vector<Life>& lives,
                                    const std::vector<bool>& may_die) {
  const KernelCall& call = s.calls[lives[b].first];
  const auto at = std::find(call.arguments.begin(), call.arguments.end(), b);
  for (size_t i = 0; i < call.arguments.size(); i++) {
    const uint32_t in = call.arguments[i];
    const bool fits = may_die[in] && lives[in].last == lives[b].first &&
                      s.buffers[in].size == s.buffers[b].size &&
                      s.buffers[in].formula == s.buffers[b].formula &&
                      s.buffers[in].dtype.item_bytes() == s.buffers[b].dtype.item_bytes() &&
                      s.buffers[in].device == s.buffers[b].device;
    if (fits && is_elementwise_in(call.ast, size_t(at - call.arguments.begin()), i)) return in;
  }
  return std::nullopt;
}

}  // namespace

void plan_memory(Schedule& s, std::span<const int64_t> dying) {
  const std::vector<Life> lives = lives_of(s);
  std::vector<bool> may_die(s.buffers.size());
  const std::unordered_set<int64_t> dies(dying.begin(), dying.end());
  std::vector<bool> is_output(s.buffers.size());
  for (const uint32_t b : s.outputs) is_output[b] = true;
  for (uint32_t b = 0; b < s.buffers.size(); b++) {
    may_die[b] =
        s.buffers[b].kind == Kind::kInput && dies.contains(s.buffers[b].id) && !is_output[b];
  }
  for (const KernelCall& call : s.calls) {  // written in place: not to be given away
    for (size_t i = 0; i < call.written; i++) may_die[call.arguments[i]] = false;
  }
  for (ScheduledBuffer& b : s.buffers) {
    if (b.kind == Kind::kInput || b.kind == Kind::kTable) b.slot = uint32_t(s.slot_count++);
  }
  for (uint32_t b = 0; b < s.buffers.size(); b++) {
    if (s.buffers[b].kind != Kind::kOutput) continue;
    const std::optional<uint32_t> in =
        lives[b].is_used() ? dying_input(s, b, lives, may_die) : std::nullopt;
    if (in) may_die[*in] = false;
    s.buffers[b].slot = in ? s.buffers[*in].slot : uint32_t(s.slot_count++);
  }
  // Temporaries in the order of their first use; slots come free after their last one.
  std::vector<uint32_t> temps;
  for (uint32_t b = 0; b < s.buffers.size(); b++) {
    if (s.buffers[b].kind == Kind::kTemp) temps.push_back(b);
  }
  std::sort(temps.begin(), temps.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(lives[a].first, a) < std::pair(lives[b].first, b);
  });
  struct Slot {
    uint32_t number;
    int64_t bytes;
    std::string device;
  };
  std::vector<Slot> slots;
  std::map<std::string, std::multimap<int64_t, size_t>> free_of;  // of each device, by bytes
  std::multimap<uint32_t, size_t> busy;                           // by last use
  for (uint32_t b : temps) {
    while (!busy.empty() && busy.begin()->first < lives[b].first) {
      const size_t slot = busy.begin()->second;
      free_of[slots[slot].device].emplace(slots[slot].bytes, slot);
      busy.erase(busy.begin());
    }
    const int64_t bytes = bytes_of(s.buffers[b]);
    s.temp_bytes += bytes;
    std::multimap<int64_t, size_t>& free_slots = free_of[s.buffers[b].device];
    auto found = free_slots.lower_bound(bytes);
    if (found == free_slots.end() && !free_slots.empty()) found = std::prev(found);  // to grow
    size_t slot = slots.size();
    if (found != free_slots.end()) {
      slot = found->second;
      free_slots.erase(found);
    } else {
      slots.push_back({uint32_t(s.slot_count++), 0, s.buffers[b].device});
    }
    slots[slot].bytes = std::max(slots[slot].bytes, bytes);
    busy.emplace(lives[b].last, slot);
    s.buffers[b].slot = slots[slot].number;
  }
  for (const Slot& slot : slots) s.peak_bytes += slot.bytes;
}

}  // namespace weft
