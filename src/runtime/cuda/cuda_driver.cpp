// libcuda.so.1, its functions, and the devices that it counts.
#include "runtime/cuda/cuda_driver.h"

#include <atomic>
#include <string>

#include <fmt/format.h>
#include <pthread.h>

#include "base/dynamic_library.h"
#include "runtime/cuda/cuda_functions.h"

namespace weft {
namespace {

std::atomic<bool> is_started = false, is_of_parent = false;

void after_fork_in_child() { is_of_parent = is_started.load(); }

}  // namespace

bool cuda_is_of_parent() { return is_of_parent.load(std::memory_order_relaxed); }

const CudaDriver& CudaDriver::get() {
  static const auto& instance = *new CudaDriver;
  return instance;
}

CudaDriver::CudaDriver() {
  const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
  if (!library) {
    missing_ = fmt::format("NVIDIA's driver is not installed ({})", DynamicLibrary::last_error());
    return;
  }
  if (const char* lacking = functions_.load(library)) {
    missing_ = fmt::format("NVIDIA's driver is too old: it has no {}; CUDA 11.4 or newer is needed",
                           lacking);
    return;
  }
  pthread_atfork(nullptr, nullptr, &after_fork_in_child);
  is_started = true;
  const CudaResult result = functions_.init(0);
  if (result != 0) {
    missing_ = fmt::format("NVIDIA's driver does not start: {}", text_of(result));
    return;
  }
  functions_.driver_version(&version_);
  functions_.device_count(&device_count_);
  if (device_count_ == 0) missing_ = "NVIDIA's driver finds no device";
}

std::string CudaDriver::text_of(CudaResult result) const {
  const char *name = nullptr, *text = nullptr;
  functions_.error_name(result, &name);
  functions_.error_text(result, &text);
  if (name == nullptr) return fmt::format("error {}", result);
  return text == nullptr ? std::string(name) : fmt::format("{} ({})", name, text);
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace weft
