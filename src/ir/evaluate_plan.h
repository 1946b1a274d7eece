// A graph with loops as a list of steps that a machine runs one by one. Private to
// ir/evaluate*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"

namespace weft::evaluator {

enum class StepKind : uint8_t {
  kNode,   // computes the node, or does its effect
  kBegin,  // a REDUCE starts from its identity, a BUFFERIZE with an empty array
  kBody,   // a REDUCE takes one more value, a BUFFERIZE one more element
  kOpen,   // a RANGE starts at 0, or is passed over when its size is 0
  kClose,  // a RANGE goes on to its next value, or ends
  kIf,     // goes on to `jump` when the gate is off
};

// Values live in slots, one per node.
struct Step {
  StepKind kind;
  UOp node;                       // of kOpen and kClose: the RANGE
  uint32_t slot;                  // of the node
  std::vector<uint32_t> sources;  // slots: of the node's sources; of kBegin, of the range sizes
  size_t jump = 0;                // kOpen: past its kClose; kClose: after its kOpen; kIf: ENDIF

  static constexpr uint32_t kNoSlot = UINT32_MAX;  // a source that has no value of its own
};

struct Plan {
  std::vector<Step> steps;
  size_t slot_count = 0;
  std::vector<uint32_t> roots;  // slots
  std::vector<UOp> root_nodes;
};

// Rangeified and kernel graphs: every node in the loops of its scope, in the order that evaluate.h
// promises. Throws InternalError when a RANGE is used outside of its loop or when no order of loops
// does every effect once.
Plan plan_graph(std::span<const UOp> roots);

// Programs: the sources of a LINEAR in their order. Constants and definitions need not be listed.
Plan plan_list(UOp linear);

// Ops that are computed from no other node.
inline constexpr OpSet kLeaves = {Op::CONST,        Op::VARIABLE,   Op::DEVICE,
                                  Op::BUFFER,       Op::RANGE,      Op::SPECIAL,
                                  Op::DEFINE_LOCAL, Op::DEFINE_REG, Op::DEFINE_GLOBAL};

// Whether source i of n is computed before n: the ast of a KERNEL, a DEVICE, the VARIABLE under a
// BIND and the sizes of leaves are not.
bool is_operand(UOp n, size_t i);

}  // namespace weft::evaluator
