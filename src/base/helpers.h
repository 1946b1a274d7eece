// Work that other threads help with.
#pragma once

#include <cstddef>
#include <functional>

namespace weft {

// work(0) on this thread, and work(1), work(2), ... below `threads` on others, or on fewer where
// the system has no more; returns when all have ended. Work throws nothing but Stopped: where it is
// this thread that is stopped, so are the others, and Stopped is thrown when they have ended.
void run_with_helpers(size_t threads, const std::function<void(size_t thread)>& work);

}  // namespace weft
