// Complex numbers as weft's memory holds them: pairs of reals, on a last axis.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include "convert.h"
#include "storage.h"
#include "weft/index.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

struct Complex {
  weft::Tensor re, im;
};

inline c10::ScalarType real_type(c10::ScalarType type) { return c10::toRealValueType(type); }

inline Complex constant(const at::Scalar& scalar, c10::ScalarType type) {
  const c10::complex<double> z = scalar.toComplexDouble();
  const c10::ScalarType real = real_type(type);
  return {number(z.real(), real), number(z.imag(), real)};
}

// An operand of any type, promoted to this complex one.
inline Complex complex_of(const at::Tensor& tensor, c10::ScalarType type) {
  if (!tensor.device().is_privateuseone()) {
    return constant(at::native::_local_scalar_dense_cpu(tensor), type);
  }
  const DType dtype = dtype_of(real_type(type));
  const weft::Tensor x = handle(tensor);
  if (!tensor.is_complex()) return {x.cast(dtype), number(0, real_type(type))};
  return {x.at({Ellipsis{}, int64_t(0)}).cast(dtype), x.at({Ellipsis{}, int64_t(1)}).cast(dtype)};
}

// Both of one shape.
inline weft::Tensor joined(const Complex& z, Ints sizes) {
  const Sizes shape(sizes);
  return weft::Tensor::stack({z.re.expand(shape), z.im.expand(shape)}, -1);
}
inline weft::Tensor joined(const Complex& z, at::IntArrayRef sizes) {
  return joined(z, ints(sizes));
}

inline weft::Tensor size_of(const Complex& z) { return z.re.hypot(z.im); }

// An operand in a type of any kind: in a complex one with pairs on a last axis.
inline weft::Tensor elements(const at::Tensor& tensor, c10::ScalarType type) {
  if (!c10::isComplexType(type)) return operand(tensor, type);
  const bool is_here = tensor.device().is_privateuseone();
  if (is_here && tensor.scalar_type() == type) return handle(tensor);
  return joined(complex_of(tensor, type), tensor.sizes());
}
inline weft::Tensor elements(const at::Scalar& scalar, c10::ScalarType type) {
  return c10::isComplexType(type) ? joined(constant(scalar, type), Ints()) : number(scalar, type);
}
// A mask of elements, for each of the reals that they are made of.
inline weft::Tensor mask_for(const weft::Tensor& mask, c10::ScalarType type) {
  return c10::isComplexType(type) ? mask.unsqueeze(-1) : mask;
}

}  // namespace weft::pytorch
