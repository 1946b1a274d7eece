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

namespace weft {
namespace {

constexpr size_t kDefaultCache = size_t(1) << 20;

size_t cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? size_t(bytes) : kDefaultCache;
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

void describe_host(Target& target) {
  const bool has_512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  target.vector_bytes = has_512 ? 64 : __builtin_cpu_supports("avx") != 0 ? 32 : 16;
  target.vector_registers = has_512 ? 32 : 16;
  target.cores = host_cores();
  target.limits.pieces = target.cores;
  target.cache_bytes = cache_bytes();
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
}

const std::string& host_identity() {
  static const std::string kIdentity =
      fmt::format("aarch64 {:x} {:x}", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  return kIdentity;
}

#endif

}  // namespace weft
