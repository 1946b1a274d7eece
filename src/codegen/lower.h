// One kernel to a program.
#pragma once

#include <span>

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/trace.h"

namespace weft {

// `ast` is a SINK that is legal as a kernel; the result is a LINEAR, legal as a program, made in
// the same arena. Its optimisations are those given, or else what choose_opts says. Throws
// CompileError when the kernel does not fit the target, or an optimisation the kernel.
UOp lower(UOp ast, const Target& target, Trace* trace = nullptr);
UOp lower(UOp ast, const Target& target, std::span<const Opt> opts, Trace* trace = nullptr);

}  // namespace weft
