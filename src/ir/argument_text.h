// What the text of a node says behind its sources: "4", "0:loop", "[1, 0]".
#pragma once

#include <string>

#include "ir/node.h"

namespace weft {

std::string argument_text(UOp n);

}  // namespace weft
