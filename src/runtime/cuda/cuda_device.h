// The devices CUDA, CUDA:1, ...: NVIDIA's GPUs, and each again by every other way to code for it
// (CUDA:PTX, CUDA:1:PTX, ...).
#pragma once

#include <string>
#include <vector>

#include "runtime/device.h"

namespace weft {

// None where there is no driver, or no GPU. Loads the driver.
std::vector<Device*> cuda_devices();
// Why there is none.
std::string cuda_missing();

}  // namespace weft
