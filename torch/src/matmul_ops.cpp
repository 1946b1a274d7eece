// Products of matrices and vectors. Narrow floats are added up in float32 and rounded once.
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/_addmm_activation_meta.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/mm_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "elementwise.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

void check_types(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but ",
              "got: ", a.dtype(), " != ", b.dtype());
}
void check_multiplied(const char* what, const at::Tensor& a, const at::Tensor& b) {
  check_types(a, b);
  TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kBool, "\"", what,
                              "\" not implemented for 'Bool'");
}

bool is_one(const at::Scalar& s) { return s.isFloatingPoint() ? s.toDouble() == 1 : s.equal(1); }
bool is_zero(const at::Scalar& s) { return s.isFloatingPoint() ? s.toDouble() == 0 : s.equal(0); }

weft::Tensor times(const weft::Tensor& x, const at::Scalar& factor) {
  if (x.dtype().is_float() && x.dtype().bits() < 64) check_fits(at::kFloat, factor);
  if (is_one(factor)) return x;
  return x.mul(x.dtype().is_float() ? Number(factor.toDouble()) : Number(factor.toLong()));
}

// beta * self + alpha * product; what is multiplied by 0 is not looked at.
weft::Tensor added(const at::Tensor& self, const weft::Tensor& product, const at::Scalar& beta,
                   const at::Scalar& alpha) {
  weft::Tensor scaled = times(product, alpha);
  if (is_zero(beta)) return scaled;
  const weft::Tensor other = operand(self).cast(scaled.dtype());
  return scaled.add(times(other, beta));
}

// Types are looked at where there are no elements, too.
// NOLINTBEGIN(bugprone-derived-method-shadowing-base-method): shape functions are no virtual ones
struct MmMeta : at::meta::structured_mm {
  void meta(const at::Tensor& a, const at::Tensor& b) {
    structured_mm::meta(a, b);
    check_types(a, b);
  }
};
struct AddmmMeta : at::meta::structured_addmm {
  void meta(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
            const at::Scalar& beta, const at::Scalar& alpha) {
    structured_addmm::meta(self, a, b, beta, alpha);
    check_types(a, b);
  }
};
struct AddmvMeta : at::meta::structured_addmv {
  void meta(const at::Tensor& self, const at::Tensor& matrix, const at::Tensor& vector,
            const at::Scalar& beta, const at::Scalar& alpha) {
    structured_addmv::meta(self, matrix, vector, beta, alpha);
    check_types(matrix, vector);
  }
};
// NOLINTEND(bugprone-derived-method-shadowing-base-method)

weft::Tensor mm(const Shaped&, const at::Tensor& a, const at::Tensor& b) {
  check_multiplied("addmm_impl_cpu_", a, b);
  return operand(a).matmul(operand(b));
}
weft::Tensor bmm(const Shaped&, const at::Tensor& a, const at::Tensor& b) {
  check_multiplied("bmm", a, b);
  return operand(a).matmul(operand(b));
}
constexpr auto kAddmm =
    row("addmm", [](const weft::Tensor& m, const weft::Tensor& n, const weft::Tensor& c) {
      const weft::Tensor product = m.matmul(n);
      return product.add(c.cast(product.dtype()));
    });
weft::Tensor addmm(const Shaped&, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                   const at::Scalar& beta, const at::Scalar& alpha) {
  check_multiplied("addmm_impl_cpu_", a, b);
  const weft::Tensor x = wide_operand(a), y = wide_operand(b);
  if (!x.dtype().is_float() || !is_one(beta) || !is_one(alpha)) {
    return added(self, x.matmul(y), beta, alpha);
  }
  const int64_t sizes[] = {a.size(0), b.size(1)};
  if (!at::is_expandable_to(self.sizes(), sizes)) static_cast<void>(self.expand(sizes));  // throws
  return call<kAddmm>({x.dtype(), Ints(sizes)}, x, y, operand(self));
}
weft::Tensor baddbmm(const Shaped&, const at::Tensor& self, const at::Tensor& a,
                     const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  check_multiplied("baddbmm", a, b);
  return added(self, wide_operand(a).matmul(wide_operand(b)), beta, alpha);
}
weft::Tensor addmv(const Shaped&, const at::Tensor& self, const at::Tensor& matrix,
                   const at::Tensor& vector, const at::Scalar& beta, const at::Scalar& alpha) {
  check_multiplied("addmv_impl_cpu", matrix, vector);
  return added(self, wide_operand(matrix).matmul(wide_operand(vector)), beta, alpha);
}
weft::Tensor addmm_activation(const Shaped& s, const at::Tensor& self, const at::Tensor& a,
                              const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha,
                              bool use_gelu) {
  const weft::Tensor sum = addmm(s, self, a, b, beta, alpha);
  return use_gelu ? sum.gelu(Gelu::kErf) : sum.relu();
}

// ---- the sum of a batch of products

