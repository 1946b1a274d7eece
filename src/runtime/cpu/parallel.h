// One loop on all cores, on threads that the process keeps and that sleep where there is no work:
// other pools beside them, such as that of PyTorch's OpenMP runtime, have the cores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// The body of a loop on [first, last), on one of several threads.
using LoopBody = void (*)(const void* context, int64_t first, int64_t last);

// Runs body on pieces of [0, count) that cover it, each index once, and returns when all are done.
// The body does not throw. Serial in the body of another one, in the child of a fork, where
// WEFT_THREADS is 1, and where several threads have loops at work already.
void parallel_for(int64_t count, LoopBody body, const void* context);

// How many threads parallel_for runs on from here.
size_t parallel_threads();

}  // namespace weft
