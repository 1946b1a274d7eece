// The flag.
#include "value/training.h"

#include <atomic>

namespace weft {
namespace {

std::atomic<bool> the_flag = false;

}  // namespace

bool is_training() { return the_flag.load(std::memory_order_relaxed); }
void set_training(bool is_training) { the_flag.store(is_training, std::memory_order_relaxed); }

}  // namespace weft
