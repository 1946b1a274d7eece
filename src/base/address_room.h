// Whether the process may still map memory: limits (ulimit -v, a container's) are asked before a
// library is called that ends the process where it gets none.
#pragma once

#include <cstddef>

namespace weft {

// That many bytes of addresses could be mapped at this moment.
bool has_address_room(size_t bytes);

}  // namespace weft
