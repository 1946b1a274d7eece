// What the hardware of a device is, and the least time that work takes on it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/hash.h"

namespace weft {

// A cache, or the memory itself.
struct MemoryLevel {
  double bytes = 0;             // of one unit; of all of them where they share it
  double bytes_per_ns = 0;      // that one unit reads or writes
  double all_bytes_per_ns = 0;  // that all units together do
  bool is_shared = false;
};

// Read from the host or the driver where they say it; else that of its kind. Nothing is measured:
// the same hardware makes the same schedules.
struct Machine {
  static constexpr size_t kMostLevels = 4;

  double units = 1;               // cores, or multiprocessors, that run one kernel together
  double threads = 1;             // iterations that one unit needs at a time to be busy
  double together = 1;            // threads that can share one reduction
  double operations_per_ns = 50;  // of one unit: additions of float32; weight_of has the others
  double launch_ns = 4000;        // of one more kernel, and of waiting for it
  double line = 64;               // bytes that come from memory together
  size_t level_count = 4;         // nearest first; the last is memory
  std::array<MemoryLevel, kMostLevels> levels{{
      {double(size_t(48) << 10), 200, 200, false},
      {double(size_t(1) << 20), 100, 100, false},
      {double(size_t(32) << 20), 40, 40, true},
      {1e15, 10, 10, true},
  }};

  const MemoryLevel& own_cache() const;  // the largest that a unit has for itself
};

// Several lines, for people.
std::string text_of(const Machine& machine);

// Part of the key of what depends on it.
Hash128 mix(Hash128 hash, const Machine& machine);

// What a kernel does, counted where it runs.
struct KernelDemand {
  double operations = 0;  // weighted
  double bytes = 0;       // read and written
  double among = 0;       // of so many different ones: the others come from the nearest cache
  double parallel = 1;    // iterations that can run side by side
};

// Nanoseconds, at least: without those of the launch.
double bound(const KernelDemand& demand, const Machine& machine);

// Nanoseconds that one unit's share of a byte takes, of `among` bytes in use, when all units read.
double byte_ns(double among, const Machine& machine);

}  // namespace weft
