// Optimisations by rules of thumb.
#pragma once

#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"

namespace weft {

// What is likely to be fast, without measuring. Every one of them applies.
OptList choose_opts(UOp sink, const Target& target);

}  // namespace weft
