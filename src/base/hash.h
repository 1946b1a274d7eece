// Hashing that gives the same numbers in every process and on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// One round of a 64-bit mixer: multiply by an odd constant, fold the high half back.
constexpr uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9fb21c651e98df25ull;
  return h ^ (h >> 32);
}

// 128 bits: the identity of a graph across arenas and processes, wide enough to key a disk cache.
struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const Hash128&) const = default;
  std::string hex() const;
};

constexpr Hash128 mix(Hash128 h, uint64_t v) {
  // The halves use different multipliers and are crossed, so they fail independently.
  const uint64_t low = mix(h.low, v);
  const uint64_t high = (h.high ^ (v + 0x632be59bd9b4e019ull)) * 0xd6e8feb86659fd93ull;
  return {low ^ (high >> 29), (high ^ (high >> 31)) + low};
}
constexpr Hash128 mix(Hash128 h, Hash128 v) { return mix(mix(h, v.low), v.high); }

uint64_t hash_bytes(std::string_view bytes);
Hash128 hash_bytes_128(std::string_view bytes);

}  // namespace weft
