// Random bits of a device: a counter that a hash with a key makes 64 bits of (docs/tensor.md).
#pragma once

#include <cstdint>

#include "runtime/device.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

// The next blocks of 64 bits of the device's generator, in this shape, uint64: block i is
// THREEFRY(counter + i, key). The counter goes on by as many.
Tensor draw_blocks(Device& device, Ints shape);

// The state of a generator, uint64 of shape (2): the key, then the counter. Handles of it see it
// change.
Tensor generator_state(Device& device);

}  // namespace weft
