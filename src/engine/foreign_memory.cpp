// A table of address ranges, and copies to them.
#include "engine/foreign_memory.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/ref.h"
#include "engine/realize.h"
#include "ir/dtype.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/operation_watch.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"

namespace weft {
namespace {

struct Range {
  std::byte* end;
  Storage* storage;  // lives: it takes the range out when it dies
};

struct Ranges {
  std::mutex mutex;
  std::map<std::byte*, Range, std::less<>> by_start;  // none overlap
  std::unordered_map<const Storage*, std::byte*> start_of;
};

Ranges& ranges() {
  static auto& instance = *new Ranges;  // outlives every storage
  return instance;
}

// No storage stands for that memory any more.
void forget_foreign(const Storage& storage) noexcept {
  Ranges& all = ranges();
  const std::lock_guard lock(all.mutex);
  const auto known = all.start_of.find(&storage);
  if (known == all.start_of.end()) return;
  const auto at = all.by_start.find(known->second);  // another one's, once it has left its own
  if (at != all.by_start.end() && at->second.storage == &storage) all.by_start.erase(at);
  all.start_of.erase(known);
}

}  // namespace

ForeignPlace import_foreign(Device& device, DType dtype, void* first, int64_t count,
                            std::unique_ptr<Buffer::Lender> lender) {
  if (dtype.is_bool()) dtype = dtypes::uint8;  // others write any byte there
  const size_t bytes = Buffer::bytes_for(device, dtype, count);
  auto* const start = static_cast<std::byte*>(first);
  std::byte* const end = start + bytes;
  // The memory first: what is let go is let go without the lock.
  Ref<Buffer> buffer = Buffer::borrow(device, first, bytes, std::move(lender));
  std::vector<Ref<Storage>> held;  // and these
  std::vector<Ref<Buffer>> content;
  Ranges& all = ranges();
  const std::lock_guard lock(all.mutex);
  auto at = all.by_start.upper_bound(start);
  if (at != all.by_start.begin()) --at;  // the last one that begins before may reach up to here
  while (count > 0 && at != all.by_start.end() && at->first < end) {
    const auto [known_start, range] = *at;
    if (range.end <= start) {
      ++at;
      continue;
    }
    if (!range.storage->try_retain()) {  // it is dying, in another thread
      at = all.by_start.erase(at);
      continue;
    }
    const Ref<Storage>& known = held.emplace_back(Ref<Storage>::adopt(range.storage));
    const Ref<Buffer>& memory = content.emplace_back(known->memory());
    if (!memory || memory->memory() != known_start) {  // a write went elsewhere: it has left this
      at = all.by_start.erase(at);
      continue;
    }
    const ptrdiff_t before = start - known_start;
    const bool fits = before >= 0 && end <= range.end && known->dtype() == dtype &&
                      &known->device() == &device && before % dtype.item_bytes() == 0;
    if (!fits) {
      throw DeviceError(
          "[from_dlpack] the memory overlaps that of a tensor that was imported before, as other "
          "elements: import the whole of it first, as one dtype");
    }
    return {known, before / dtype.item_bytes()};
  }
  const int64_t shape[] = {count};
  Ref<Storage> storage = Storage::make(
      Value::make_filled(dtype, device, std::span<const int64_t>(shape), std::move(buffer)));
  if (count > 0) {
    all.start_of.emplace(storage.get(), start);
    all.by_start.emplace(start, Range{end, storage.get()});
    storage->set_foreign(&forget_foreign);
  }
  return {std::move(storage), 0};
}

WriteThrough::WriteThrough(Storage& storage) : storage_(storage) {
  if (OperationWatch* watch = operation_watch()) watch->will_write(storage);
  const std::lock_guard lock(graph_mutex());
  const Ref<Value>& version = storage.version_locked();
  const bool is_there = version->is_filled() && version->failure() == nullptr;
  if (is_there && version->buffer()->is_seen_outside()) before_ = version;
}

void WriteThrough::finish() {
  if (before_ && storage_watch() == nullptr) write_through(storage_, before_);
  if (OperationWatch* watch = operation_watch()) watch->wrote(storage_);
}

void write_through(Storage& storage, const Ref<Value>& before) {
  Ref<Buffer> foreign;
  {
    const std::lock_guard lock(graph_mutex());
    foreign = before->buffer();
  }
  const InterruptScope whole(InterruptScope::Kind::kNever);  // the write has been made
  Storage* const one[] = {&storage};
  realize(one);
  Ref<Value> version;  // freed without the lock
  std::array<Ref<Value>, Value::kMostSources> none;
  const std::lock_guard realizing(realize_mutex());
  Ref<Buffer> kept = Buffer::make(foreign->device(), foreign->bytes());
  kept->copy_from(*foreign);
  const std::lock_guard lock(graph_mutex());
  version = storage.version_locked();
  if (version == before || !version->is_filled()) return;
  before->fill(std::move(kept), none);  // for whoever reads the old content
  foreign->copy_from(*version->buffer());
  foreign->next_generation();
  version = Value::make_filled(version->dtype(), version->device(), version->shape(), foreign);
  storage.replace_version(version);
}

}  // namespace weft
