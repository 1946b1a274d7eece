// Rates for each multiprocessor.
#include "runtime/gpu/gpu_machine.h"

#include <cstddef>

#include "schedule/machine.h"

namespace weft {

Machine gpu_machine(size_t units) {
  const auto all = double(units);
  Machine m;
  m.units = all;
  m.threads = 1024;
  m.together = 256;
  m.operations_per_ns = 200;
  m.launch_ns = 3000;
  m.line = 128;
  m.level_count = 3;
  m.levels = {{{double(size_t(128) << 10), 100, 100, false},
               {double(size_t(40) << 20), 50, 50 * all, true},
               {0, 25, 25 * all, true}}};
  return m;
}

}  // namespace weft
