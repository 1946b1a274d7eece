// The device WEBGPU: kernels in WGSL, run by wgpu-native on Vulkan, Metal or Direct3D.
#pragma once

#include <string>
#include <vector>

#include "runtime/device.h"

namespace weft {

// One or none. Loads wgpu-native and opens the best adapter.
std::vector<Device*> webgpu_devices();
// Why there is none.
std::string webgpu_missing();

}  // namespace weft
