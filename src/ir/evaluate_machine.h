// Runs the steps of a plan. Private to ir/evaluate*.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/array.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"

namespace weft::evaluator {

// What DEFINE_GLOBALs are bound to in a kernel, by id.
using Arguments = std::map<int64_t, Memory*>;

// The values of the plan's roots. Without arguments DEFINE_GLOBALs are the heap's.
std::vector<Array> run(const Plan& plan, Heap& heap, const Variables& variables,
                       const Arguments* arguments = nullptr);

}  // namespace weft::evaluator
