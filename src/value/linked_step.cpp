// Holding inputs, and freeing chains of steps.
#include "value/linked_step.h"

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ref.h"
#include "value/value.h"

namespace weft {
namespace {

std::atomic<uint64_t> last_number = 0;
// Steps to be freed by the call of release() that this thread is in.
thread_local std::vector<LinkedStep*>* to_free = nullptr;

}  // namespace

LinkedStep::LinkedStep(std::span<const Ref<Value>> inputs) : number_(++last_number) {
  for (const Ref<Value>& input : inputs) {
    inputs_.push_back(input->is_tracked() ? input.get() : nullptr);
    if (input->is_tracked()) Value::retain_step(input.get());
  }
}

LinkedStep::~LinkedStep() {
  for (Value* input : inputs_) {
    if (input != nullptr) Value::release_step(input);
  }
}

void retain(LinkedStep* step) noexcept { step->owners_.fetch_add(1, std::memory_order_relaxed); }

void release(LinkedStep* step) noexcept {
  if (step->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (to_free != nullptr) {
    to_free->push_back(step);
    return;
  }
  std::vector<LinkedStep*> list = {step};
  to_free = &list;
  while (!list.empty()) {
    LinkedStep* const next = list.back();
    list.pop_back();
    delete next;
  }
  to_free = nullptr;
}

}  // namespace weft
