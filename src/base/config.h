// The configuration of the process. The environment is read here and nowhere else.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Bytes; the largest number where the system does not say.
int64_t memory_of_machine();

constexpr int kMostBeam = 1024;

struct Config {
  int debug = 0;  // WEFT_DEBUG 0..6: how much is printed while compiling and running
  int stats = 0;  // WEFT_STATS 0..2: 1 counts and times every rule, 2 also prints every match
  std::string device = "CPU";  // WEFT_DEVICE: where tensors are made when nothing else is said
  // WEFT_SCHEDULE: 0 evaluates tensor graphs without a schedule; 2, 4 and 5 run all writes as loop
  // programs, also where that does not pay, with formulas cut in three ways (LoopCuts)
  int schedule = 1;
  int threads = 0;  // WEFT_THREADS: at most so many run one kernel; 0: as many as there are cores
  // WEFT_BEAM: the width of the search for a kernel's optimisations; 0: rules of thumb choose
  int beam = 0;
  int beam_seconds = 60;  // WEFT_BEAM_SECONDS: a search that takes longer ends with what it has
  // WEFT_CACHE_DIR: where compiled kernels and schedules are kept; by default
  // $XDG_CACHE_HOME/weft, or .cache/weft in $HOME. Empty: nowhere.
  std::string cache_dir{};
  int64_t most_cache_bytes = int64_t(1024) << 20;  // WEFT_CACHE_MB; 0: nothing is kept
  // WEFT_MEMORY_CACHE_MB: of the process's own memory, for schedules and compiled kernels that
  // nothing uses at the moment
  int64_t most_cached_bytes = int64_t(512) << 20;
  int compile_seconds = 60;    // WEFT_COMPILE_SECONDS: a C compiler that takes longer is killed
  std::string c_compiler{};    // CC: the C compiler, perhaps with arguments; empty: the first found
  std::string llvm_library{};  // WEFT_LLVM: the file of libLLVM; empty: the first found
  std::string
      wgpu_library{};  // WEFT_WGPU_LIBRARY: the file of libwgpu_native; empty: the first found
  // Folders that packages of Python may lie in, by colons: PYTHONPATH, until Python itself says.
  std::string package_path{};
  std::string nvrtc_library{};    // WEFT_NVRTC: the file of libnvrtc; empty: the first found
  std::string cuda_home{};        // CUDA_HOME or CUDA_PATH: a CUDA toolkit; empty: where they lie
  std::string search_path{};      // PATH: where programs are found
  std::string library_path{};     // LD_LIBRARY_PATH: where libraries are found before the system's
  std::string temp_dir = "/tmp";  // TMPDIR
  // Live values that are not realised, past which the result of an operation is realised at once.
  int64_t most_pending_values = 4'000'000;
  // Bytes that are in memory only because such values read them, past which the same happens: half
  // of the machine's memory.
  int64_t most_pinned_bytes = memory_of_machine() / 2;
};

// Read from the environment at first use; a value that is no number is an error that names it.
Config& config();

// A variable of the environment, where it and `unless` are not set, for the time of the object: for
// libraries that read it while they are loaded.
class EnvironmentDefault {
 public:
  EnvironmentDefault(const char* name, const char* value, const char* unless);
  EnvironmentDefault(const EnvironmentDefault&) = delete;
  EnvironmentDefault& operator=(const EnvironmentDefault&) = delete;
  ~EnvironmentDefault();

 private:
  const char* name_ = nullptr;  // null: it was left alone
};

// What the environment says now, for tests.
Config config_from_environment();

}  // namespace weft
