// Values held, storages put back.
#include "tensor/recording.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "engine/realize.h"
#include "runtime/buffer.h"
#include "tensor/operand.h"
#include "value/operation_watch.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/gradient.h"
#include "weft/tensor.h"

namespace weft {
namespace {

thread_local bool is_on = false;

void put_version(Storage& storage, Ref<Value> version) {
  const std::lock_guard lock(graph_mutex());
  storage.replace_version(version);
}

// The same content in memory of its own.
Ref<Value> in_own_memory(const Ref<Value>& version) {
  const Tensor content = Recording::tensor_of_result(version);
  const std::vector<std::byte> bytes = content.bytes();
  Ref<Buffer> buffer = Buffer::make(version->device(), bytes.size());
  buffer->copy_in(bytes);
  return Value::make_filled(version->dtype(), version->device(), version->shape(),
                            std::move(buffer));
}

}  // namespace

bool is_recording() { return is_on; }

Recording::Recording(Mode mode, std::function<void()> at_operation)
    : mode_(mode), at_operation_(std::move(at_operation)) {}

void Recording::start() {
  scope_.emplace(this);
  is_on = true;
  if (mode_ == Mode::kEager) set_reference_only(true);
}

void Recording::stop() {
  scope_.reset();
  is_on = false;
  if (mode_ == Mode::kEager) set_reference_only(false);
  made_.clear();
}

Tensor Recording::tensor_of_result(const Ref<Value>& value) {
  const OperationWatch::Scope off(nullptr);
  const NoGrad no_gradient;
  return tensor_of(value);
}

void Recording::will_change(Storage& storage) {
  const auto is_it = [&](const auto& c) { return c.storage.get() == &storage; };
  if (std::any_of(changed_.begin(), changed_.end(), is_it)) return;
  const auto is_own = [&](const Ref<Storage>& s) { return s.get() == &storage; };
  if (std::any_of(made_.begin(), made_.end(), is_own)) return;
  changed_.push_back({.storage = Ref(&storage),
                      .before = storage.version(),
                      .is_leaf = storage.leaf_number() != 0,
                      .gradient_before = storage.gradient()});
}

void Recording::record(Storage& storage) {
  if (at_operation_) at_operation_();
  if (mode_ == Mode::kEager) {
    const OperationWatch::Scope off(nullptr);
    Storage* const one[] = {&storage};
    realize(one);
  }
  Ref<Value> result = storage.version();
  const Op op = result->op();
  operations_.push_back({op, std::move(result)});
}

void Recording::made(Storage& result) {
  made_.emplace_back(&result);
  record(result);
}

void Recording::will_write(Storage& to) { will_change(to); }
void Recording::wrote(Storage& to) { record(to); }
void Recording::will_collect(Storage& by) { will_change(by); }

void Recording::undo() const {
  for (const Changed& c : changed_) {
    put_version(*c.storage, c.before);
    if (c.is_leaf) c.storage->set_gradient(c.gradient_before);
  }
}

void Recording::undo_in_own_memory() const {
  for (const Changed& c : changed_) {
    put_version(*c.storage, in_own_memory(c.before));
    if (c.is_leaf) c.storage->set_gradient(c.gradient_before);
  }
}

}  // namespace weft
