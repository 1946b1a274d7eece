// Where random programs get their numbers: a seeded generator, or a fuzzer's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::fuzz {

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // 64 bits: random, or the next eight bytes and zeros past their end.
  std::uint64_t bits() { return bytes_ ? take(8) : splitmix(); }

  // Uniform in [0, n) as far as the source is; n > 0. Takes as few bytes as n needs.
  std::uint64_t below(std::uint64_t n) {
    if (!bytes_) return splitmix() % n;
    int width = 1;
    while (width < 8 && (n - 1) >> (8 * width) != 0) ++width;
    return take(width) % n;
  }

  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    const std::uint64_t step = span == 0 ? bits() : below(span);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
  }

  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t splitmix() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t take(int width) {
    std::uint64_t value = 0;
    for (int i = 0; i < width && !bytes_->empty(); ++i, bytes_ = bytes_->subspan(1))
      value |= std::uint64_t{bytes_->front()} << (8 * i);
    return value;
  }

  std::uint64_t state_ = 0;
  std::optional<std::span<const std::uint8_t>> bytes_;
};

}  // namespace weft::fuzz
