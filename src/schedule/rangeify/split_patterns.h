// The rules that turn the writes of one kernel into a graph of its own.
#pragma once

#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "rewrite/rule_set.h"
#include "schedule/rangeify/kernel_context.h"

namespace weft {

// On the whole graph, before it is cut: loops that run zero times are gone (remove_zero_range).
const RuleSet& before_split_rules();

// The writes of one kernel, in an arena of their own:
//   debuf          memory as the kernel finds it -> a DEFINE_GLOBAL
//   handle_after   AFTER what other kernels do -> such memory, too; AFTER its own writes stays
//   unbind_kernel  BIND(variable, value) -> the variable, which the call binds
UOp copy_kernel(Arena& into, UOp sink, KernelContext& context);

// On the copy: elements of memory are LOADed; CONTIGUOUS and COPY have said what they had to say,
// and a RANGE of one place is 0 (cleanup_const).
const RuleSet& kernel_rules();

// STORE by an op -> LOAD, the op, STORE: in all loops that close around it.
UOp expand_accumulation(UOp ast);

// Definitions numbered in the order in which they are met, so that equal kernels are equal nodes:
// RANGEs, registers and local memory from 0; DEFINE_GLOBALs so that those that are written come
// first. Reductions that can share their loops do. `order` gets the old DEFINE_GLOBAL of every
// number.
UOp renumber_kernel(UOp ast, std::vector<UOp>& order);

}  // namespace weft
