// One schedule for programs that differ in numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/node.h"
#include "schedule/number_rules.h"
#include "schedule/schedule.h"
#include "schedule/size_formulas.h"
#include "schedule/skeleton.h"

namespace weft {

// Scalars that differ are read from memory; sizes and offsets that differ are VARIABLEs.
struct GeneralSchedule {
  std::shared_ptr<const Schedule> schedule;
  NumberRules rules;
  std::vector<uint64_t> scalars;  // their bits; those of parameters do not matter
  // Scalars that have been equal in all programs: they are in all that the schedule serves.
  struct Parameter {
    std::vector<size_t> scalars;  // in Skeleton::scalars
    uint32_t buffer;              // of the schedule, a table
    size_t element;
  };
  std::vector<Parameter> parameters;
  std::vector<bool> is_parameter;  // of every scalar
  SizeFormulas sizes;
  bool has_variable_sizes = false;  // and not offsets alone

  size_t bytes() const;  // of memory
};

// What is known of programs with one skeleton (Scalars::kByUse): the numbers and the bits of the
// scalars of each.
struct Sample {
  std::vector<Number> numbers;
  std::vector<uint64_t> scalars;
};
Sample sample_of(const Skeleton& skeleton);

// A schedule for all of the samples, made from the graph of the last one; null if there is none.
std::shared_ptr<const GeneralSchedule> make_general_schedule(std::span<const UOp> order,
                                                             std::span<const Sample> samples,
                                                             const ScheduleOptions& options);

// The schedule with the numbers of a program; null if it is not made for them.
std::shared_ptr<Schedule> bind_numbers(const GeneralSchedule& general, const Sample& sample);

}  // namespace weft
