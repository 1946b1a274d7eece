// One loop on all cores, on the threads of the process's own OpenMP runtime, which NumPy and
// PyTorch use too: a second pool beside it would fight for the cores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// The body of a loop on [first, last), on one of several threads.
using LoopBody = void (*)(const void* context, int64_t first, int64_t last);

// Runs body on pieces of [0, count) that cover it, each index once, and returns when all are done.
// The body does not throw. Serial where there is no OpenMP runtime, in a parallel region, in the
// child of a fork, and where WEFT_THREADS is 1.
void parallel_for(int64_t count, LoopBody body, const void* context);

// How many threads parallel_for runs on from here.
size_t parallel_threads();

// The OpenMP runtime in use, for people: a path, "in the process", or "none".
const char* openmp_runtime();

}  // namespace weft
