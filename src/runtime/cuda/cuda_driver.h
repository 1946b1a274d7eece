// CUDA's driver, loaded when it is first asked for.
#pragma once

#include <string>

#include "runtime/cuda/cuda_functions.h"

namespace weft {

class CudaDriver {
 public:
  // Loads and starts it once. Never throws: what goes wrong is missing().
  static const CudaDriver& get();

  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  // Why there is none, or no device of it; empty: there is.
  const std::string& missing() const { return missing_; }
  const CudaFunctions& functions() const { return functions_; }
  int version() const { return version_; }  // 1000 major + 10 minor
  int device_count() const { return device_count_; }

  // CUDA_ERROR_OUT_OF_MEMORY (out of memory)
  std::string text_of(CudaResult result) const;

 private:
  CudaDriver();

  CudaFunctions functions_;
  std::string missing_;
  int version_ = 0;
  int device_count_ = 0;
};

// Whether the driver was started in a process of which this one is a fork: it works no more.
bool cuda_is_of_parent();

// 12.4 for 12040
std::string cuda_version_text(int version);

}  // namespace weft
