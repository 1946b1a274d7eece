// A Storage: one piece of memory, which may not exist yet. Its version is the Value of its content
// now; a write makes the next version. All aliases of a tensor share their Storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "value/pending_stores.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

// Versions of Storages change, and Values are filled, under this one lock. No Storage is freed and
// nothing runs while it is held.
std::mutex& graph_mutex();

class Storage {
 public:
  static Ref<Storage> make(Ref<Value> version, int64_t origin = 0);

  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  DType dtype() const { return {scalar_}; }
  Device& device() const { return *device_; }
  int64_t numel() const { return numel_; }
  // What programs count as the number of its first element: not 0 where only a part of a storage
  // was computed.
  int64_t origin() const { return origin_; }
  uint32_t owners() const { return owners_.load(std::memory_order_acquire); }

  Ref<Value> version() const;
  const Ref<Value>& version_locked() const { return version_; }  // the lock is held
  bool is_realized() const;
  // Where its content lies now: nothing overwrites it while this is held. None when that is
  // nowhere.
  Ref<Buffer> memory() const;
  // What a view sees now, in the view's dtype. Attached, it is a leaf of the tape where gradients
  // are on and collected for this.
  enum class Tie : uint8_t { kAttached, kDetached };
  Ref<Value> read(const View& view, Tie tie = Tie::kAttached) const;
  // The same for all of it, in its order: where it is kept in this shape, nothing waits to be
  // written into it, and it is no leaf. None otherwise.
  Ref<Value> read_all(Ints shape) const;
  // Writes `value`, of the view's dtype and of its shape or a scalar, through the view. Without
  // elements nothing happens. Where the view touches an element twice the last one stays.
  void write(const View& view, Ref<Value> value);
  // The same for all of it, in its order, where it is kept in the value's shape and dtype and no
  // gradient passes. False otherwise: nothing is done.
  bool write_all(Ref<Value>& value);
  // Writes `value` to the elements that `index` names, or combines it with what is there, in
  // row-major order. The value has the view's shape with the index's in place of the axes that it
  // names, or is a scalar. Without an index, to all of the view. One that combines needs the view's
  // dtype to be that of the storage.
  void write(const View& view, Ref<Value> value, Ref<Value> index, Value::Scatter how);

  // Gradients are collected for it. Its number names it on the tape; 0: it is no leaf.
  int64_t leaf_number() const;
  void set_leaf(bool is_leaf);
  // What was said about its gradients: they are wanted of a leaf; of others, nothing or that none
  // are. Those that were made of data, and of which nothing was said, are listed as long as they
  // live.
  bool is_excluded() const { return is_excluded_.load(std::memory_order_relaxed); }
  void set_excluded(bool is_excluded) {
    is_excluded_.store(is_excluded, std::memory_order_relaxed);
  }
  void list_as_unsaid();
  static std::vector<Ref<Storage>> all_unsaid();
  // What was collected, laid out as this. None at first.
  Ref<Storage> gradient() const;
  void set_gradient(Ref<Storage> gradient);
  // The Storage with this number, if it lives; the lock is held.
  static Ref<Storage> find_leaf(int64_t number);

  // For memory of somebody else: `forget`, the same for all of them, is called when it dies.
  using Forget = void (*)(const Storage&) noexcept;
  void set_foreign(Forget forget);
  // A further owner, unless the last one is gone.
  bool try_retain();

  // For jit. The watch that saw it made; 0: none.
  uint32_t made_under() const { return made_under_; }
  // Makes `version` the content, whatever was to be written, and leaves the version before in its
  // place, to be freed without the lock, which is held. The same shape and dtype.
  void replace_version(Ref<Value>& version);
  // Captures that name it: they are owners too.
  uint32_t captures() const { return captures_.load(std::memory_order_relaxed); }
  void add_capture() { captures_.fetch_add(1, std::memory_order_relaxed); }
  void remove_capture() { captures_.fetch_sub(1, std::memory_order_relaxed); }

  // For realise, which holds the lock: forgets the pending stores that `write` is one of.
  static void drop_pending(Value& write);
  // For realise: counts one more of them, and gives the Storages with writes that have waited for
  // more than `most`. Takes the lock.
  static std::vector<Ref<Storage>> take_waiting(uint64_t most);

 private:
  friend void retain(Storage* storage) noexcept;
  friend void release(Storage* storage) noexcept;

  Storage(Ref<Value> version, int64_t origin);
  ~Storage();

  Ref<Value> read_locked(const View& view, Tie tie) const;
  PendingRead find_step_by_step(const View& view) const;
  // The version, as a leaf where it is one.
  Ref<Value> version_on_tape() const;
  void set_version(Ref<Value>& version);
  // The same, whatever waits to be written: that is left in `dropped`.
  void replace(Ref<Value>& version, std::unique_ptr<PendingStores>& dropped);
  // Its writes are none of pending stores any more, which are left in `dropped`.
  void end_pending(std::unique_ptr<PendingStores>& dropped) noexcept;
  // A write is made: it waits from now on, unless one before it does already.
  void begin_to_wait();
  void tie(Ref<Value> value);
  // The lock is held. What is replaced is left in `value`.
  void add_write(const Sizes& numbers, Ref<Value>& value, Ref<Value> index,
                 std::unique_ptr<PendingStores>& dropped);

  std::atomic<uint32_t> owners_ = 1;
  std::atomic<uint32_t> captures_ = 0;
  uint32_t made_under_ = 0;
  Scalar scalar_;
  // Set before it is shared, or under the graph lock.
  bool was_pending_ : 1 = false;  // it has had pending stores
  bool is_foreign_ : 1 = false;
  bool is_listed_ : 1 = false;  // as one of which nothing was said
  std::atomic<bool> is_excluded_ = false;
  int64_t numel_;
  int64_t origin_;
  Device* device_;
  Ref<Value> version_;
  std::unique_ptr<PendingStores> pending_;  // ends at version_
  int64_t leaf_number_ = 0;
  Ref<Storage> gradient_;
  uint64_t place_ = 0;  // among those that wait; 0: it does not
};

void retain(Storage* storage) noexcept;
void release(Storage* storage) noexcept;

}  // namespace weft
