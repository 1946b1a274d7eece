// Hashes of byte strings, read as little-endian words.
#include "base/hash.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace weft {
namespace {

template <class State>
State eat(State state, std::string_view bytes) {
  uint64_t word = 0;
  size_t i = 0;
  for (; i < bytes.size(); i++) {
    word |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * (i % 8));
    if (i % 8 == 7) {
      state = mix(state, word);
      word = 0;
    }
  }
  if (i % 8 != 0) state = mix(state, word);
  return mix(state, uint64_t(bytes.size()));
}

}  // namespace

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

uint64_t hash_bytes(std::string_view bytes) { return eat(uint64_t(0x51ed270b), bytes); }

Hash128 hash_bytes_128(std::string_view bytes) {
  return eat(Hash128{0x243f6a8885a308d3ull, 0x13198a2e03707344ull}, bytes);
}

}  // namespace weft
