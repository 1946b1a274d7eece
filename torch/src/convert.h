// PyTorch's dtypes, numbers and lists as weft's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

namespace detail {

constexpr auto kHeldTypes = [] {
  using T = c10::ScalarType;
  std::array<Held, size_t(T::NumOptions)> all{};  // void: found by its width
  const auto set = [&](T type, Held h) { all[size_t(type)] = h; };
  set(T::Bool, {dtypes::bool_});
  set(T::Char, {dtypes::int8});
  set(T::Short, {dtypes::int16});
  set(T::Int, {dtypes::int32});
  set(T::Long, {dtypes::int64});
  set(T::Byte, {dtypes::uint8});
  set(T::UInt16, {dtypes::uint16});
  set(T::UInt32, {dtypes::uint32});
  set(T::UInt64, {dtypes::uint64});
  set(T::Half, {dtypes::float16});
  set(T::BFloat16, {dtypes::bfloat16});
  set(T::Float, {dtypes::float32});
  set(T::Double, {dtypes::float64});
  set(T::ComplexHalf, {dtypes::float16, true, false});
  set(T::ComplexFloat, {dtypes::float32, true, false});
  set(T::ComplexDouble, {dtypes::float64, true, false});
  return all;
}();
Held held_by_width(c10::ScalarType type);

}  // namespace detail

inline Held held(c10::ScalarType type) {
  const Held& known = detail::kHeldTypes[size_t(type)];
  return known.dtype.is_void() ? detail::held_by_width(type) : known;
}

// Of a type that weft computes with.
DType dtype_of(c10::ScalarType type);
// Weft's kernels compute with these.
inline bool is_computed(c10::ScalarType type) { return held(type).is_computed; }

inline Ints ints(c10::IntArrayRef list) { return std::span(list.data(), list.size()); }
inline c10::IntArrayRef ints(const Sizes& list) { return {list.data(), list.size()}; }

// A real number.
Number number_of(const c10::Scalar& scalar);
// The same number. Throws what PyTorch throws where the dtype does not hold it.
const c10::Scalar& checked_number(const c10::Scalar& scalar, c10::ScalarType type);

}  // namespace weft::pytorch
