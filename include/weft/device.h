// The devices of this process, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

std::vector<std::string> device_names();

// Where tensors are made when nothing else is said: WEFT_DEVICE, unless set since.
std::string default_device();
// Throws DeviceError when there is no device of this name.
void set_default_device(std::string_view name);

}  // namespace weft
