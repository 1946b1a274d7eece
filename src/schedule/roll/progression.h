// Sequences of constants as formulas of a loop index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node.h"

namespace weft {

// Contents of BUFFERs that were made for constants that no formula gives, by id.
using Tables = std::map<int64_t, std::vector<uint64_t>>;

// A node of dtype `type` whose value at place i of `loop` has the bits constants[i], exactly; none
// where no formula gives them.
std::optional<UOp> formula_of(std::span<const uint64_t> constants, DType type, UOp loop);

// A node of dtype `type` whose value at place i of `loop` has the bits constants[i], exactly: a
// formula where there is one, else an element of a table that is added to `tables`, on `device`.
UOp sequence_of(std::span<const uint64_t> constants, DType type, UOp loop,
                const std::string& device, Tables& tables);

}  // namespace weft
