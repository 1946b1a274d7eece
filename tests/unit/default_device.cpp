// Tests that do not name a device are about values, versions and schedules: they run on the
// reference device. This runs before main, and so before the environment is read.
#include <stdlib.h>  // setenv, which is not in <cstdlib>

namespace {

[[maybe_unused]] const int kDeviceIsSet = setenv("WEFT_DEVICE", "REF", 0);

}  // namespace
