// Ops that a target lacks become ops that it has.
#pragma once

#include "codegen/target.h"
#include "ir/node.h"
#include "rewrite/trace.h"

namespace weft {

// The kernel with every elementwise op that `target` does not do by itself written in ops that it
// does, on scalars and vectors alike; what is native stays. Integer ops, conversions, rounding,
// comparisons and + - * / keep every bit (NaNs stay NaNs); the transcendental functions keep the
// bounds of codegen/error_bounds.h. Arithmetic on `index` is left alone: it has no width.
//
// The result may write registers of its own. STORE(register, value, gate) with a value that only
// the store needs is work that a branch on the gate skips.
UOp decompose(UOp root, const Target& target, Trace* trace = nullptr);

}  // namespace weft
