// A kernel that runs statements of a loop program one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"
#include "schedule/roll/loop_bodies.h"
#include "schedule/roll/loop_statements.h"
#include "schedule/roll/progression.h"

namespace weft {

// The BUFFERs of a loop program.
struct LoopBuffers {
  std::vector<UOp> memories, slots;
  UOp of(const LoopLeaf& leaf) const {
    return (leaf.kind == LoopLeaf::Kind::kMemory ? memories : slots)[leaf.memory];
  }
};

struct LoopKernel {
  UOp ast;                    // legal as a kernel
  std::vector<UOp> memories;  // the BUFFERs of its arguments
  size_t bodies = 0;
};

// The steps in rounds: in a round each body runs for its next steps, as many as stand together, in
// an order of bodies that is the same in all rounds. So a body that repeats is a loop, bodies in
// turn are a loop over all of them, and any mixture is a loop whose inner counts come from a table.
//
//   END(..., r)         r: a round
//     END(..., g)       g: a step of one body; none where each round has one
//       STORE(INDEX(AFTER(memory, what came before, g), offset), value)
//
// Parameters are formulas of the number of the step, or elements of tables that are added to
// `tables`, on `device`. Steps of one body that may run in any order are a loop over the whole
// device (AxisType::kGlobal).
enum class StepOrder : uint8_t { kGiven, kAny };
// Whether numbers of iterations may come from tables alone, or are known in the kernel to be at
// most something: drivers of GPUs end threads that run on.
enum class LoopCounts : uint8_t { kInTables, kBounded };
LoopKernel loop_kernel(const LoopProgram& program, std::span<const LoopStep> steps, StepOrder order,
                       LoopCounts counts, const LoopBuffers& buffers, const std::string& device,
                       Tables& tables);

// Operations that the loops of a kernel of these steps may do, by what is known of them.
double most_iterations(const LoopProgram& program, std::span<const LoopStep> steps);

}  // namespace weft
