// From the guards up, to what is stored.
#include "engine/index_checks.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/op.h"
#include "runtime/buffer.h"
#include "value/closure.h"
#include "value/value.h"

namespace weft {
namespace {

bool is_computed_guard(const Closure::Node& n) {
  return n.is_needed && !n.is_filled && n.is(Op::DETACH) && n.value->is_guard();
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
                      .computed = computed_from(closure, i)});
  }
  return checks;
}

const std::string* failure_of(const Buffer& check, IndexedAxis of) {
  std::array<std::byte, sizeof(int64_t)> bytes{};
  check.copy_out(bytes);
  const auto index = std::bit_cast<int64_t>(bytes);
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

}  // namespace weft
