// Addresses that stand for memory of the device.
#include "address_space.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/util/Exception.h>
#include <sys/mman.h>

namespace weft::pytorch {
namespace {

// What is reserved at once, and where a process may not have as many addresses.
constexpr size_t kSpan = size_t(1) << 45, kPiece = size_t(1) << 26;
constexpr size_t kAlignment = 64;

// Ranges have four sizes to a power of two, so that what was given back fits again.
struct Kind {
  uint32_t number;
  size_t size;
};
Kind kind_of(size_t bytes) {
  bytes = std::max(bytes + 1, kAlignment);
  constexpr size_t even = 4 * kAlignment;  // up to twice as many, sizes are multiples of kAlignment
  const size_t power = std::max(std::bit_floor(bytes), even), step = power / 4;
  const size_t steps = (bytes + step - 1) / step;  // of the power: 4 to 8; of the first, 1 to 8
  const auto above = uint32_t(std::countr_zero(power) - std::countr_zero(even));
  return {uint32_t(steps) + 4 * above, steps * step};
}

void* reserve(size_t size) {
  void* const range =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : range;
}

}  // namespace

Memory& AddressSpace::take(size_t bytes) {
  const Kind kind = kind_of(bytes);
  if (kind.number >= free_.size()) free_.resize(kind.number + 1);
  std::vector<Memory*>& free = free_[kind.number];
  Memory* const memory = free.empty() ? &make(kind.number, kind.size) : free.back();
  if (!free.empty()) free.pop_back();
  memory->bytes = bytes;
  memory->is_taken = true;
  memory->before = last_;
  memory->after = nullptr;
  (last_ == nullptr ? first_ : last_->after) = memory;
  last_ = memory;
  taken_++;
  return *memory;
}

Memory& AddressSpace::make(uint32_t kind, size_t size) {
  for (const size_t span : {std::max(size, kSpan), std::max(size, kPiece)}) {
    if (size <= left_) break;
    next_ = static_cast<std::byte*>(reserve(span));
    left_ = next_ == nullptr ? 0 : span;
  }
  TORCH_CHECK(size <= left_, "weft: no addresses are left for ", size, " bytes");
  void* const address = next_;
  Memory& memory = all_[reinterpret_cast<uintptr_t>(address)];
  memory.address = address;
  memory.kind = kind;
  next_ += size;
  left_ -= size;
  return memory;
}

void AddressSpace::give_back(Memory& memory) {
  memory.is_taken = false;
  (memory.before == nullptr ? first_ : memory.before->after) = memory.after;
  (memory.after == nullptr ? last_ : memory.after->before) = memory.before;
  taken_--;
  free_[memory.kind].push_back(&memory);
}

Memory* AddressSpace::find(uintptr_t address) {
  auto at = all_.upper_bound(address);
  if (at == all_.begin()) return nullptr;
  Memory& memory = (--at)->second;
  return memory.is_taken && address <= at->first + memory.bytes ? &memory : nullptr;
}

}  // namespace weft::pytorch
