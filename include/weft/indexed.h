// a({1, _}) = 5: a part of a tensor, to be read or written.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "weft/number.h"
#include "weft/tensor.h"

namespace weft {

// All of an axis: a({_, 0}) is the first column.
inline constexpr Slice _{};  // NOLINT(readability-identifier-naming)

// What Tensor::operator() gives. As a tensor it is Tensor::at, an assignment to it is Tensor::set.
class Indexed {
 public:
  Indexed(Tensor of, std::initializer_list<Index> index) : of_(std::move(of)), index_(index) {}
  Indexed(const Indexed&) = default;
  ~Indexed() = default;

  operator Tensor() const { return of_.at(index_); }  // NOLINT: it is one
  template <class T>
  T item() const {
    return Tensor(*this).item<T>();
  }

  Indexed& operator=(const Tensor& value) { return write(value); }
  Indexed& operator=(Number value) { return write(value); }
  Indexed& operator=(const Indexed& value) { return write(Tensor(value)); }  // NOLINT: of elements
  Indexed& operator+=(const Tensor& value) { return write(Tensor(*this) + value); }
  Indexed& operator-=(const Tensor& value) { return write(Tensor(*this) - value); }
  Indexed& operator*=(const Tensor& value) { return write(Tensor(*this) * value); }
  Indexed& operator/=(const Tensor& value) { return write(Tensor(*this) / value); }
  Indexed& operator+=(Number value) { return write(Tensor(*this) + value); }
  Indexed& operator-=(Number value) { return write(Tensor(*this) - value); }
  Indexed& operator*=(Number value) { return write(Tensor(*this) * value); }
  Indexed& operator/=(Number value) { return write(Tensor(*this) / value); }

 private:
  template <class Written>
  Indexed& write(const Written& value) {
    of_.set(index_, value);
    return *this;
  }

  Tensor of_;
  std::vector<Index> index_;
};

inline Indexed Tensor::operator()(std::initializer_list<Index> index) const {
  return {*this, index};
}

// ---- what makes tensors, without the name of the class

inline Tensor empty(Ints shape, DType dtype = dtypes::float32) {
  return Tensor::empty(shape, dtype);
}
inline Tensor zeros(Ints shape, DType dtype = dtypes::float32) {
  return Tensor::zeros(shape, dtype);
}
inline Tensor ones(Ints shape, DType dtype = dtypes::float32) { return Tensor::ones(shape, dtype); }
inline Tensor full(Ints shape, Number value) { return Tensor::full(shape, value); }
inline Tensor arange(Number stop) { return Tensor::arange(stop); }
inline Tensor arange(Number start, Number stop, Number step = int64_t(1)) {
  return Tensor::arange(start, stop, step);
}
inline Tensor eye(int64_t n) { return Tensor::eye(n); }
inline Tensor rand(Ints shape) { return Tensor::rand(shape); }
inline Tensor randn(Ints shape) { return Tensor::randn(shape); }
inline Tensor cat(std::initializer_list<Tensor> parts, int64_t axis = 0) {
  return Tensor::cat(parts, axis);
}
inline Tensor tensor(std::initializer_list<float> elements) { return Tensor::from(elements); }

}  // namespace weft
