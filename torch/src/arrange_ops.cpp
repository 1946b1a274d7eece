// Elements arranged anew, and chosen by masks where they are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/IListRef.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/result_type_native.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/triu_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex.h"
#include "complex_kernels.h"
#include "convert.h"
#include "ir/op.h"
#include "native.h"
#include "new_tensors.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;

// --------------------------------------------------------------------------------------------- cat

weft::Tensor cat(const Shaped& s, const at::ITensorListRef& tensors, int64_t dim) {
  std::vector<weft::Tensor> parts;
  parts.reserve(tensors.size());
  for (const at::Tensor& part : tensors) {
    if (part.numel() != 0) parts.push_back(elements(part, s.out().scalar_type()));
  }
  if (parts.size() == 1) return parts[0];
  return weft::Tensor::cat(parts, at::maybe_wrap_dim(dim, s.out().dim()));
}

// ----------------------------------------------------------------------------- flip, roll, repeat

at::Tensor flip(const at::Tensor& self, IntArrayRef dims) {
  at::dim_list_to_bitset(dims, size_t(self.dim()));  // throws where one is there twice
  const at::Tensor out = empty_like(self, self.scalar_type());
  if (out.numel() == 0) return out;
  Sizes axes;
  for (const int64_t dim : dims) {
    if (self.dim() > 0) axes.push_back(at::maybe_wrap_dim(dim, self.dim()));
  }
  put(out, handle(self).flip(axes));
  return out;
}

at::Tensor roll(const at::Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  const bool is_flat = dims.empty() && shifts.size() == 1;
  TORCH_CHECK(is_flat || shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  Axes axes;
  if (!is_flat) {
    axes.emplace();
    for (const int64_t dim : dims) axes->push_back(at::maybe_wrap_dim(dim, self.dim()));
  }
  TORCH_CHECK_INDEX(is_flat || self.dim() > 0, "Dimension specified as ", dims[0],
                    " but tensor has no dimensions");
  const at::Tensor out = empty(self.sizes(), self.scalar_type());
  if (out.numel() == 0) return out;
  if (self.dim() == 0) {
    put(out, handle(self));
  } else if (is_flat && self.is_complex()) {
    const weft::Tensor x = handle(self);
    put(out, x.reshape({-1, 2}).roll(ints(shifts), std::vector<int64_t>{0}).reshape(x.shape()));
  } else {
    put(out, handle(self).roll(ints(shifts), axes));
  }
  return out;
}

at::Tensor repeat(const at::Tensor& self, IntArrayRef repeats) {
  TORCH_CHECK(int64_t(repeats.size()) >= self.dim(),
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
              "tensor");
  std::vector<int64_t> sizes(repeats.begin(), repeats.end());
  const size_t added = repeats.size() - size_t(self.dim());
  for (size_t i = added; i < sizes.size(); i++) sizes[i] *= self.size(int64_t(i - added));
  const at::Tensor out = empty(sizes, self.scalar_type());
  Sizes all(ints(repeats));
  if (self.is_complex()) all.push_back(1);
  if (out.numel() != 0) put(out, handle(self).repeat(all));
  return out;
}

// k, as often as repeats[k] says, for every k.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == c10::kLong || repeats.scalar_type() == c10::kInt,
              "repeats has to be Long or Int tensor");
  const c10::ScalarType type = repeats.scalar_type();
  if (repeats.numel() == 0) return empty({0}, type);
  if (!output_size) {
    const std::vector<int64_t> counts = handle(repeats).data<int64_t>();
    std::vector<int64_t> places;
    for (size_t k = 0; k < counts.size(); k++) {
      TORCH_CHECK(counts[k] >= 0, "repeats can not be negative");
      places.insert(places.end(), size_t(counts[k]), int64_t(k));
    }
    const auto count = int64_t(places.size());
    return give(weft::Tensor::from<int64_t>(places, {count}, weft_device().name()), type);
  }
  // How many of the sums of repeats are not past a place.
  const at::Tensor out = empty({*output_size}, type);
  if (*output_size == 0) return out;
  const weft::Tensor ends = handle(repeats).cast(dtypes::int64).cumsum(0);
  const weft::Tensor marks =
      weft::Tensor::zeros({*output_size + 1}, dtypes::int64, weft_device().name())
          .scatter(0, ends, int64_t(1), Op::ADD);
  put(out, marks.cumsum(0).at({Slice{.stop = output_size}}));
  return out;
}

// --------------------------------------------------------------------------------------- triangles

weft::Tensor tril(const Shaped& s, const at::Tensor& self, int64_t diagonal) {
  return s.in(self).tril(diagonal);
}
weft::Tensor triu(const Shaped& s, const at::Tensor& self, int64_t diagonal) {
  return s.in(self).triu(diagonal);
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix");
  const bool is_integral = c10::isIntegralType(self.scalar_type(), true);
  const c10::ScalarType type = is_integral ? c10::kLong : self.scalar_type();
  const weft::Tensor diagonal = handle(self).diagonal();
  return give(is_integral ? diagonal.sum({}, false, dtypes::int64) : diagonal.sum(), type);
}

