// wgpu-native, found and loaded while the process runs.
#pragma once

#include <string>

#include "runtime/webgpu/wgpu_functions.h"

namespace weft {

// Loaded at the first call. Throws DeviceError that says what to install where there is none, or
// one with another interface.
const wgpu::Functions& wgpu_library();

// Its file and version, for people; empty where there is none.
std::string wgpu_identity();

}  // namespace weft
