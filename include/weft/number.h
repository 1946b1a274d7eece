// What stands beside tensors in operations, and what one element of a tensor is.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "weft/dtype.h"

namespace weft {

// A number of a program: it has no dtype of its own beyond its kind (it is "weak").
using Number = std::variant<bool, int64_t, double>;

// One element: its dtype and its bits, as ir/scalar.h has them.
struct Element {
  DType dtype;
  uint64_t bits = 0;

  double as_double() const;
  int64_t as_int() const;  // floats truncate and saturate, NaN is 0
  Element cast(DType to) const;
  template <class T>
  T as() const {
    if constexpr (std::is_same_v<T, bool>) {
      return cast(dtypes::bool_).bits != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      return T(as_double());
    } else {
      return T(cast(dtype_of<T>).bits);
    }
  }
};

class Tensor;

// The second operand of an operation: a tensor, which it borrows, or a number.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(&tensor) {}  // NOLINT: either will do
  template <class T>
    requires std::is_convertible_v<T, Number>
  Operand(T number) : number_(number) {}  // NOLINT

  const Tensor* tensor() const { return tensor_; }  // null for a number
  Number number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Number number_ = false;
};

}  // namespace weft
