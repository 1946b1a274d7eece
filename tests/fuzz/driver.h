// The main() of a fuzz program around one function that it defines,
//
//   void fuzz_one(weft::fuzz::Choices& choices);   // throws when it finds a fault
//
// Choices come from a seeded generator, or from libFuzzer's bytes where WEFT_LIBFUZZER is set.
//   fuzz_x --seed=S --count=N     cases S .. S+N-1; N = 0 goes on until one fails
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/core.h>

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

void fuzz_one(weft::fuzz::Choices& choices);

#if defined(WEFT_LIBFUZZER)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::Choices choices(std::span(data, size));
  fuzz_one(choices);  // an exception ends the process, and libFuzzer keeps the input
  return 0;
}

#else

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  std::uint64_t count = 1000;
  for (const std::string_view argument :
       std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    const auto number = [&](std::string_view name) -> std::optional<std::uint64_t> {
      if (!argument.starts_with(name)) return std::nullopt;
      return std::strtoull(argument.data() + name.size(), nullptr, 10);
    };
    if (const auto s = number("--seed=")) {
      seed = *s;
    } else if (const auto c = number("--count=")) {
      count = *c;
    } else {
      fmt::print(stderr, "usage: {} [--seed=S] [--count=N, 0 for no end]\n", argv[0]);
      return 2;
    }
  }
  for (std::uint64_t i = 0; count == 0 || i < count; ++i) {
    // Neighbouring cases share no part of their random sequence.
    weft::fuzz::Choices choices((seed + i) * 0xd1342543de82ef95);
    try {
      fuzz_one(choices);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\nagain with: {} --seed={} --count=1\n", error.what(), argv[0],
                 seed + i);
      return 1;
    }
    if (count == 0 && (i + 1) % 100'000 == 0) fmt::print(stderr, "{} cases\n", i + 1);
  }
  fmt::print("{} cases from seed {}: no fault\n", count, seed);
  return 0;
}

#endif
