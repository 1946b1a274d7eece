// cpuid, or what the kernel says of an AArch64 CPU.
#include "runtime/cpu/host_cpu.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

#include "codegen/target.h"
#include "schedule/machine.h"

namespace weft {
namespace {

constexpr size_t kDefaultCache = size_t(1) << 20;

size_t bytes_of(int name, size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? size_t(bytes) : otherwise;
}

size_t cache_bytes() { return bytes_of(_SC_LEVEL2_CACHE_SIZE, kDefaultCache); }

// Sizes are this machine's; rates are those of cores with such vectors at 3 GHz.
Machine host_machine(const Target& target) {
  const auto cores = double(target.cores), vector = double(target.vector_bytes);
  const auto nearest = double(bytes_of(_SC_LEVEL1_DCACHE_SIZE, size_t(32) << 10));
  const auto shared = double(bytes_of(_SC_LEVEL3_CACHE_SIZE, size_t(16) << 20));
  Machine m;
  m.units = cores;
  m.operations_per_ns = vector / 4 * 5;
  m.line = double(bytes_of(_SC_LEVEL1_DCACHE_LINESIZE, 64));
  m.levels = {{{nearest, 4 * vector, 4 * vector, false},
               {double(target.cache_bytes), 1.5 * vector, 1.5 * vector, false},
               {shared, 40, 40 * cores, true},
               {0, 12, std::min(12 * cores, 200.0), true}}};
  return m;
}

}  // namespace

size_t host_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return size_t(std::max(CPU_COUNT(&set), 1));
  return size_t(std::max<long>(sysconf(_SC_NPROCESSORS_ONLN), 1));
}

#if defined(__x86_64__)

bool has_half_casts() { return __builtin_cpu_supports("f16c") != 0; }

namespace {

// Cores of AMD's family 25 do vectors of 64 bytes in two halves.
bool is_of_halves() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  const unsigned family = ((a >> 8) & 15) + ((a >> 20) & 255);
  return __builtin_cpu_is("amd") != 0 && family == 25;
}

}  // namespace

void describe_host(Target& target) {
  const bool has_512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  target.vector_bytes = has_512 ? 64 : __builtin_cpu_supports("avx") != 0 ? 32 : 16;
  target.vector_registers = has_512 ? 32 : 16;
  target.halves_vectors = has_512 && is_of_halves();
  target.cores = host_cores();
  target.limits.pieces = target.cores;
  target.cache_bytes = cache_bytes();
  target.limits.machine = host_machine(target);
}

const std::string& host_identity() {
  static const std::string kIdentity = [] {
    std::string text = "x86-64";
    // Model and features; of leaf 1 without the number of the core that answers.
    for (const auto& [leaf, subleaf] : {std::pair(1U, 0U), {7U, 0U}, {7U, 1U}, {0x80000001U, 0U}}) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d);
      text += fmt::format(" {:x}.{:x}.{:x}.{:x}", a, leaf == 1 ? 0 : b, c, d);
    }
    return text;
  }();
  return kIdentity;
}

#else

bool has_half_casts() { return true; }

void describe_host(Target& target) {
  target.vector_bytes = 16;
  target.vector_registers = 32;
  target.cores = host_cores();
  target.limits.pieces = target.cores;
  target.cache_bytes = cache_bytes();
  target.limits.machine = host_machine(target);
}

const std::string& host_identity() {
  static const std::string kIdentity =
      fmt::format("aarch64 {:x} {:x}", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  return kIdentity;
}

#endif

}  // namespace weft