weft::Tensor addbmm_of(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                       const at::Scalar& beta, const at::Scalar& alpha) {
  check_multiplied("addbmm", a, b);
  TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(a.size(0) == b.size(0), "batch1 and batch2 must have same number of batches, got ",
              a.size(0), " and ", b.size(0));
  TORCH_CHECK(a.size(2) == b.size(1), "Incompatible matrix sizes for bmm (", a.size(1), "x",
              a.size(2), " and ", b.size(1), "x", b.size(2), ")");
  const std::vector<int64_t> sizes{a.size(1), b.size(2)};
  TORCH_CHECK(at::is_expandable_to(self.sizes(), sizes),
              "self tensor does not match matmul output shape");
  // One product of (m, batches * k) and (batches * k, n).
  const weft::Tensor x = wide_operand(a).permute({1, 0, 2}), y = wide_operand(b);
  return added(self,
               x.reshape({a.size(1), a.size(0) * a.size(2)})
                   .matmul(y.reshape({b.size(0) * b.size(1), b.size(2)})),
               beta, alpha);
}
at::Tensor addbmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                  const at::Scalar& beta, const at::Scalar& alpha) {
  return give(addbmm_of(self, a, b, beta, alpha), a.scalar_type());
}
at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                       const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  weft::Tensor sum = addbmm_of(self, a, b, beta, alpha);
  TORCH_CHECK(out.scalar_type() == a.scalar_type(), "Expected out tensor to have dtype ", a.dtype(),
              ", but got ", out.dtype(), " instead");
  at::native::resize_output(out, ints(Sizes(sum.shape())));
  put(out, std::move(sum));
  return out;
}
// As on the CPU, a self that is broadcast grows.
at::Tensor& addbmm_(at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                    const at::Scalar& beta, const at::Scalar& alpha) {
  return addbmm_out(self, a, b, beta, alpha, self);
}

// ---- products of vectors

at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
              b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "dot : expected both vectors to have same dtype, but found ", a.scalar_type(),
              " and ", b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
              "] and src [", b.numel(), "] to have the same number of elements, but got ",
              a.numel(), " and ", b.numel(), " elements respectively");
  TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kBool, "\"dot\" not implemented for 'Bool'");
  return give(operand(a).matmul(operand(b)), a.scalar_type());
}

// ---- a matrix and the product of two vectors as a column and a row

c10::ScalarType type_of_addr(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                             const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(a.dim() == 1, "addr: Expected 1-D argument vec1, but got ", a.dim(), "-D");
  TORCH_CHECK(b.dim() == 1, "addr: Expected 1-D argument vec2, but got ", b.dim(), "-D");
  const at::Tensor all[] = {self, a, b};
  const c10::ScalarType type = at::native::result_type(at::ITensorListRef(at::TensorList(all)));
  const auto check = [&](const at::Scalar& s, const char* name) {
    TORCH_CHECK(!s.isBoolean() || type == at::kBool, "Boolean ", name,
                " only supported for Boolean results.");
    TORCH_CHECK(c10::isFloatingType(type) || s.isIntegral(true), "For integral input tensors, ",
                "argument ", name, " must not be a floating point number.");
  };
  check(beta, "beta");
  check(alpha, "alpha");
  TORCH_CHECK(at::is_expandable_to(self.sizes(), {a.size(0), b.size(0)}),
              "The expanded size of the tensor must match [", a.size(0), ", ", b.size(0),
              "]; input: ", self.sizes());
  return type;
}
weft::Tensor addr_of(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar& alpha, c10::ScalarType type) {
  const weft::Tensor column = wide(operand(a, type)).unsqueeze(1);
  return added(self, column.mul(wide(operand(b, type)).unsqueeze(0)), beta, alpha);
}
at::Tensor addr(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                const at::Scalar& beta, const at::Scalar& alpha) {
  const c10::ScalarType type = type_of_addr(self, a, b, beta, alpha);
  at::Tensor result = empty({a.size(0), b.size(0)}, type);
  if (result.numel() != 0) put(result, addr_of(self, a, b, beta, alpha, type));
  return result;
}
at::Tensor& addr_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const c10::ScalarType type = type_of_addr(self, a, b, beta, alpha);
  TORCH_CHECK(c10::canCast(type, out.scalar_type()), "result type ", type,
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, {a.size(0), b.size(0)});
  if (out.numel() != 0) put(out, addr_of(self, a, b, beta, alpha, type));
  return out;
}
at::Tensor& addr_(at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                  const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
  TORCH_CHECK(
      a.dim() == 1 && b.dim() == 1 && self.size(0) == a.size(0) && self.size(1) == b.size(0),
      "size mismatch, input: ", self.sizes(), ", v1: ", a.sizes(), ", v2: ", b.sizes());
  return addr_out(self, a, b, beta, alpha, self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<MmMeta, mm, at::_ops::mm, at::_ops::mm_out>(m);
  structured<at::meta::structured_bmm, bmm, at::_ops::bmm, at::_ops::bmm_out>(m);
  structured<AddmmMeta, addmm, at::_ops::addmm, at::_ops::addmm_, at::_ops::addmm_out>(m);
  structured<at::meta::structured_baddbmm, baddbmm, at::_ops::baddbmm, at::_ops::baddbmm_,
             at::_ops::baddbmm_out>(m);
  structured<AddmvMeta, addmv, at::_ops::addmv, at::_ops::addmv_, at::_ops::addmv_out>(m);
  structured<at::meta::structured__addmm_activation, addmm_activation, at::_ops::_addmm_activation,
             at::_ops::_addmm_activation_out>(m);
  native<at::_ops::addbmm, addbmm>(m);
  native<at::_ops::addbmm_, addbmm_>(m);
  native<at::_ops::addbmm_out, addbmm_out>(m);
  native<at::_ops::addr, addr>(m);
  native<at::_ops::addr_, addr_>(m);
  native<at::_ops::addr_out, addr_out>(m);
  native<at::_ops::dot, dot>(m);
  native<at::_ops::vdot, dot>(m);
}

}  // namespace
}  // namespace weft::pytorch
