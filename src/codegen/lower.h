// One kernel to a program.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/trace.h"

namespace weft {

// `ast` is a SINK that is legal as a kernel; the result is a LINEAR, legal as a program, made in
// the same arena. Throws CompileError when the kernel does not fit the target.
UOp lower(UOp ast, const Target& target, Trace* trace = nullptr);

}  // namespace weft
