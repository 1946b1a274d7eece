// Rates in closed form: arithmetic beside transfers, and a launch before both.
#include "schedule/machine.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/hash.h"

namespace weft {
namespace {

std::string size_text(double bytes) {
  if (bytes >= double(1 << 20)) return fmt::format("{:g} MiB", bytes / double(1 << 20));
  return fmt::format("{:g} KiB", bytes / 1024);
}

}  // namespace

const MemoryLevel& Machine::own_cache() const {
  const MemoryLevel* found = &levels[0];
  for (size_t i = 0; i < level_count; i++) {
    if (!levels[i].is_shared) found = &levels[i];
  }
  return *found;
}

std::string text_of(const Machine& m) {
  std::string out = fmt::format(
      "{} units, {} threads each, {} on one reduction; {} operations/ns each; {} ns a launch; "
      "lines of {} bytes",
      m.units, m.threads, m.together, m.operations_per_ns, m.launch_ns, m.line);
  for (size_t i = 0; i < m.level_count; i++) {
    const MemoryLevel& level = m.levels[i];
    const std::string name = i + 1 == m.level_count ? "memory" : size_text(level.bytes);
    out += fmt::format("\n{}{}: {} bytes/ns for one unit, {} for all", name,
                       level.is_shared ? "" : " each", level.bytes_per_ns, level.all_bytes_per_ns);
  }
  return out;
}

Hash128 mix(Hash128 hash, const Machine& m) {
  const auto add = [&](double value) { hash = mix(hash, std::bit_cast<uint64_t>(value)); };
  for (const double value :
       {m.units, m.threads, m.together, m.operations_per_ns, m.launch_ns, m.line}) {
    add(value);
  }
  for (size_t i = 0; i < m.level_count; i++) {
    const MemoryLevel& level = m.levels[i];
    for (const double value : {level.bytes, level.bytes_per_ns, level.all_bytes_per_ns}) add(value);
    hash = mix(hash, uint64_t(level.is_shared));
  }
  return hash;
}

double byte_ns(double among, const Machine& m) {
  for (size_t i = 0; i < m.level_count; i++) {
    const MemoryLevel& level = m.levels[i];
    const bool is_last = i + 1 == m.level_count;
    if (!is_last && among > level.bytes * (level.is_shared ? 1 : m.units)) continue;
    return 1 / std::min(level.all_bytes_per_ns * (level.is_shared ? 1 : m.units),
                        level.bytes_per_ns * m.units);
  }
  return 0;
}

double bound(const KernelDemand& d, const Machine& m) {
  // The part of the machine that is busy.
  const double busy = std::min(1.0, std::max(d.parallel, 1.0) / (m.units * m.threads));
  const double arithmetic = d.operations / (m.operations_per_ns * m.units);
  const double among = std::min(d.among, d.bytes);
  const double transfer = among * byte_ns(among, m) + (d.bytes - among) * byte_ns(0, m);
  return std::max(arithmetic, transfer) / busy;
}

}  // namespace weft
