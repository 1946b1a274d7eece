// From the checks up, to what is stored.
#include "engine/index_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/ref.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/import.h"
#include "value/value.h"

namespace weft {
namespace {

// Texts are few, one per axis and size, and never freed.
const std::string* text_for(const Value& guard) {
  static auto* const kTexts = new std::set<std::string>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return &*kTexts
               ->insert(fmt::format("[index] an index is out of bounds of axis {} with size {}",
                                    guard.numbers()[0], guard.numbers()[1]))
               .first;
}

bool is_computed_guard(const Closure::Node& n) {
  return n.is_needed && !n.is_filled && n.value->is_guard();
}

bool is_set(const Value& check, const Imported& imported, std::span<const Ref<Buffer>> outputs) {
  const auto at = std::ranges::find(imported.outputs, &check);
  const Ref<Buffer>& memory = at == imported.outputs.end()
                                  ? check.buffer()
                                  : outputs[size_t(at - imported.outputs.begin())];
  std::array<std::byte, 1> bit{};
  memory->copy_out(bit);
  return bit[0] != std::byte(0);
}

}  // namespace

const std::string* mark_failures(const Closure& closure, const Imported& imported,
                                 std::span<const Ref<Buffer>> outputs) {
  const std::span<const Closure::Node> nodes = closure.nodes();
  if (std::ranges::none_of(nodes, is_computed_guard)) return nullptr;
  const std::string* first = nullptr;
  std::vector<const std::string*> failures(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++) {
    const Closure::Node& n = nodes[i];
    if (n.is_filled || n.value->is_staged()) continue;
    if (is_computed_guard(n) && is_set(*n.value->sources()[1], imported, outputs)) {
      failures[i] = text_for(*n.value);
    }
    for (const Ref<Value>& source : n.value->sources()) {
      if (failures[i] == nullptr) failures[i] = failures[closure.index_of(*source)];
    }
    if (failures[i] == nullptr || !n.is_stored()) continue;
    n.value->set_failure(failures[i]);
    if (n.roots > 0 && first == nullptr) first = failures[i];
  }
  return first;
}

}  // namespace weft
