// Optimisations of a kernel found by running it, and remembered on disk.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/opt/search_opts.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/program.h"
#include "weft/beam.h"  // IWYU pragma: export

namespace weft {

struct KernelSearch {
  Device& device;  // whose memory the kernel is run on
  const Target& target;
  // What else decides how fast a kernel is: the compiler, the CPU, the threads.
  Hash128 machine;
  size_t width;            // of the beam
  size_t compile_threads;  // that may compile candidates at the same time
  // The kernel with optimisations, ready to run. Called by several threads, each with an arena of
  // its own. Throws CompileError.
  std::function<std::shared_ptr<Program>(UOp ast, const OptList&)> compile;
};

// `ast` is a SINK that is legal as a kernel. What an earlier search for the same kernel, machine
// and width found is read from the cache; otherwise the search runs, on memory of its own that
// reads as zeros, and its result is kept there. Without memory for that, what choose_opts says. One
// search at a time: others wait.
OptList searched_opts(UOp ast, std::string_view name, const KernelSearch& search,
                      KernelCache& cache);

// The last result of this process, for people and tests.
SearchResult last_search();

}  // namespace weft
