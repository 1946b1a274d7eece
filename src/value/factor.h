// Views as movement ops.
#pragma once

#include <vector>

#include "ir/op.h"
#include "weft/view.h"

namespace weft {

// One movement op: its numbers are those of Value::make.
struct Movement {
  Op op;
  Sizes shape;  // of the result
  Sizes numbers;
};

// The movement ops, first to last, that make `view` of a value of this shape, whose elements in
// row-major order are the storage. The view has elements and lies inside. Nothing is done that does
// nothing; a strided VIEW is the last resort.
//
// With strides t1 > t2 > ... > tk, each a multiple of the next: RESHAPE to
// (n/t1, t1/t2, ..., t(k-1)/tk, tk), SHRINK, FLIP, RESHAPE the last axis away, PERMUTE, RESHAPE
// axes of size 1 in, EXPAND them. Where the shape itself has these strides it is not reshaped.
std::vector<Movement> factor(const View& view, Ints shape);

// The movement ops that undo a dense view of all elements: from a value of the view's shape to one
// of `shape`, in the order of the storage.
std::vector<Movement> factor_inverse(const View& view, Ints shape);

}  // namespace weft
