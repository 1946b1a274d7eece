// What graphs are legal at which stage, as rules that run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/node.h"
#include "ir/op.h"

namespace weft {

enum class ViolationKind : uint8_t { kShape, kDType, kStructure };

// The first node that breaks the spec, sources before users.
struct Violation {
  UOp node;
  ViolationKind kind;
  std::string message;  // "ADD: the operands have dtypes int32 and float32"
};

// Checks one node against the rules that hold at every stage (those of its op). Its sources are
// legal.
std::optional<Violation> find_violation_at(UOp n);
// Checks the whole graph against the rules of a stage. The ast of a KERNEL is checked as a kernel.
std::optional<Violation> find_violation(UOp root, Stage stage);

// Throws SpecError that names the first offender, shows its neighbourhood and the pass that made
// it.
void verify(UOp root, Stage stage, std::string_view after_pass = "");

// Throws ShapeError, DTypeError or SpecError, as the violation is: for builders.
void check_node(UOp n);

}  // namespace weft
