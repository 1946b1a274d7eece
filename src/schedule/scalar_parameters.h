// Scalars of a program as parameters of its schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "ir/node.h"
#include "schedule/schedule.h"

namespace weft {

// A graph with its scalars taken out: the same for programs that differ only in numbers.
struct Skeleton {
  Hash128 hash;
  std::vector<UOp> scalars;  // CONSTs of values, in the order in which the graph lists them
};
Skeleton skeleton_of(UOp sink);

// A schedule that reads some of its scalars from memory.
struct GeneralSchedule {
  std::shared_ptr<const Schedule> schedule;
  struct Parameter {
    size_t scalar;    // in Skeleton::scalars
    uint32_t buffer;  // of the schedule, a table
    size_t element;
  };
  std::vector<Parameter> parameters;
};

// Of the graph with those scalars as parameters whose numbers (places in skeleton.scalars) are
// given.
GeneralSchedule make_general_schedule(UOp sink, const Skeleton& skeleton,
                                      std::span<const size_t> varying,
                                      const ScheduleOptions& options);

// The schedule with the scalars of a program.
std::shared_ptr<const Schedule> with_scalars(const GeneralSchedule& general,
                                             std::span<const UOp> scalars);

}  // namespace weft