// ----------------------------------------------------------------------------- gradients of views

// Zeros around x on one axis.
weft::Tensor padded(const weft::Tensor& x, int64_t axis, int64_t before, int64_t after) {
  std::vector<std::pair<int64_t, int64_t>> around(x.shape().size(), {0, 0});
  around[size_t(axis)] = {before, after};
  return x.pad(around, int64_t(0));
}

// As values they are computed where they are read: a write into zeros would need memory first.
at::Tensor slice_backward(const at::Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t start,
                          int64_t /*end*/, int64_t step) {
  TORCH_CHECK_INDEX(!sizes.empty(), "slice() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(step > 0, "slice step must be positive");
  dim = at::maybe_wrap_dim(dim, int64_t(sizes.size()));
  const int64_t size = sizes[size_t(dim)], count = grad.size(dim);
  const at::Tensor result = empty(sizes, grad.scalar_type());
  if (result.numel() == 0) return result;
  if (grad.numel() == 0) {
    const Held type = held(grad.scalar_type());
    put(result, weft::Tensor::zeros({}, type.dtype, weft_device().name()));
    return result;
  }
  if (start < 0) start += size;
  start = std::clamp<int64_t>(start, 0, size);
  weft::Tensor x = handle(grad);
  if (step > 1) {  // each element with zeros behind it
    Sizes shape(x.shape());
    x = padded(x.unsqueeze(dim + 1), dim + 1, 0, step - 1);
    shape[size_t(dim)] = count * step;
    x = x.reshape(shape);
  }
  put(result, padded(x, dim, start, size - start - count * step));
  return result;
}

at::Tensor select_backward(const at::Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t index) {
  TORCH_CHECK_INDEX(!sizes.empty(), "select() cannot be applied to a 0-dim tensor.");
  dim = at::maybe_wrap_dim(dim, int64_t(sizes.size()));
  const int64_t size = sizes[size_t(dim)];
  TORCH_CHECK_INDEX(-size <= index && index < size, "select(): index ", index,
                    " out of range for tensor of size ", sizes, " at dimension ", dim);
  const at::Tensor result = empty(sizes, grad.scalar_type());
  if (result.numel() == 0) return result;
  if (index < 0) index += size;
  put(result, padded(handle(grad).unsqueeze(dim), dim, index, size - index - 1));
  return result;
}

// ------------------------------------------------------------------------------------------- masks

weft::Tensor condition_of(const at::Tensor& condition) {
  if (condition.scalar_type() == c10::kByte) {
    TORCH_WARN_ONCE(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed "
        "in a future version of PyTorch. Use a boolean condition instead.");
  } else {
    TORCH_CHECK(condition.scalar_type() == c10::kBool,
                "where expected condition to be a boolean tensor, but got a tensor with dtype ",
                condition.scalar_type());
  }
  return operand(condition, c10::kBool);
}

at::Tensor where_into(const at::Tensor& out, const at::Tensor& condition, const at::Tensor& a,
                      const at::Tensor& b, c10::ScalarType type) {
  const weft::Tensor is_first = condition_of(condition);
  const at::Tensor result =
      elementwise_output(out, type, condition, as_cast(a, type), as_cast(b, type));
  if (result.numel() == 0) return result;
  put(result, weft::Tensor::where(mask_for(is_first, type), elements(a, type), elements(b, type)));
  return result;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
  const c10::ScalarType type =
      a.scalar_type() == b.scalar_type() ? a.scalar_type() : at::native::result_type(a, b);
  return where_into({}, condition, a, b, type);
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b,
                      at::Tensor& out) {
  const c10::ScalarType type = at::native::result_type(a, b);
  TORCH_CHECK(out.scalar_type() == type, "Expected out type to be ", type, " but got ",
              out.scalar_type());
  where_into(out, condition, a, b, type);
  return out;
}

void check_mask(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == c10::kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ", mask.dtype());
  TORCH_CHECK(self.device() == mask.device() || mask.dim() == 0,
              "expected self and mask to be on the same device, but got mask on ", mask.device(),
              " and self on ", self.device());
}

void masked_fill_into(at::Tensor& self, const at::Tensor& mask, const weft::Tensor& value) {
  check_mask(self, mask);
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::infer_size(self.sizes(), mask.sizes()));
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = "
        "scalar");
  }
  at::assert_no_partial_overlap(self, mask);
  if (self.numel() == 0) return;
  const weft::Tensor is_filled = mask_for(operand(mask), self.scalar_type());
  put(self, weft::Tensor::where(is_filled, value, handle(self)));
}

void check_element(const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
}

// As the CPU: what does not fit is an error.
weft::Tensor filling(const at::Scalar& value, c10::ScalarType type) {
  if (c10::isIntegralType(type, false) && !value.isIntegral(true)) {
    return number(checked_number(value, type).to<int64_t>(), type);
  }
  return elements(checked_number(value, type), type);
}

