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

#include "tests/fuzz/choices.h"

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
