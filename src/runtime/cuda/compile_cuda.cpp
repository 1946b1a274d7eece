// Finding NVRTC or nvcc, and one text through it.
#include "runtime/cuda/compile_cuda.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/dynamic_library.h"
#include "base/error.h"
#include "runtime/run_compiler.h"

namespace weft {
namespace {

// What the renderer counts on; both compilers call these so.
constexpr const char* kFlags[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                  "--ftz=false", "--std=c++17"};

// Folders of toolkits and of the driver, where NVRTC and nvcc may lie.
std::vector<std::string> toolkits() {
  std::vector<std::string> found;
  if (!config().cuda_home.empty()) found.push_back(config().cuda_home);
  found.emplace_back("/usr/local/cuda");
  std::error_code error;
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local", error)) {
    const std::string path = entry.path().string();
    if (path.starts_with("/usr/local/cuda-")) others.push_back(path);
  }
  std::ranges::sort(others, std::ranges::greater());
  found.insert(found.end(), others.begin(), others.end());
  found.emplace_back("/opt/cuda");
  return found;
}

// ------------------------------------------------------------------------------------------- NVRTC

using NvrtcProgram = struct NvrtcProgramObject*;

// NVRTC_FUNCTION(member, name without nvrtc, parameters)
#define WEFT_NVRTC_FUNCTIONS(NVRTC_FUNCTION)                                                  \
  NVRTC_FUNCTION(version, Version, (int*, int*))                                              \
  NVRTC_FUNCTION(                                                                             \
      create, CreateProgram,                                                                  \
      (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  NVRTC_FUNCTION(destroy, DestroyProgram, (NvrtcProgram*))                                    \
  NVRTC_FUNCTION(compile, CompileProgram, (NvrtcProgram, int, const char* const*))            \
  NVRTC_FUNCTION(log_bytes, GetProgramLogSize, (NvrtcProgram, size_t*))                       \
  NVRTC_FUNCTION(log, GetProgramLog, (NvrtcProgram, char*))                                   \
  NVRTC_FUNCTION(cubin_bytes, GetCUBINSize, (NvrtcProgram, size_t*))                          \
  NVRTC_FUNCTION(cubin, GetCUBIN, (NvrtcProgram, char*))                                      \
  NVRTC_FUNCTION(ptx_bytes, GetPTXSize, (NvrtcProgram, size_t*))                              \
  NVRTC_FUNCTION(ptx, GetPTX, (NvrtcProgram, char*))                                          \
  NVRTC_FUNCTION(architecture_count, GetNumSupportedArchs, (int*))                            \
  NVRTC_FUNCTION(architectures, GetSupportedArchs, (int*))

struct NvrtcFunctions {
#define WEFT_DECLARE(member, name, parameters) int(*member) parameters = nullptr;
  WEFT_NVRTC_FUNCTIONS(WEFT_DECLARE)
#undef WEFT_DECLARE
  const char* (*error_text)(int) = nullptr;

  bool load(const DynamicLibrary& library) {
#define WEFT_LOAD(member, name, parameters)                 \
  member = library.function<int parameters>("nvrtc" #name); \
  if (member == nullptr) return false;
    WEFT_NVRTC_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
    error_text = library.function<const char*(int)>("nvrtcGetErrorString");
    return error_text != nullptr;
  }
};

class Nvrtc {
 public:
  explicit Nvrtc(const std::string& file) {
    const DynamicLibrary library = DynamicLibrary::open(file);
    if (!library) {
      error_ = DynamicLibrary::last_error();
    } else if (!functions_.load(library)) {
      error_ = fmt::format("{} is older than NVRTC 11.2", file);
    } else {
      functions_.version(&major_, &minor_);
      int count = 0;
      functions_.architecture_count(&count);
      architectures_.resize(size_t(count));
      functions_.architectures(architectures_.data());
    }
  }

  const NvrtcFunctions& functions() const {
    if (!error_.empty()) throw DeviceError(fmt::format("[CUDA] {}", error_));
    return functions_;
  }
  std::string description() const {
    return error_.empty() ? fmt::format("NVRTC {}.{}", major_, minor_) : error_;
  }

  struct Result {
    std::string option;
    bool is_cubin;
  };
  // Code for the device itself, with all that it can do; PTX for the driver to translate where this
  // NVRTC does not know the device.
  Result option_for(int architecture) const {
    if (std::ranges::find(architectures_, architecture) != architectures_.end()) {
      const char* all = architecture >= 90 && major_ >= 12 ? "a" : "";
      return {fmt::format("--gpu-architecture=sm_{}{}", architecture, all), true};
    }
    int nearest = 0;
    for (const int each : architectures_) {
      if (each < architecture) nearest = std::max(nearest, each);
    }
    return {fmt::format("--gpu-architecture=compute_{}", nearest == 0 ? architecture : nearest),
            false};
  }

 private:
  NvrtcFunctions functions_;
  std::string error_;
  int major_ = 0, minor_ = 0;
  std::vector<int> architectures_;
};

std::string find_nvrtc() {
  if (!config().nvrtc_library.empty()) return config().nvrtc_library;
  const std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
  for (const std::string& name : names) {
    if (std::string file = find_library_file(name); !file.empty()) return file;
    for (const std::string& folder : toolkits()) {
      for (const char* sub : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
        std::string file = fmt::format("{}/{}/{}", folder, sub, name);
        if (!file_identity(file).empty()) return file;
      }
    }
  }
  for (const std::string& name : names) {
    if (DynamicLibrary::open(name)) return name;
  }
  return {};
}

const std::string& nvrtc_file() {
  static const std::string kFile = find_nvrtc();
  return kFile;
}

const Nvrtc& nvrtc() {
  static const auto& instance = *new Nvrtc(nvrtc_file());
  return instance;
}

std::vector<std::byte> compile_by_nvrtc(std::string_view source, std::string_view name,
                                        int architecture) {
  const Nvrtc& library = nvrtc();
  const NvrtcFunctions& f = library.functions();
  const auto check = [&](int result, const std::string& log) {
    if (result == 0) return;
    throw CompileError(fmt::format("[CUDA] {}: {} {}{}{}", name, library.description(),
                                   f.error_text(result), log.empty() ? "" : ":\n", log));
  };
  const std::string text(source), file = fmt::format("{}.cu", name);
  NvrtcProgram program = nullptr;
  check(f.create(&program, text.c_str(), file.c_str(), 0, nullptr, nullptr), {});
  const auto destroy = [&f](NvrtcProgram p) { f.destroy(&p); };
  const std::unique_ptr<NvrtcProgramObject, decltype(destroy)> owner(program, destroy);
  const auto [option, is_cubin] = library.option_for(architecture);
  std::vector<const char*> options{option.c_str()};
  options.insert(options.end(), std::begin(kFlags), std::end(kFlags));
  const int result = f.compile(program, int(options.size()), options.data());
  std::string log;
  size_t bytes = 0;
  if (result != 0 && f.log_bytes(program, &bytes) == 0) {
    log.resize(bytes);
    f.log(program, log.data());
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  }
  check(result, log);
  check((is_cubin ? f.cubin_bytes : f.ptx_bytes)(program, &bytes), {});
  std::vector<std::byte> code(bytes);
  check((is_cubin ? f.cubin : f.ptx)(program, reinterpret_cast<char*>(code.data())), {});
  return code;
}

// -------------------------------------------------------------------------------------------- nvcc

const std::string& nvcc() {
  static const std::string kFile = [] {
    if (config().cuda_home.empty()) {
      if (std::string file = find_program("nvcc"); !file.empty()) return file;
    }
    for (const std::string& folder : toolkits()) {
      if (std::string file = find_program(folder + "/bin/nvcc"); !file.empty()) return file;
    }
    return std::string();
  }();
  return kFile;
}

std::vector<std::byte> compile_by_nvcc(std::string_view source, std::string_view name,
                                       int architecture) {
  const auto command = [&](const std::string& input, const std::string& output) {
    std::vector<std::string> line{
        nvcc(), "-cubin",
        fmt::format("-arch=sm_{}{}", architecture, architecture >= 90 ? "a" : "")};
    line.insert(line.end(), std::begin(kFlags), std::end(kFlags));
    line.insert(line.end(), {"-o", output, input});
    return line;
  };
  return run_compiler("CUDA", name, source, ".cu", command);
}

}  // namespace

// -------------------------------------------------------------------------------------- the two

const std::string& cuda_compiler_missing() {
  static const std::string kMissing =
      nvrtc_file().empty() && nvcc().empty()
          ? "there is neither NVRTC nor nvcc; install CUDA's NVRTC (pip install nvidia-cuda-nvrtc, "
            "or apt install nvidia-cuda-toolkit) and set WEFT_NVRTC to its libnvrtc.so where it "
            "lies elsewhere, or use WEFT_DEVICE=CUDA:PTX, which needs no compiler"
          : "";
  return kMissing;
}

std::string cuda_compiler_description() {
  if (!nvrtc_file().empty()) return nvrtc().description();
  return nvcc().empty() ? std::string("no compiler") : nvcc();
}

const std::string& cuda_compiler_identity() {
  static const std::string kIdentity = [] {
    const std::string& file = nvrtc_file().empty() ? nvcc() : nvrtc_file();
    const std::string identity = file_identity(file);
    return fmt::format("{} {}", identity.empty() ? cuda_compiler_description() : identity,
                       fmt::join(kFlags, " "));
  }();
  return kIdentity;
}

std::vector<std::byte> compile_cuda(std::string_view source, std::string_view name,
                                    int architecture) {
  if (const std::string& missing = cuda_compiler_missing(); !missing.empty()) {
    throw DeviceError(fmt::format("[CUDA] {}", missing));
  }
  return nvrtc_file().empty() ? compile_by_nvcc(source, name, architecture)
                              : compile_by_nvrtc(source, name, architecture);
}

}  // namespace weft
