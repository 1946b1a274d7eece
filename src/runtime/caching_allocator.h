// Memory for buffers, kept when it is freed: what a program allocates again and again costs no call
// of the system and no page fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft {

// Where memory comes from in the first place.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  // Null when there is none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;
  // What to say of it when there is none: " (...)", or nothing.
  virtual std::string state() const { return {}; }
};

// Memory of this process: aligned to 64 bytes; from 1 MiB on to a page, from 4 MiB on to a huge
// page.
MemorySource& host_memory();

class CachingAllocator {
 public:
  // `name` is for messages. At most `most_bytes` are in use at a time, and at most
  // `most_kept_bytes` kept that are not in use. The source outlives it.
  CachingAllocator(std::string name, int64_t most_bytes, int64_t most_kept_bytes,
                   MemorySource& source = host_memory())
      : name_(std::move(name)),
        most_bytes_(most_bytes),
        most_kept_bytes_(most_kept_bytes),
        source_(source) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator() { release_kept(); }

  // What is kept goes back to the source before an allocation fails: then DeviceError, and all is
  // as it was. Thread-safe.
  void* allocate(size_t bytes);
  // `bytes` as allocated.
  void free(void* memory, size_t bytes) noexcept;
  // Back to the source with all that is not in use.
  void release_kept() noexcept;

  // Around a fork: in the child no other thread is there to finish what it had begun.
  void before_fork() { mutex_.lock(); }
  void after_fork() { mutex_.unlock(); }

  int64_t used_bytes() const;
  int64_t kept_bytes() const;

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  using Blocks = std::list<Block>;
  struct SizeClass {
    std::vector<Blocks::iterator> kept;  // has room for those in use
    size_t used = 0;
  };

  void* take_kept(size_t bytes);
  void release_oldest() noexcept;

  const std::string name_;
  const int64_t most_bytes_, most_kept_bytes_;
  MemorySource& source_;
  mutable std::mutex mutex_;
  int64_t used_bytes_ = 0, kept_bytes_ = 0;
  Blocks kept_;  // freed last comes first
  size_t used_ = 0;
  Blocks spare_;  // nodes for kept_, so that free() needs no memory
  std::unordered_map<size_t, SizeClass> classes_;
};

}  // namespace weft
