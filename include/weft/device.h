// The devices of this process, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/dtype.h"

namespace weft {

// Those that were found.
std::vector<std::string> device_names();

// All that there could be. Looks for drivers: it may take a while.
struct DeviceEntry {
  std::string name;
  std::string description;  // what runs its kernels, versions, memory
  std::string missing;      // why it is not there; empty: it is
};
std::vector<DeviceEntry> device_list();

// What a device has not, and gives a DTypeError for. No name: the default device.
std::vector<DType> missing_dtypes(std::string_view name = {});

// Where tensors are made when nothing else is said: WEFT_DEVICE, unless set since.
std::string default_device();
// Throws DeviceError when there is no device of this name.
void set_default_device(std::string_view name);

// Returns when all that was started on a device has been done. No name: the default device.
void synchronize(std::string_view name = {});

}  // namespace weft
