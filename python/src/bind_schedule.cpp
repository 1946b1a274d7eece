// What the scheduler keeps between runs.
#include <nanobind/nanobind.h>

#include "core.h"
#include "schedule/schedule_cache.h"

namespace weft::python {

void bind_schedule(nb::module_& m) {
  m.def("clear_schedule_cache", &clear_schedule_cache,
        "Forgets every schedule: the next run of a program schedules it anew.");
}

}  // namespace weft::python
