// libOpenCL, loaded when it is first asked for, and the devices that it knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/opencl/opencl_functions.h"

namespace weft::cl {

// What a device says of itself.
struct Facts {
  DeviceId id = nullptr;
  Platform platform = nullptr;
  std::string name, driver, version;  // "OpenCL 3.0 PoCL ..."
  std::string platform_name, platform_version;
  uint64_t type = 0;
  size_t compute_units = 1;
  size_t group_size = 1;
  std::vector<size_t> group_sizes;  // by dimension
  size_t warp = 1;                  // threads that step together
  uint64_t memory = 0, max_allocation = 0, local_memory = 0;
  size_t max_parameter_bytes = 0;
  uint64_t single_config = 0, double_config = 0;
};

struct Library {
  Functions call;
  std::vector<Facts> devices;  // those that can be used
  // Why there is no device, and what to install, or what is wrong with devices that cannot be used.
  std::string missing;
};

// Loaded once. Thread-safe.
const Library& library();

// "CL_OUT_OF_RESOURCES (-5)"
std::string error_text(int32_t code);

// A process that forked has none of the threads of the library: every call would wait for them for
// ever. Throws DeviceError in a child of the process that loaded the library.
void check_process();
bool is_lost_by_fork() noexcept;

}  // namespace weft::cl
