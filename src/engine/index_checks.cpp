// From the guards up, to what is stored.
#include "engine/index_checks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ref.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/closure.h"
#include "value/import.h"
#include "value/value.h"

namespace weft {
namespace {

bool is_computed_guard(const Closure::Node& n) {
  return n.is_needed && !n.is_filled && n.is(Op::DETACH) && n.value->is(Value::Kind::kGuard);
}

// For each node of the closure the first of these places, in order, that it is computed from: its
// number in the list, or the size of the list where there is none.
std::vector<size_t> first_beneath(const Closure& closure, std::span<const size_t> places) {
  const std::span<const Closure::Node> nodes = closure.nodes();
  std::vector<size_t> first(nodes.size(), places.size());
  for (size_t i = 0, next = 0; i < nodes.size(); i++) {
    for (const uint32_t source : nodes[i].sources()) first[i] = std::min(first[i], first[source]);
    if (next == places.size() || places[next] != i) continue;
    first[i] = std::min(first[i], next);
    next++;
  }
  return first;
}

}  // namespace

std::vector<Value*> computed_from(const Closure& closure, size_t place) {
  const std::span<const Closure::Node> nodes = closure.nodes();
  std::vector<Value*> stored;
  std::vector<bool> is_it(nodes.size());
  is_it[place] = true;
  for (size_t i = place; i < nodes.size(); i++) {
    const Closure::Node& n = nodes[i];
    for (const uint32_t source : n.sources()) {
      if (is_it[source]) is_it[i] = true;
    }
    if (is_it[i] && n.is_stored()) stored.push_back(n.value);
  }
  return stored;
}

std::vector<IndexCheck> index_checks(const Closure& closure) {
  std::vector<IndexCheck> checks;
  for (size_t i = 0; i < closure.nodes().size(); i++) {
    const Closure::Node& n = closure.nodes()[i];
    if (!is_computed_guard(n)) continue;
    checks.push_back({.check = n.value->sources()[1].get(),
                      .of = {n.value->numbers()[0], n.value->numbers()[1]},
                      .place = i});
  }
  return checks;
}

int64_t found_index(const Buffer& check) {
  int64_t index = 0;
  check.copy_out(std::as_writable_bytes(std::span(&index, 1)));
  return index;
}

const std::string* failure_of(int64_t index, IndexedAxis of) {
  // One within the axis is none: a device that runs nothing leaves 0 there.
  if (index == kNoIndex || (index >= 0 && index < of.size)) return nullptr;
  static auto* const kTexts = new std::set<std::string>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return &*kTexts
               ->insert(fmt::format("[index] {} is out of bounds of axis {} with size {}", index,
                                    of.axis, of.size))
               .first;
}

const std::string* mark_failures(const Closure& closure, const Imported& imported,
                                 std::span<const Ref<Buffer>> outputs) {
  const std::vector<IndexCheck> checks = index_checks(closure);
  if (checks.empty()) return nullptr;
  std::unordered_map<const Value*, const Buffer*> made;
  for (size_t i = 0; i < outputs.size(); i++) made.emplace(imported.outputs[i], outputs[i].get());
  std::vector<size_t> places;
  std::vector<const std::string*> texts;
  for (const IndexCheck& check : checks) {
    const auto now = made.find(check.check);
    const std::string* text = check.check->failure();
    if (text == nullptr) {
      const Buffer& found = now != made.end() ? *now->second : *check.check->buffer();
      text = failure_of(found_index(found), check.of);
    }
    if (text == nullptr) continue;
    places.push_back(check.place);
    texts.push_back(text);
  }
  if (places.empty()) return nullptr;
  const std::vector<size_t> failing = first_beneath(closure, places);
  size_t first = places.size();
  for (size_t i = 0; i < failing.size(); i++) {
    const Closure::Node& n = closure.nodes()[i];
    if (failing[i] == places.size() || !n.is_stored()) continue;
    if (n.value->failure() == nullptr) n.value->set_failure(texts[failing[i]]);
    if (n.roots > 0) first = std::min(first, failing[i]);
  }
  return first < places.size() ? texts[first] : nullptr;
}

void divide_checks(Imported& imported, std::vector<Ref<Buffer>>& outputs, Device& device) {
  if (imported.checks.empty()) return;
  const Ref<Buffer> found = std::move(outputs.back());
  outputs.pop_back();
  std::vector<int64_t> indices(imported.checks.size());
  found->copy_out(std::as_writable_bytes(std::span(indices)));
  Ref<Buffer> none;
  for (size_t i = 0; i < indices.size(); i++) {
    const bool is_none = indices[i] == kNoIndex;
    Ref<Buffer> memory = is_none ? none : Ref<Buffer>();
    if (!memory) {
      memory = Buffer::make(device, sizeof(int64_t));
      memory->copy_in(std::as_bytes(std::span(&indices[i], 1)));
    }
    if (is_none) none = memory;
    outputs.push_back(std::move(memory));
    imported.outputs.push_back(imported.checks[i]);
  }
}

}  // namespace weft
