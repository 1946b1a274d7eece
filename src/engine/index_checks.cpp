// From the guards up, to what is stored.
#include "engine/index_checks.h"

#include <array>
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
  return n.is_needed && !n.is_filled && n.is(Op::DETACH) && n.value->is_guard();
}

std::vector<Value*> computed_from(const Closure& closure, size_t guard) {
  const std::span<const Closure::Node> nodes = closure.nodes();
  std::vector<Value*> stored;
  std::vector<bool> is_it(nodes.size());
  is_it[guard] = true;
  for (size_t i = guard + 1; i < nodes.size(); i++) {
    const Closure::Node& n = nodes[i];
    for (const uint32_t source : n.sources()) {
      if (is_it[source]) is_it[i] = true;
    }
    if (is_it[i] && n.is_stored()) stored.push_back(n.value);
  }
  return stored;
}

}  // namespace

std::vector<IndexCheck> index_checks(const Closure& closure) {
  std::vector<IndexCheck> checks;
  for (size_t i = 0; i < closure.nodes().size(); i++) {
    const Closure::Node& n = closure.nodes()[i];
    if (!is_computed_guard(n)) continue;
    checks.push_back({.check = n.value->sources()[1].get(),
                      .text = text_for(*n.value),
                      .computed = computed_from(closure, i)});
  }
  return checks;
}

bool is_set(const Buffer& check) {
  std::array<std::byte, 1> bit{};
  check.copy_out(bit);
  return bit[0] != std::byte(0);
}

}  // namespace weft