at::Tensor& masked_fill_scalar_(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  masked_fill_into(self, mask, filling(value, self.scalar_type()));
  return self;
}
// Whether the value decides if it can be written: what is imaginary cannot become real.
bool is_asked_for(const at::Tensor& value, const at::Tensor& self) {
  return value.is_complex() && !self.is_complex();
}

at::Tensor& masked_fill_tensor_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  check_element(value);
  if (is_asked_for(value, self)) return masked_fill_scalar_(self, mask, value.item());
  masked_fill_into(self, mask, elements(value, self.scalar_type()));
  return self;
}

at::Tensor masked_filled(const at::Tensor& self, const at::Tensor& mask,
                         const weft::Tensor& value) {
  check_mask(self, mask);
  const at::Tensor out =
      self.sizes() == mask.sizes()
          ? empty(self.sizes(), self.scalar_type())
          : empty(at::infer_size(self.sizes(), mask.sizes()), self.scalar_type());
  if (out.numel() == 0) return out;
  const weft::Tensor is_filled = mask_for(operand(mask), self.scalar_type());
  put(out, weft::Tensor::where(is_filled, value, handle(self)));
  return out;
}
at::Tensor masked_fill_scalar(const at::Tensor& self, const at::Tensor& mask,
                              const at::Scalar& value) {
  return masked_filled(self, mask, filling(value, self.scalar_type()));
}
at::Tensor masked_fill_tensor(const at::Tensor& self, const at::Tensor& mask,
                              const at::Tensor& value) {
  check_element(value);
  if (is_asked_for(value, self)) return masked_fill_scalar(self, mask, value.item());
  return masked_filled(self, mask, elements(value, self.scalar_type()));
}

// The k-th element of source goes to the k-th place where the mask holds.
at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::infer_size(self.sizes(), mask.sizes()));
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == c10::kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  if (self.numel() == 0) return self;
  const weft::Tensor x = handle(self);
  const weft::Tensor is_here = operand(mask, c10::kBool).expand(x.shape());
  if (source.numel() == 0) {
    TORCH_CHECK(!is_here.any().item<bool>(),
                "masked_scatter: expected number of elements of source >= number of ones in mask");
    return self;
  }
  const weft::Tensor place =
      is_here.reshape({-1}).cast(dtypes::int64).cumsum(0).sub(int64_t(1)).reshape(x.shape());
  // Past the end of source it is an index out of range.
  const weft::Tensor index = weft::Tensor::where(is_here, place, place.zeros_like());
  put(self, weft::Tensor::where(is_here, handle(source).take(index), x));
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_cat, cat, at::_ops::cat, at::_ops::cat_out>(m);
  native<at::_ops::flip, flip>(m);
  native<at::_ops::roll, roll>(m);
  native<at::_ops::repeat, repeat>(m);
  native<at::_ops::repeat_interleave_Tensor, repeat_interleave>(m);
  structured<at::meta::structured_tril, tril, at::_ops::tril, at::_ops::tril_, at::_ops::tril_out>(
      m);
  structured<at::meta::structured_triu, triu, at::_ops::triu, at::_ops::triu_, at::_ops::triu_out>(
      m);
  native<at::_ops::trace, trace>(m);
  native<at::_ops::slice_backward, slice_backward, Others::kGiven>(m);
  native<at::_ops::select_backward, select_backward, Others::kGiven>(m);
  native<at::_ops::where_self, where>(m);
  native<at::_ops::where_self_out, where_out>(m);
  native<at::_ops::masked_fill__Scalar, masked_fill_scalar_>(m);
  native<at::_ops::masked_fill__Tensor, masked_fill_tensor_>(m);
  native<at::_ops::masked_fill_Scalar, masked_fill_scalar>(m);
  native<at::_ops::masked_fill_Tensor, masked_fill_tensor>(m);
  native<at::_ops::masked_scatter_, masked_scatter_>(m);
}

bool add_kernels() noexcept {
  using Cat = detail::Functional<at::meta::structured_cat, cat, at::_ops::cat::schema>;
  using CatOut = detail::Out<at::meta::structured_cat, cat, 1, at::_ops::cat_out::schema>;
  add_complex_kernel<at::_ops::cat, Cat::call>();
  add_complex_kernel<at::_ops::cat_out, CatOut::call>();
  add_complex_kernel<at::_ops::flip, flip>();
  add_complex_kernel<at::_ops::roll, roll>();
  add_complex_kernel<at::_ops::repeat, repeat>();
  add_complex_kernel<at::_ops::where_self, where>();
  add_complex_kernel<at::_ops::where_self_out, where_out>();
  add_complex_kernel<at::_ops::masked_fill__Scalar, masked_fill_scalar_>();
  add_complex_kernel<at::_ops::masked_fill__Tensor, masked_fill_tensor_>();
  add_complex_kernel<at::_ops::masked_fill_Scalar, masked_fill_scalar>();
  add_complex_kernel<at::_ops::masked_fill_Tensor, masked_fill_tensor>();
  return true;
}
const bool kAdded = add_kernels();

}  // namespace
}  // namespace weft::pytorch
