// Two loops as one.
#pragma once

#include <string>

#include "ir/node.h"

namespace weft {

// Why a loop and the next one inside of it cannot become one: empty where every use of them is of
// outer * (size of inner) + inner, times a constant.
std::string why_not_merge(UOp sink, UOp outer, UOp inner);

// One loop in the place of both, with the id of the outer one. The order of iterations stays.
UOp merge_ranges(UOp sink, UOp outer, UOp inner);

}  // namespace weft
