// Allocations in a list; a schedule names those that it uses.
#include "engine/explain_memory.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/ref.h"
#include "engine/explain.h"
#include "runtime/buffer.h"
#include "schedule/schedule.h"
#include "value/history.h"
#include "value/sites.h"
#include "weft/view.h"

namespace weft {
namespace {

using Json = nlohmann::json;

struct MemoryEvent {
  uint64_t at;
  uint32_t number;
  int64_t bytes;
  std::vector<uint32_t> sites{};
  const char* what = "";
};

constexpr size_t kMostMemoryEvents = 100'000;

struct Memory {
  std::mutex mutex;
  std::vector<MemoryEvent> events;
  std::unordered_map<const Buffer*, size_t> made;  // the event of each that lives
  uint32_t count = 0;
};
Memory& kept() {
  static auto& instance = *new Memory;
  return instance;
}

void note(const Buffer& buffer, int64_t bytes) {
  const uint32_t site = bytes > 0 ? site_of_call() : 0;
  Memory& all = kept();
  const std::lock_guard lock(all.mutex);
  if (bytes > 0) {
    if (all.events.size() >= kMostMemoryEvents) return;
    all.made[&buffer] = all.events.size();
    all.events.push_back({now_ns(), all.count++, bytes, {}, "made by the program"});
    if (site != 0) all.events.back().sites.push_back(site);
    return;
  }
  const auto at = all.made.find(&buffer);
  if (at == all.made.end()) return;
  all.events.push_back({now_ns(), all.events[at->second].number, bytes});
  all.made.erase(at);
}

void note_buffer(const Buffer& buffer, int64_t bytes) noexcept {
  try {
    note(buffer, bytes);
  } catch (const std::bad_alloc&) {  // a picture with a hole is better than no program
    return;
  }
}

}  // namespace

void keep_memory_events(bool is_on) {
  Memory& all = kept();
  {
    const std::lock_guard lock(all.mutex);
    if (is_on) {
      all.events.clear();
      all.made.clear();
      all.count = 0;
    }
  }
  watch_buffers(is_on ? note_buffer : nullptr);
}

void explain_slots(const Schedule& schedule, std::span<const Ref<Buffer>> slots) {
  using Kind = ScheduledBuffer::Kind;
  std::vector<const KernelCall*> writers(schedule.buffers.size());
  for (const KernelCall& call : schedule.calls) {
    for (size_t a = 0; a < call.written; a++) writers[call.arguments[a]] = &call;
  }
  Memory& all = kept();
  const std::lock_guard lock(all.mutex);
  for (size_t i = 0; i < schedule.buffers.size(); i++) {
    const ScheduledBuffer& buffer = schedule.buffers[i];
    const auto at = all.made.find(slots[buffer.slot].get());
    if (at == all.made.end() || buffer.kind == Kind::kInput) continue;
    MemoryEvent& event = all.events[at->second];
    // A slot of several: it is named for the output in it.
    if (event.what != std::string_view("made by the program") && buffer.kind != Kind::kOutput) {
      continue;
    }
    event.what = buffer.kind == Kind::kOutput  ? "a result"
                 : buffer.kind == Kind::kTable ? "a table of constants"
                                               : "a temporary";
    if (writers[i] != nullptr) event.sites = writers[i]->sites;
  }
}

Json memory_events_json(uint64_t begin) {
  Memory& all = kept();
  const std::lock_guard lock(all.mutex);
  Json out = Json::array();
  for (const MemoryEvent& e : all.events) {
    out.push_back({e.at - begin, e.number, e.bytes, e.sites, e.what});
  }
  return out;
}

Json storage_events_json(uint64_t begin) {
  constexpr const char* kinds[] = {"made", "viewed", "read", "written", "replaced", "gone"};
  Json out = Json::array();
  for (const StorageEvent& e : history()) {
    const View& v = e.view;
    const std::vector<int64_t> shape(v.shape.begin(), v.shape.end());
    const std::vector<int64_t> strides(v.strides.begin(), v.strides.end());
    out.push_back({kinds[size_t(e.kind)], e.storage, e.version, e.site, e.at - begin,
                   v.dtype.name(), shape, strides, v.offset});
  }
  return out;
}

}  // namespace weft
