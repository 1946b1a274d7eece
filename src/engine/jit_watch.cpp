// Placeholders in, placeholders out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "engine/jit_capture.h"
#include "engine/jit_recipe.h"
#include "engine/realize.h"
#include "runtime/buffer.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/view.h"

namespace weft {
namespace {

// The version of a storage, in memory.
Ref<Value> realized_version(Storage& storage) {
  const StorageWatch::Pause pause;
  for (;;) {
    Ref<Value> version = storage.version();
    {
      const std::lock_guard lock(graph_mutex());
      if (version->is_filled()) return version;
    }
    Storage* const one[] = {&storage};
    realize(one);
  }
}

Ref<Buffer> memory_of(const Value& version) {
  const std::lock_guard lock(graph_mutex());
  return version.buffer();
}

}  // namespace

JitWatch::JitWatch(std::span<const SeenStorage> inputs) {
  std::vector<Storage*> storages;
  for (const SeenStorage& input : inputs) storages.push_back(input.storage);
  realize(storages);
  const Scope scope(*this);  // proxies are known to be no storages from outside
  for (const SeenStorage& input : inputs) {
    const auto uses = std::ranges::count(storages, input.storage);
    const uint32_t at = bind_input(input, size_t(uses));
    binding_of_input_.push_back(at);
    const Bound& b = bound_[at];
    View view = b.is_part ? contiguous_view(input.view->dtype, input.view->shape) : *input.view;
    proxies_.push_back({b.proxy, std::move(view)});
  }
}

uint32_t JitWatch::bind_input(const SeenStorage& input, size_t uses) {
  const auto same = std::ranges::find_if(
      bound_, [&](const Bound& b) { return b.storage.get() == input.storage; });
  if (same != bound_.end()) return uint32_t(same - bound_.begin());
  Bound b;
  b.storage = Ref(input.storage);
  b.before = realized_version(*b.storage);
  b.memory = memory_of(*b.before);
  b.is_part = is_jit_part(input, uses);
  const Value& whole = *b.before;
  if (b.is_part) {
    b.part = *input.view;
    const size_t width = size_t(input.view->dtype.item_bytes());
    b.memory = Buffer::make_part(b.memory, size_t(b.part.offset) * width,
                                 size_t(input.view->numel()) * width);
    b.placeholder =
        Value::make_filled(input.view->dtype, whole.device(), input.view->shape, b.memory);
  } else {
    b.placeholder = Value::make_filled(whole.dtype(), whole.device(), whole.shape(), b.memory);
  }
  b.proxy = Storage::make(b.placeholder, b.is_part ? 0 : b.storage->origin());
  if (b.storage->leaf_number() != 0) bind_leaf(b);
  places_.emplace(b.proxy.get(), uint32_t(bound_.size()));
  bound_.push_back(std::move(b));
  return uint32_t(bound_.size() - 1);
}

// The proxy of a leaf of the tape is one.
void JitWatch::bind_leaf(Bound& b) {
  b.gradient = b.storage->gradient();
  b.proxy->set_leaf(true);
  b.proxy->set_gradient(b.gradient);
}

bool is_jit_part(const SeenStorage& input, size_t uses) {
  const Storage& storage = *input.storage;
  return storage.leaf_number() == 0 && uses == 1 && input.view->numel() > 0 &&
         input.view->numel() < storage.numel() && is_contiguous(*input.view) &&
         is_as_in_memory(input.view->dtype, storage.dtype());
}

void JitWatch::touch(Storage& storage) {
  if (storage.made_under() == number() || places_.contains(&storage)) return;
  bind_captured(storage);
}

void JitWatch::bind_captured(Storage& storage) {
  const StorageWatch::Pause pause;
  Bound b;
  b.storage = Ref(&storage);
  b.gradient = storage.gradient();
  bound_.reserve(bound_.size() + 1);
  places_.emplace(&storage, uint32_t(bound_.size()));
  for (;;) {
    b.before = realized_version(storage);
    b.memory = memory_of(*b.before);
    const Value& v = *b.before;
    b.placeholder = Value::make_filled(v.dtype(), v.device(), v.shape(), b.memory);
    Ref<Value> version = b.placeholder;
    const std::lock_guard lock(graph_mutex());
    if (storage.version_locked() != b.before) continue;  // another thread wrote
    storage.replace_version(version);
    break;
  }
  bound_.push_back(std::move(b));
}

uint32_t JitWatch::find(const Storage& storage) const {
  const auto at = places_.find(&storage);
  return at == places_.end() ? JitRecipe::kNone : at->second;
}

void JitWatch::restore(Bound& b) {
  if (b.proxy) return;
  Ref<Value> version = b.before;
  const std::lock_guard lock(graph_mutex());
  b.storage->replace_version(version);
}

void JitWatch::find_written() {
  for (Bound& b : bound_) b.is_written = b.seen().version() != b.placeholder;
}

void JitWatch::settle() {
  if (std::exchange(is_settled_, true)) return;
  for (Bound& b : bound_) {
    if (b.proxy && b.storage->leaf_number() != 0) b.storage->set_gradient(b.proxy->gradient());
    if (!b.is_written) {
      restore(b);
      continue;
    }
    Ref<Value> version = b.seen().version();
    if (b.is_part) {
      b.storage->write(b.part, std::move(version));
    } else if (b.proxy) {
      const std::lock_guard lock(graph_mutex());
      b.storage->replace_version(version);
    }
  }
}

void JitWatch::undo() {
  for (Bound& b : bound_) {
    restore(b);
    b.storage->set_gradient(b.gradient);
  }
}

}  // namespace weft
