// Reading and writing storages through views.
#include "value/storage.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ref.h"
#include "ir/op.h"
#include "runtime/buffer.h"
#include "value/factor.h"
#include "value/history.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/pending_stores.h"
#include "value/storage_watch.h"
#include "value/tape.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/view.h"

namespace weft {

std::mutex& graph_mutex() {
  static std::mutex mutex;
  return mutex;
}

namespace {

// Storages by their numbers on the tape, under the lock of the graph.
std::unordered_map<int64_t, Storage*>& leaves() {
  static auto* const kLeaves = new std::unordered_map<int64_t, Storage*>;
  return *kLeaves;
}

// Those of which nothing was said; under the lock of the graph.
std::unordered_set<Storage*>& unsaid() {
  static auto* const kUnsaid = new std::unordered_set<Storage*>;
  return *kUnsaid;
}

std::atomic<Storage::Forget> forget_foreign = nullptr;

// Storages that were written to and not realised since, the longest first; under the lock of the
// graph.
struct Waiting {
  struct Entry {
    Storage* storage;
    uint64_t since;  // which realise was the last one then
  };
  std::map<uint64_t, Entry> by_place;
  uint64_t last_place = 0;
  uint64_t realises = 0;
};
Waiting& waiting() {
  static auto* const kWaiting = new Waiting;
  return *kWaiting;
}

// A version of one Storage alone: gradients by a copy are not those by the original, and none pass
// where they are off.
Ref<Value> as_version(Ref<Value> value) {
  const bool is_shared = value->storages() > 0 || value->is(Value::Kind::kLeaf);
  if (!gradients_are_on() && !value->is_untaped() && (value->is_tracked() || is_shared)) {
    return detached(std::move(value));
  }
  if (!value->is_tracked() || !is_shared) return value;
  return Value::make_tied(std::move(value));
}

Sizes numbers_of(const View& view) {
  Sizes numbers = view.shape;
  numbers.append(view.strides);
  numbers.push_back(view.offset);
  return numbers;
}

}  // namespace

Ref<Storage> Storage::make(Ref<Value> version, int64_t origin) {
  version = as_version(std::move(version));
  Ref<Storage> storage = Ref<Storage>::adopt(new Storage(std::move(version), origin));
  if (const StorageWatch* watch = storage_watch()) storage->made_under_ = watch->number();
  note_event(StorageEvent::Kind::kMade, *storage);
  return storage;
}

Storage::Storage(Ref<Value> version, int64_t origin)
    : scalar_(version->dtype().scalar),
      numel_(version->numel()),
      origin_(origin),
      device_(&version->device()),
      version_(std::move(version)) {
  version_->add_storage();
}

void Storage::set_foreign(Forget forget) {
  forget_foreign.store(forget, std::memory_order_release);
  is_foreign_ = true;
}

Storage::~Storage() {
  note_event(StorageEvent::Kind::kGone, *this);
  if (is_foreign_) forget_foreign.load(std::memory_order_acquire)(*this);
  if (was_pending_ || leaf_number_ != 0 || is_listed_ || place_ != 0) {
    const std::lock_guard lock(graph_mutex());
    end_pending(pending_);
    if (leaf_number_ != 0) leaves().erase(leaf_number_);
    if (is_listed_) unsaid().erase(this);
    if (place_ != 0) waiting().by_place.erase(place_);
  }
  version_->remove_storage();
}

void retain(Storage* storage) noexcept { storage->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(Storage* storage) noexcept {
  if (storage->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete storage;
}

bool Storage::try_retain() {
  uint32_t owners = owners_.load(std::memory_order_relaxed);
  while (owners != 0) {
    if (owners_.compare_exchange_weak(owners, owners + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

Ref<Value> Storage::version() const {
  const std::lock_guard lock(graph_mutex());
  return version_;
}

bool Storage::is_realized() const {
  const std::lock_guard lock(graph_mutex());
  return version_->is_filled();
}

Ref<Buffer> Storage::memory() const {
  const std::lock_guard lock(graph_mutex());
  return version_->is_filled() ? version_->buffer() : Ref<Buffer>();
}

Ref<Value> Storage::read(const View& view, Tie tie) const {
  if (StorageWatch* watch = storage_watch()) watch->touch(const_cast<Storage&>(*this));
  note_event(StorageEvent::Kind::kRead, *this, &view);
  Ref<Value> value;
  {
    const std::lock_guard lock(graph_mutex());
    value = read_locked(view, tie);
  }
  if (tie == Tie::kDetached) value = detached(std::move(value));
  return bits_as(std::move(value), view.dtype);
}

Ref<Value> Storage::read_all(Ints shape) const {
  if (StorageWatch* watch = storage_watch()) watch->touch(const_cast<Storage&>(*this));
  Ref<Value> value;
  {
    const std::lock_guard lock(graph_mutex());
    const bool is_it = leaf_number_ == 0 && (!pending_ || version_->is_filled());
    if (is_it && equal(shape, version_->shape())) value = version_;
  }
  if (value) note_event(StorageEvent::Kind::kRead, *this);
  return value;
}

Ref<Value> Storage::read_locked(const View& view, Tie tie) const {
  if (tie == Tie::kAttached && leaf_number_ != 0) return view_of(version_on_tape(), view);
  if (!pending_ || version_->is_filled() || view.numel() == 0) return view_of(version_, view);
  const PendingRead found =
      number_watch() == nullptr ? pending_->find(view) : find_step_by_step(view);
  if (found.kind == PendingRead::Kind::kUntouched) return view_of(pending_->base(), view);
  if (found.kind == PendingRead::Kind::kMixed) return view_of(version_, view);
  Value& write = *found.write;
  if (write.is_filled()) return view_of(Ref(&write), view);
  // A write that is not on the tape hides no gradient.
  if (write.is_untaped() && write.is_tracked()) return view_of(version_, view);
  const Ref<Value>& stored = write.sources()[1];
  if (stored->shape().empty()) return broadcast(stored, view.shape);
  return view_of(stored, *found.within);
}

// Where other numbers may take the place of these: what is found is found for them, too, as long as
// what is assumed here holds. From the newest write back.
PendingRead Storage::find_step_by_step(const View& view) const {
  using Kind = PendingRead::Kind;
  const Hull hull = hull_of(view);
  Value* at = version_.get();
  for (int seen = 0; at != pending_->base().get(); seen++) {
    const bool is_write = at->is(Op::AFTER) && !at->is_filled();
    if (!is_write || seen == PendingStores::kMostSegments) return {.kind = Kind::kMixed};
    const View written = at->written();
    const Hull other = hull_of(written);
    const bool is_before = hull.hi <= other.lo;
    if (!is_before && other.hi > hull.lo) {
      std::optional<View> within;
      if (!at->scatter()) within = view_within(written, view);
      if (!within) return {.kind = Kind::kMixed};
      return {.kind = Kind::kCovered, .write = at, .within = std::move(within)};
    }
    assume_exact({int64_t(is_before)});
    assume_at_most(is_before ? hull.hi : other.hi, is_before ? other.lo : hull.lo);
    at = at->sources()[0].get();
  }
  return {.kind = Kind::kUntouched};
}

void Storage::write(const View& view, Ref<Value> value) {
  if (view.numel() == 0) {
    tie(std::move(value));
    return;
  }
  if (!value->shape().empty() && !equal(value->shape(), view.shape)) {
    throw InternalError("storage: a write of a value that has not the shape of its view");
  }
  if (StorageWatch* watch = storage_watch()) watch->touch(*this);
  value = bits_as(std::move(value), dtype());
  if (!gradients_are_on() && !value->is_untaped()) value = detached(std::move(value));
  const bool is_in_order = view.offset == 0 && is_contiguous(view);
  bool covers_all = view.numel() == numel_ && (is_in_order || is_dense(view));
  note_event(covers_all ? StorageEvent::Kind::kReplaced : StorageEvent::Kind::kWritten, *this,
             &view);
  std::unique_ptr<PendingStores> dropped;
  Ref<Value> old;
  const std::lock_guard lock(graph_mutex());
  const Ints shape = version_->shape();
  // Where gradients are off, that of the old content goes on to where it came from.
  if (version_->is_tracked() && !gradients_are_on()) covers_all = false;
  if (covers_all) {
    if (value->shape().empty()) {
      old = broadcast(std::move(value), shape);
    } else if (is_in_order && equal(value->shape(), shape)) {
      old = std::move(value);
    } else {
      old = moved(value, factor_inverse(view, shape));
    }
    return replace(old, dropped);
  }
  old = std::move(value);
  add_write(numbers_of(view), old, {}, dropped);
}

bool Storage::write_all(Ref<Value>& value) {
  if (value->dtype() != dtype() || value->is_tracked()) return false;
  if (StorageWatch* watch = storage_watch()) watch->touch(*this);
  std::unique_ptr<PendingStores> dropped;
  {
    const std::lock_guard lock(graph_mutex());
    if (version_->is_tracked() || !equal(value->shape(), version_->shape())) return false;
    replace(value, dropped);
  }
  note_event(StorageEvent::Kind::kReplaced, *this);
  return true;
}

void Storage::write(const View& view, Ref<Value> value, Ref<Value> index, Value::Scatter how) {
  if (view.numel() == 0 || (index && index->numel() == 0)) {
    tie(std::move(value));
    return;
  }
  if (StorageWatch* watch = storage_watch()) watch->touch(*this);
  note_event(StorageEvent::Kind::kWritten, *this, &view);
  value = bits_as(std::move(value), dtype());
  Sizes numbers = numbers_of(view);
  for (const int64_t n : {how.first, how.past, int64_t(how.op)}) numbers.push_back(n);
  std::unique_ptr<PendingStores> dropped;
  const std::lock_guard lock(graph_mutex());
  add_write(numbers, value, std::move(index), dropped);
}

// A value of which no element is written: gradients by it are 0, and not none.
void Storage::tie(Ref<Value> value) {
  if (!value->is_tracked() || !gradients_are_on() || !dtype().is_float()) return;
  if (StorageWatch* watch = storage_watch()) watch->touch(*this);
  std::unique_ptr<PendingStores> dropped;
  const std::lock_guard lock(graph_mutex());
  end_pending(dropped);
  value = Value::make_tied(version_on_tape(), std::move(value));
  set_version(value);
}

void Storage::add_write(const Sizes& numbers, Ref<Value>& value, Ref<Value> index,
                        std::unique_ptr<PendingStores>& dropped) {
  begin_to_wait();
  if (!pending_ || version_->is_filled()) {
    end_pending(dropped);
    pending_ = std::make_unique<PendingStores>(version_);
    was_pending_ = true;
  }
  value = Value::make(Op::AFTER, dtype(), *device_, version_->shape(), numbers, version_on_tape(),
                      std::move(value), std::move(index));
  try {
    pending_->add(value);
  } catch (...) {
    end_pending(dropped);  // reads go to the version itself
    throw;
  }
  set_version(value);
  version_->pending_of_ = this;
}

// Swaps in the next version; the old one is left in `version`, to be freed without the lock.
void Storage::set_version(Ref<Value>& version) {
  version_->remove_storage();
  version->add_storage();
  std::swap(version_, version);
}

void Storage::replace(Ref<Value>& version, std::unique_ptr<PendingStores>& dropped) {
  version = as_version(std::move(version));
  begin_to_wait();
  end_pending(dropped);
  set_version(version);
}

// They are those from the version on, down to the first one that is none; where the Storage is a
// leaf, versions stand between them under its name.
void Storage::end_pending(std::unique_ptr<PendingStores>& dropped) noexcept {
  if (&dropped != &pending_) dropped = std::move(pending_);
  Value* at = version_.get();
  while (at->pending_of_ == this || at->is(Value::Kind::kLeaf)) {
    at->pending_of_ = nullptr;
    if (at->sources().empty()) break;
    at = at->sources()[0].get();
  }
}

void Storage::begin_to_wait() {
  if (place_ != 0 && !version_->is_filled()) return;
  Waiting& all = waiting();
  if (place_ != 0) all.by_place.erase(place_);
  place_ = ++all.last_place;
  all.by_place.emplace_hint(all.by_place.end(), place_, Waiting::Entry{this, all.realises});
}

std::vector<Ref<Storage>> Storage::take_waiting(uint64_t most) {
  std::vector<Ref<Storage>> taken;
  const std::lock_guard lock(graph_mutex());
  Waiting& all = waiting();
  all.realises++;
  while (!all.by_place.empty()) {
    const auto first = all.by_place.begin();
    Storage& storage = *first->second.storage;
    if (all.realises - first->second.since <= most) break;
    if (!storage.version_->is_filled()) {
      taken.reserve(taken.size() + 1);
      if (storage.try_retain()) taken.push_back(Ref<Storage>::adopt(&storage));
    }
    storage.place_ = 0;
    all.by_place.erase(first);
  }
  return taken;
}

// -------------------------------------------------------------------------------------- gradients

Ref<Value> Storage::version_on_tape() const {
  if (leaf_number_ == 0 || version_->is_tracked() || !gradients_are_on()) return version_;
  return Value::make_leaf(version_, leaf_number_);
}

int64_t Storage::leaf_number() const {
  const std::lock_guard lock(graph_mutex());
  return leaf_number_;
}

void Storage::set_leaf(bool is_leaf) {
  static int64_t last_number = 0;
  Ref<Storage> dropped;
  const std::lock_guard lock(graph_mutex());
  if ((leaf_number_ != 0) == is_leaf) return;
  if (is_leaf) {
    leaf_number_ = ++last_number;
    leaves().emplace(leaf_number_, this);
  } else {
    leaves().erase(std::exchange(leaf_number_, 0));
    std::swap(dropped, gradient_);
  }
}

void Storage::list_as_unsaid() {
  const std::lock_guard lock(graph_mutex());
  if (!is_listed_) unsaid().insert(this);
  is_listed_ = true;
}

std::vector<Ref<Storage>> Storage::all_unsaid() {
  std::vector<Ref<Storage>> out;
  const std::lock_guard lock(graph_mutex());
  for (Storage* storage : unsaid()) {
    const bool is_one = storage->leaf_number_ == 0 && !storage->is_excluded();
    if (is_one && storage->try_retain()) out.push_back(Ref<Storage>::adopt(storage));
  }
  return out;
}

Ref<Storage> Storage::gradient() const {
  if (StorageWatch* watch = storage_watch()) watch->touch(const_cast<Storage&>(*this));
  const std::lock_guard lock(graph_mutex());
  return gradient_;
}

void Storage::set_gradient(Ref<Storage> gradient) {
  if (StorageWatch* watch = storage_watch()) watch->touch(*this);
  const std::lock_guard lock(graph_mutex());
  std::swap(gradient_, gradient);
}

Ref<Storage> Storage::find_leaf(int64_t number) {
  const auto at = leaves().find(number);
  if (at == leaves().end() || !at->second->try_retain()) return {};
  return Ref<Storage>::adopt(at->second);
}

void Storage::replace_version(Ref<Value>& version) {
  std::unique_ptr<PendingStores> dropped;
  end_pending(dropped);
  set_version(version);
}

void Storage::drop_pending(Value& write) {
  if (write.pending_of_ == nullptr) return;
  std::unique_ptr<PendingStores> dropped;
  write.pending_of_->end_pending(dropped);
}

}  // namespace weft
