// Addresses that stand for memory of the device: unique, aligned, and never to be touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace weft::pytorch {

// Not for threads at the same time.
class AddressSpace {
 public:
  // A range of at least so many bytes, at least one.
  void* take(size_t bytes);
  void give_back(void* address, size_t bytes);

 private:
  static size_t rounded(size_t bytes);

  std::byte* first_ = nullptr;
  size_t used_ = 0;
  std::map<size_t, std::vector<void*>> free_;  // by size
};

}  // namespace weft::pytorch
