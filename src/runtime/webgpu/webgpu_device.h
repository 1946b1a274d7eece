// The device WEBGPU: kernels in WGSL, run by wgpu-native on Vulkan, Metal or Direct3D.
#pragma once

#include "runtime/device.h"

namespace weft {

Device& webgpu_device();

}  // namespace weft
