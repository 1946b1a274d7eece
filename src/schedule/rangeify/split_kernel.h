// Phase 5, last step: every group of writes becomes a KERNEL.
#pragma once

#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "rewrite/trace.h"
#include "schedule/kernel_table.h"
#include "schedule/rangeify/kernel_units.h"

namespace weft {

// The graph of kernels: SINK of memory, each BUFFER AFTER the KERNELs that write it; a KERNEL has
// a constant, its number in `asts`, and then its arguments, memory AFTER the kernels that it waits
// for. DEFINE_GLOBALs become BUFFERs of `device`, with ids that are not in use.
struct KernelGraph {
  UOp sink;
  KernelTable asts;
};
// Kernels are added to `asts`. A trace gets the rules that made each.
KernelGraph split_kernels(UOp sink, const std::vector<KernelUnit>& kernels,
                          const std::string& device, KernelTable asts = {}, Trace* trace = nullptr);

// The same in one graph, which is legal on ranges: KERNEL(ast, arguments...).
UOp with_asts(const KernelGraph& graph);

// One kernel's ast: legal as a kernel, its definitions numbered from 0. `memories` gets the memory
// of every argument as the kernel finds it, `variables` the BINDs that it reads.
UOp split_store(Arena& into, UOp sink, const NodeMap& kernel_of, uint32_t kernel,
                std::vector<UOp>& memories, std::vector<UOp>& variables, Trace* trace = nullptr);

// All loops of n are closed: it can be a kernel of its own.
bool all_ranges_outer(UOp n);
// A write with its loops closed around it.
bool is_outer_end(UOp n);

}  // namespace weft
