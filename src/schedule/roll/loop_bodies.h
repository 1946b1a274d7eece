// Statements that are equal up to numbers are one body with parameters: places and scalars, and
// sizes where many of them occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/node.h"
#include "schedule/roll/loop_statements.h"

namespace weft {

// A step of a body: an operation on earlier items, or what it reads.
struct LoopItem {
  enum class Kind : uint8_t {
    kOp,      // `node` on the items `sources`
    kMove,    // the movement op `node` of an item
    kGather,  // INDEX of a leaf, by items
    kRead,    // elements of memory, from a parameter on
    kScalar,  // a constant, which is a parameter
    kIota,
  };
  Kind kind;
  UOp node;
  std::vector<uint32_t> sources{};
  std::optional<LoopLeaf> leaf{};  // of kRead
  size_t parameter = 0;            // of kRead, its first element; of kScalar, its bits
};

// target = value, or what `store` says, for every place of the target.
struct LoopBody {
  std::vector<LoopItem> items;  // sources before users
  uint32_t value = 0;
  UOp store{};                      // null: a plain write
  LoopLeaf target;                  // parameter 0 is its first element
  std::vector<uint32_t> indices{};  // of a target that data decides, one for each axis of it
  std::vector<int64_t> sizes;       // of what is written
  std::vector<DType> parameters{};  // index: of elements, sizes and strides
  // Numbers of this body's first statement that are parameters in all: its distinct sizes, then its
  // distinct strides, from a parameter on. Empty: they are the same in all.
  std::vector<int64_t> varying_sizes{}, varying_strides{};
  size_t first_varying = 0;
  double work = 0;        // operations
  size_t statements = 0;  // that it has
  size_t reductions = 0;
};

struct LoopStep {
  uint32_t body;
  size_t first_parameter;  // in LoopProgram::parameters
  uint32_t statement;
};

struct LoopProgram {
  std::vector<LoopBody> bodies;
  std::vector<LoopStep> steps;
  std::vector<uint64_t> parameters;
};

constexpr double kMostWork = 1 << 16;  // operations of a small statement

// Whether axes of one element alone are taken away or added.
bool keeps_long_axes(std::span<const int64_t> from, std::span<const int64_t> to);

LoopProgram loop_program(const LoopStatements& statements);

}  // namespace weft
