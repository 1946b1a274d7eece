// Whether the process may still map memory: limits (ulimit -v, a container's) are asked before a
// library is called that ends the process where it gets none.
#pragma once

#include <cstddef>

namespace weft {

// That many bytes of addresses could be mapped at this moment.
bool has_address_room(size_t bytes);

// The same for threads that are about to start: the system's libraries end a process that has no
// memory for what a thread has of its own.
bool has_room_for_threads(size_t count);

}  // namespace weft
