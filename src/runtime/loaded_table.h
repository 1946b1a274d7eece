// Code that is loaded, by the key of its text: kernels of one text share it as long as one lives.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace weft {

template <class Code>
class LoadedTable {
 public:
  // Null when it is not there.
  std::shared_ptr<Code> find(const Hash128& key) {
    const std::lock_guard lock(mutex_);
    const auto at = codes_.find(key);
    return at == codes_.end() ? nullptr : at->second.lock();
  }

  // That of another thread, if it came first.
  std::shared_ptr<Code> add(const Hash128& key, std::shared_ptr<Code> code) {
    const std::lock_guard lock(mutex_);
    if (codes_.size() >= most_entries_) {
      std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
      most_entries_ = 2 * codes_.size() + 64;
    }
    std::weak_ptr<Code>& entry = codes_[key];
    if (std::shared_ptr<Code> first = entry.lock()) return first;
    entry = code;
    return code;
  }

 private:
  struct KeyHash {
    size_t operator()(const Hash128& h) const { return size_t(h.low); }
  };

  std::mutex mutex_;
  std::unordered_map<Hash128, std::weak_ptr<Code>, KeyHash> codes_;
  size_t most_entries_ = 64;
};

}  // namespace weft
