// A growing array of zeroed words for tables that can be large: from 2 MiB on it lies in huge pages
// where the system has them, and pages that are never touched cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

class ZeroedArray {
 public:
  ZeroedArray() = default;
  explicit ZeroedArray(size_t size);
  ZeroedArray(ZeroedArray&& other) noexcept;
  ZeroedArray& operator=(ZeroedArray&& other) noexcept;
  ~ZeroedArray();

  uint64_t* data() { return data_; }
  const uint64_t* data() const { return data_; }
  size_t size() const { return size_; }
  uint64_t& operator[](size_t i) { return data_[i]; }
  uint64_t operator[](size_t i) const { return data_[i]; }

  // Keeps what is there; the new words are 0.
  void grow(size_t size);
  void clear_words();  // all to 0

 private:
  uint64_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weft
