// Sums of padded parts, as gradients of many slices are, as writes.
#pragma once

#include <span>
#include <string>

#include "ir/node.h"

namespace weft {

// A long sum whose terms are zero but in a part,
//     ((x + pad(a)) + pad(b)) + pad(c)
// becomes a memory that is added to, part by part, with the same bits:
//     AFTER(m, STORE(m, x + 0), STORE(part of m, a, ADD), STORE(part of m, b, ADD), ...)
// `order` is a tensor graph of known sizes, sources first. Returns its SINK, the same one where
// nothing was found.
UOp write_sums_of_parts(std::span<const UOp> order, const std::string& device);

}  // namespace weft
