// Copies to, from and within the device, and fills.
#include <cstdint>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/is_set_to_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "native.h"
#include "on_cpu.h"
#include "operators.h"
#include "storage.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

// Which way a copy changes values: a bit of one side that the other has not.
struct Change {
  bool conjugates, negates;
};
Change change_of(const at::Tensor& from, const at::Tensor& to) {
  return {from.is_conj() != to.is_conj(), from.is_neg() != to.is_neg()};
}

// Reals and their imaginary parts, on a last axis.
weft::Tensor conjugated(const weft::Tensor& x) {
  const weft::Tensor signs =
      weft::Tensor::arange(int64_t(1), int64_t(-3), int64_t(-2), x.dtype(), x.device());
  return x.mul(signs);
}

weft::Tensor converted(const weft::Tensor& x, c10::ScalarType from, c10::ScalarType to) {
  const Held source = held(from), target = held(to);
  if (source.is_complex == target.is_complex) return x.cast(target.dtype);
  if (source.is_complex && target.dtype.is_bool())
    return x.cast(target.dtype).any(std::vector<int64_t>{-1});
  if (source.is_complex) return x.at({Ellipsis(), int64_t(0)}).cast(target.dtype);
  const weft::Tensor real = x.cast(target.dtype).unsqueeze(-1);
  return weft::Tensor::cat({real, real.zeros_like()}, -1);
}

bool is_moved_only(c10::ScalarType type) { return !is_computed(type) && !held(type).is_complex; }

// Between types of which weft moves the bits of one alone.
bool needs_cpu(const at::Tensor& from, const at::Tensor& to) {
  return from.scalar_type() != to.scalar_type() &&
         (is_moved_only(from.scalar_type()) || is_moved_only(to.scalar_type()));
}

at::Tensor on_cpu(const at::Tensor& from) {
  at::Tensor copy = at::detail::empty_cpu(from.sizes(), from.scalar_type());
  copy_out(copy, from);
  if (from.is_conj()) copy._set_conj(true);
  if (from.is_neg()) copy._set_neg(true);
  return copy;
}

void copy_within(const at::Tensor& from, const at::Tensor& to) {
  const Change change = change_of(from, to);
  const bool is_same = from.scalar_type() == to.scalar_type();
  if (is_same && !change.conjugates && !change.negates && at::native::is_set_to(from, to)) return;
  at::assert_no_internal_overlap(to);
  at::assert_no_partial_overlap(to, from);
  weft::Tensor value = converted(handle(from), from.scalar_type(), to.scalar_type());
  if (change.conjugates && to.is_complex()) value = conjugated(value);
  if (change.negates) value = value.neg();
  put(to, value);
}

// From another device: by way of the CPU.
void copy_from_other(const at::Tensor& from, const at::Tensor& to) {
  at::assert_no_internal_overlap(to);
  // The CPU converts and resolves bits; elements are copied once, broadcast by the device.
  at::Tensor raw = from.cpu().to(to.scalar_type()).resolve_conj().resolve_neg().contiguous();
  const at::Tensor staged = empty(raw.sizes(), raw.scalar_type());
  copy_in(staged, raw);
  weft::Tensor value = handle(staged);
  if (to.is_conj()) value = conjugated(value);
  if (to.is_neg()) value = value.neg();
  put(to, value);
}

// Through windows an element is written several times: the last of the CPU's writes counts.
void copy_on_cpu(const at::Tensor& from, const at::Tensor& to) {
  static const auto kCopy = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  torch::jit::Stack stack{to, from.is_privateuseone() ? from : from.cpu(), false};
  call_on_cpu(kCopy, stack);
}

void check_shapes(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() == to.sizes()) return;
  const auto shape = at::infer_size_dimvector(to.sizes(), from.sizes());
  TORCH_CHECK(at::IntArrayRef(shape) == to.sizes(), "output with shape ", to.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(shape));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  check_shapes(from, to);
  if (to.numel() == 0) return to;
  const bool from_weft = from.device().is_privateuseone(), to_weft = to.device().is_privateuseone();
  if (!to_weft) {
    if (to.is_cpu() && to.is_contiguous() && from.sizes() == to.sizes() &&
        from.scalar_type() == to.scalar_type() && !change_of(from, to).conjugates &&
        !change_of(from, to).negates) {
      copy_out(to, from);
    } else {
      to.copy_(on_cpu(from));
    }
  } else if (repeats_elements(to)) {
    copy_on_cpu(from, to);
  } else if (!from_weft) {
    copy_from_other(from, to);
  } else if (needs_cpu(from, to)) {
    copy_from_other(on_cpu(from), to);
  } else {
    copy_within(from, to);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_output(to, from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  at::Tensor element = at::detail::empty_cpu(self.sizes(), self.scalar_type());
  copy_out(element, self);
  return at::native::_local_scalar_dense_cpu(element);
}

// The bits of a scalar of any dtype.
weft::Tensor filling(const at::Scalar& value, c10::ScalarType type) {
  if (is_computed(type)) return number(checked_number(value, type), type);
  at::Tensor element = at::detail::empty_cpu({}, type);
  element.fill_(value);
  const at::Tensor staged = empty({}, type);
  copy_in(staged, element);
  return handle(staged);
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  const weft::Tensor filled = filling(value, self.scalar_type());
  if (self.numel() != 0) put(self, filled);
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  if (self.numel() == 0) return self;
  if (value.device() != self.device()) return fill_scalar(self, value.item());
  at::assert_no_internal_overlap(self);  // it is a copy, as PyTorch has it
  put(self, converted(handle(value), value.scalar_type(), self.scalar_type()));
  return self;
}

at::Tensor& zero_(at::Tensor& self) { return fill_scalar(self, 0); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_copy_from, copy_from, Others::kGiven>(m);
  native<at::_ops::_copy_from_and_resize, copy_from_and_resize, Others::kGiven>(m);
  native<at::_ops::_local_scalar_dense, local_scalar, Others::kGiven>(m);
  native<at::_ops::fill__Scalar, fill_scalar, Others::kGiven>(m);
  native<at::_ops::fill__Tensor, fill_tensor, Others::kGiven>(m);
  native<at::_ops::zero_, zero_, Others::kGiven>(m);
}

// The destination of _copy_from is written, which its schema does not say: resolving it first would
// lose the write.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {  // NOLINT
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {  // NOLINT
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace
}  // namespace weft::pytorch
