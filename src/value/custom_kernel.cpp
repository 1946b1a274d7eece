// Freeing chains of kernels.
#include "value/custom_kernel.h"

#include <atomic>
#include <vector>

namespace weft {
namespace {

// Kernels to be freed by the call of release() that this thread is in.
thread_local std::vector<CustomKernel*>* to_free = nullptr;

}  // namespace

void retain(CustomKernel* kernel) noexcept {
  kernel->owners.fetch_add(1, std::memory_order_relaxed);
}

void release(CustomKernel* kernel) noexcept {
  if (kernel->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (to_free != nullptr) {
    to_free->push_back(kernel);
    return;
  }
  std::vector<CustomKernel*> list = {kernel};
  to_free = &list;
  while (!list.empty()) {
    const CustomKernel* const next = list.back();
    list.pop_back();
    delete next;
  }
  to_free = nullptr;
}

}  // namespace weft
