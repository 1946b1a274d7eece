// Bytes kept on disk by key, for other processes and other days: compiled kernels and schedules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace weft {

// Any number of processes may use one folder. An entry is written to a file of its own and then
// renamed, so that it is there whole or not; what is read is checked against its key and checksum,
// and an entry that is damaged is removed, as if it had never been. What another user could have
// written is not used (PrivateFolder), nor a folder that cannot be written: either is a warning on
// the standard error, once. Files that the cache did not write stay as they are, wherever they lie.
class KernelCache {
 public:
  // Entries lie in a folder `entries` in `folder`. `most_bytes` bounds them together: past it the
  // least recently used ones go (to the hour; entries that are read are marked as used). An empty
  // folder name, or 0, keeps nothing.
  KernelCache(const std::string& folder, int64_t most_bytes);
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;
  ~KernelCache();

  // None when it is not there. Thread-safe, never throws for what the disk does.
  std::optional<std::vector<std::byte>> get(const Hash128& key);
  void put(const Hash128& key, std::span<const std::byte> bytes);
  // For an entry whose bytes turned out to be of no use.
  void remove(const Hash128& key);

  struct Counts {
    uint64_t hits = 0, misses = 0, damaged = 0, written = 0, evicted = 0;
  };
  Counts counts() const;

 private:
  class Folder;
  std::unique_ptr<Folder> folder_;
};

// That of the process: the folder and bound of the configuration, as they are at the time of the
// call.
std::shared_ptr<KernelCache> kernel_cache();

}  // namespace weft
