// Devices that OpenCL knows.
#pragma once

#include <string>
#include <vector>

#include "runtime/device.h"

namespace weft {

// OPENCL, OPENCL:1, ..., in the order of platforms and their devices. The library is loaded at the
// first call.
std::vector<Device*> opencl_devices();
// Why there is none, and what to install, or what is wrong with those that cannot be used.
std::string opencl_missing();

}  // namespace weft
