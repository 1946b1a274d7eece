// Maps what is asked about, and gives it back untouched.
#include "base/address_room.h"

#include <cstddef>

#include <sys/mman.h>

namespace weft {

bool has_address_room(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

}  // namespace weft
