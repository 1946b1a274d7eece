// Kernels that are not compiled because one that serves any sizes does what they do.
#pragma once

#include <memory>

#include "base/hash.h"
#include "codegen/general_kernel.h"
#include "ir/node.h"
#include "runtime/program.h"
#include "schedule/size_use.h"

namespace weft {

// A kernel with parameters in place of the numbers that differ within its family.
struct GeneralKernel {
  Graph kernel;
  Hash128 hash;  // of the graph
  KernelRules rules;
};

struct ServedKernel {
  std::shared_ptr<const GeneralKernel> general;  // null: the kernel is to be compiled as it is
  KernelRules::Values values{};                  // for the general kernel
  std::shared_ptr<SizeUse> use{};  // for whoever runs it to count; null: nothing is to be gained
};

// A program of which runs are counted, if it serves kernels of other sizes, too.
class CountedProgram : public Program {
 public:
  // Null: it is its kernel's own. Once it is spent, the device makes a faster program of the
  // kernel.
  virtual std::shared_ptr<SizeUse> use() const = 0;
};

// Kernels that are equal up to numbers (kernel_skeleton) are a family. The first two are compiled
// as they are. For further ones in a later schedule, as a step of a program whose graphs never
// repeat, and for those of little work in the same one, a kernel with the numbers that differ as
// parameters is made, which serves all. Numbers that come again and do much work (SizeUse) get a
// kernel of their own after all: the next time that they are asked for, after `use` says so.
// Thread-safe.
//
// `kernel` is legal as one, and in an arena that nobody else uses meanwhile.
ServedKernel serve_kernel(UOp kernel);
// The general kernel for this one does not compile: from now on all of the family are their own.
void close_kernel_family(UOp kernel);

// The kernels that are asked for from now on are those of another schedule.
void begin_kernels_of_schedule();

}  // namespace weft
