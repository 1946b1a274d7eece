// Somebody who is told of the storages that a thread reads and writes: jit, while it captures.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

class Storage;

class StorageWatch {
 public:
  StorageWatch();
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;
  virtual ~StorageWatch();

  // Before the storage is read or written. No lock is held.
  virtual void touch(Storage& storage) = 0;

  // Storages that this thread makes meanwhile have this number; no other watch has it.
  uint32_t number() const { return number_; }

  // Watches this thread while it lives. One at a time.
  class Scope {
   public:
    explicit Scope(StorageWatch& watch);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
  };
  // Nothing is watched while it lives.
  class Pause {
   public:
    Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

   private:
    StorageWatch* paused_;
  };

 private:
  uint32_t number_;
};

// That of this thread; mostly null.
StorageWatch* storage_watch();

// Throws JitError while this thread is watched: what a function does with values that it asks for
// is not captured.
void refuse_values_while_captured();

}  // namespace weft
