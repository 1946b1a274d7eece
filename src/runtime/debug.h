// What WEFT_DEBUG shows, on stderr: 1 devices, 2 what runs, is compiled or flushed, and why, 3
// kernels and their optimisations, 4 source, 5 the list of a program, 6 every pass. Each level
// shows those below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/config.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/trace.h"

namespace weft {

inline bool shows(int level) { return config().debug >= level; }

// One line, or several, in one write: threads do not mix theirs. Only where shows() says so.
void show(std::string_view text);

// 1: a device, when it is found for the first time.
void show_device(std::string_view name, std::string_view description);

// 2: a run of a kernel.
struct KernelRun {
  std::string_view device, name;
  uint64_t nanoseconds, bytes, flops;
  double least_nanoseconds;  // that the machine takes for it
  std::string operations;    // kernel_operations
  std::string lines{};       // of the user's program, where they are noted
};
void show_run(const KernelRun& run);

// 2: where the code of a kernel comes from.
void show_loaded(std::string_view name, std::string_view from, uint64_t nanoseconds);

// 3 and more: what became of a kernel. The trace is read at 6.
struct LoweredKernel {
  std::string_view name;
  UOp ast, linear;
  const Target& target;
  std::string_view source;
  const Trace& trace;
  const OptList* opts;  // null: those that choose_opts chooses
};
void show_lowered(const LoweredKernel& kernel);

// 6: the passes of a schedule.
void show_passes(const Trace& trace);

}  // namespace weft
