// What a kernel computes, in words.
#pragma once

#include <string>

#include "ir/node.h"

namespace weft {

// The operations on data of a kernel, each once, in the order of their first use: "exp mul sum".
// Sums and their like are named for what they are; addresses and gates are left out.
std::string kernel_operations(UOp ast);

}  // namespace weft
