// PyTorch's dtypes, numbers and lists as weft's.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/TensorBase.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include "weft/dtype.h"
#include "weft/number.h"
#include "weft/view.h"

namespace weft::pytorch {

// How weft's memory holds a dtype. A complex number is two reals, one after the other; what weft
// has no dtype for is moved as integers of its width.
struct Held {
  DType dtype;
  bool is_complex = false;
  bool is_computed = true;  // weft computes with it; else only its bits are moved
};
Held held(c10::ScalarType type);

// Of a type that weft computes with.
DType dtype_of(c10::ScalarType type);
// Weft's kernels compute with these.
inline bool is_computed(c10::ScalarType type) { return held(type).is_computed; }

inline Ints ints(c10::IntArrayRef list) { return std::span(list.data(), list.size()); }
inline c10::IntArrayRef ints(const Sizes& list) { return {list.data(), list.size()}; }

// A real number.
Number number_of(const c10::Scalar& scalar);

}  // namespace weft::pytorch
