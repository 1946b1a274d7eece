// Between bytes in memory and the canonical bits of the reference evaluator's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/dtype.h"

namespace weft {

// The canonical bits of one element that lies at `from`, and back.
uint64_t load_bits(DType type, const std::byte* from);
void store_bits(DType type, uint64_t bits, std::byte* to);

// Of all elements, one after the other.
std::vector<uint64_t> bits_of_bytes(DType type, std::span<const std::byte> bytes);
// Writes bits.size() elements to `to`.
void bytes_of_bits(DType type, std::span<const uint64_t> bits, std::span<std::byte> to);

}  // namespace weft
