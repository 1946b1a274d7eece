// Addresses that stand for memory of the device.
#include "address_space.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include <c10/util/Exception.h>
#include <sys/mman.h>

namespace weft::pytorch {
namespace {
constexpr size_t kSpan = size_t(1) << 45;
constexpr size_t kAlignment = 64;
}  // namespace

// Of four sizes to a power of two, so that what was given back fits again.
size_t AddressSpace::rounded(size_t bytes) {
  bytes = std::max(bytes + 1, kAlignment);  // an address past the end is nobody else's
  const size_t step = std::max(std::bit_floor(bytes) / 4, kAlignment);
  return (bytes + step - 1) / step * step;
}

void* AddressSpace::take(size_t bytes) {
  const size_t size = rounded(bytes);
  const auto at = free_.find(size);
  if (at != free_.end() && !at->second.empty()) {
    void* const address = at->second.back();
    at->second.pop_back();
    return address;
  }
  if (first_ == nullptr) {
    void* const range =
        mmap(nullptr, kSpan, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(range != MAP_FAILED, "weft: cannot reserve addresses for the device's tensors");
    first_ = static_cast<std::byte*>(range);
  }
  TORCH_CHECK(size <= kSpan - used_, "weft: no addresses are left for ", bytes, " bytes");
  void* const address = first_ + used_;
  used_ += size;
  return address;
}

void AddressSpace::give_back(void* address, size_t bytes) {
  free_[rounded(bytes)].push_back(address);
}

}  // namespace weft::pytorch
