// Maps what is asked about, and gives it back untouched.
#include "base/address_room.h"

#include <cstddef>

#include <pthread.h>
#include <sys/mman.h>

namespace weft {

bool has_address_room(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

namespace {

constexpr size_t kBesideStack = size_t(1) << 20;    // its guard, and what a thread has of its own
constexpr size_t kBesideStacks = size_t(16) << 20;  // for what threads allocate

}  // namespace

bool has_room_for_threads(size_t count) {
  pthread_attr_t attributes;
  size_t stack = 0;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_destroy(&attributes);
  return has_address_room(count * (stack + kBesideStack) + kBesideStacks);
}

}  // namespace weft
