// Environment variables to Config.
#include "base/config.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

namespace weft {
namespace {

constexpr int kMostThreads = 4096;

int read_int(const char* name, int fallback, int most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  const std::string_view given(text);
  int value = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc() || end != given.data() + given.size() || value < 0 || value > most) {
    throw Error(fmt::format("[environment] {}={} is not a number from 0 to {}", name, given, most));
  }
  return value;
}

std::string read_text(const char* name, std::string fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? std::move(fallback) : std::string(text);
}

// The first of OpenMP's numbers of threads, one for each level of nesting; 0: none.
int openmp_threads() {
  const std::string text = read_text("OMP_NUM_THREADS", {});
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && value > 0 && value <= kMostThreads ? value : 0;
}

std::string default_cache_dir() {
  if (const std::string caches = read_text("XDG_CACHE_HOME", {}); !caches.empty()) {
    return caches + "/weft";
  }
  const std::string home = read_text("HOME", {});
  return home.empty() ? home : home + "/.cache/weft";
}

}  // namespace

int64_t memory_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return std::numeric_limits<int64_t>::max();
  return int64_t(pages) * bytes;
}

Config config_from_environment() {
  Config config;
  config.debug = read_int("WEFT_DEBUG", 0, 6);
  config.stats = read_int("WEFT_STATS", 0, 2);
  config.device = read_text("WEFT_DEVICE", config.device);
  config.schedule = read_int("WEFT_SCHEDULE", 1, 5);
  config.threads = read_int("WEFT_THREADS", openmp_threads(), kMostThreads);
  config.beam = read_int("WEFT_BEAM", 0, kMostBeam);
  config.beam_seconds = read_int("WEFT_BEAM_SECONDS", config.beam_seconds, 1 << 20);
  config.cache_dir = read_text("WEFT_CACHE_DIR", default_cache_dir());
  config.most_cache_bytes = int64_t(read_int("WEFT_CACHE_MB", 1024, 1 << 30)) << 20;
  config.most_cached_bytes = int64_t(read_int("WEFT_MEMORY_CACHE_MB", 512, 1 << 30)) << 20;
  config.compile_seconds = read_int("WEFT_COMPILE_SECONDS", config.compile_seconds, 1 << 20);
  config.c_compiler = read_text("CC", {});
  config.llvm_library = read_text("WEFT_LLVM", {});
  config.wgpu_library = read_text("WEFT_WGPU_LIBRARY", {});
  config.package_path = read_text("PYTHONPATH", {});
  config.nvrtc_library = read_text("WEFT_NVRTC", {});
  config.cuda_home = read_text("CUDA_HOME", read_text("CUDA_PATH", {}));
  config.search_path = read_text("PATH", "/usr/local/bin:/usr/bin:/bin");
  config.library_path = read_text("LD_LIBRARY_PATH", {});
  config.temp_dir = read_text("TMPDIR", config.temp_dir);
  return config;
}

EnvironmentDefault::EnvironmentDefault(const char* name, const char* value, const char* unless) {
  if (std::getenv(name) != nullptr || std::getenv(unless) != nullptr) return;
  if (setenv(name, value, 0) == 0) name_ = name;
}

EnvironmentDefault::~EnvironmentDefault() {
  if (name_ != nullptr) unsetenv(name_);
}

Config& config() {
  static Config instance = config_from_environment();
  return instance;
}

}  // namespace weft
