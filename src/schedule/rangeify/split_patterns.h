// The rules that turn the writes of one kernel into a graph of its own.
#pragma once

#include "ir/node.h"
#include "rewrite/rule_set.h"

namespace weft {

// On the whole graph, before it is cut: loops that run zero times are gone (remove_zero_range).
const RuleSet& before_split_rules();

// On the writes of one kernel, with a KernelContext:
//   debuf          BUFFER, DEFINE_GLOBAL -> a DEFINE_GLOBAL of the kernel; what is read is LOADed
//   handle_after   AFTER what other kernels do -> that memory, an argument
//   unbind_kernel  BIND(variable, value) -> the variable, which the call binds
//   cleanup_const  CONTIGUOUS has said what it had to say; a RANGE of one place is 0
const RuleSet& kernel_rules();

// Stops at what other kernels do: the gate of kernel_rules().
bool is_inside_kernel(UOp n, void* context);

// Definitions numbered in the order in which they are met, so that equal kernels are equal nodes:
// RANGEs and registers from 0; DEFINE_GLOBALs so that those that are written come first.
// Reductions that can share their loops do. `order` gets the old DEFINE_GLOBAL of every number.
UOp renumber_kernel(UOp ast, std::vector<UOp>& order);

}  // namespace weft
