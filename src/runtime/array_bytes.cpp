// Bytes to bits and back: little-endian elements of 1, 2, 4 or 8 bytes.
#include "runtime/array_bytes.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ir/dtype.h"

namespace weft {

static_assert(std::endian::native == std::endian::little);

uint64_t load_bits(DType type, const std::byte* from) {
  const size_t width = size_t(type.item_bytes());
  uint64_t bits = 0;
  std::memcpy(&bits, from, width);
  if (type.is_bool()) return bits != 0;
  if (!type.is_signed()) return bits;
  const int unused = 64 - int(width) * 8;
  return uint64_t(int64_t(bits << unused) >> unused);
}

void store_bits(DType type, uint64_t bits, std::byte* to) {
  std::memcpy(to, &bits, size_t(type.item_bytes()));
}

std::vector<uint64_t> bits_of_bytes(DType type, std::span<const std::byte> bytes) {
  const size_t width = size_t(type.item_bytes());
  std::vector<uint64_t> bits(bytes.size() / width);
  for (size_t i = 0; i < bits.size(); i++) bits[i] = load_bits(type, bytes.data() + i * width);
  return bits;
}

void bytes_of_bits(DType type, std::span<const uint64_t> bits, std::span<std::byte> to) {
  const size_t width = size_t(type.item_bytes());
  for (size_t i = 0; i < bits.size(); i++) store_bits(type, bits[i], to.data() + i * width);
}

}  // namespace weft
