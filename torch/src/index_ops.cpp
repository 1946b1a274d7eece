// a[i, :, j] by tensors, and elements of an axis or of the flat tensor by one of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/List.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/index_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "complex.h"
#include "complex_kernels.h"
#include "convert.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

// ------------------------------------------------------------------------------- tensors as
// indices

// An index, which may lie on the CPU.
weft::Tensor values_of(const at::Tensor& index) {
  if (index.device().is_privateuseone()) return handle(index);
  const at::Tensor raw = index.contiguous();
  return weft::Tensor::from_bytes(
      {static_cast<const std::byte*>(raw.const_data_ptr()), raw.nbytes()}, ints(raw.sizes()),
      dtype_of(raw.scalar_type()), weft_device().name());
}

bool is_mask(const at::Tensor& index) {
  return index.scalar_type() == c10::kBool || index.scalar_type() == c10::kByte;
}

weft::Tensor mask_of(const at::Tensor& index) { return values_of(index).cast(dtypes::bool_); }

// The indices of a[...], one for each axis of the tensor.
struct Given {
  std::vector<Index> list;
  Sizes shape;           // that they broadcast to
  Sizes result;          // of what they name
  bool is_plain = true;  // those that PyTorch would make a new tensor in row-major order of
};

void check_mask(const at::Tensor& self, const at::Tensor& mask, size_t axis) {
  for (int64_t k = 0; k < mask.dim(); k++) {
    const auto at = int64_t(axis) + k;
    TORCH_CHECK_INDEX(at < self.dim(), "too many indices for tensor of dimension ", self.dim());
    if (mask.size(k) != self.size(at)) at::native::invalid_mask(self, at, mask, k);
  }
}

void broadcast_shape(Sizes& shape, Ints own, const OptionalTensors& indices) {
  Sizes wide(std::max(shape.size(), own.size()), 1);
  for (size_t k = 0; k < wide.size(); k++) {
    const int64_t a = k < shape.size() ? shape[shape.size() - 1 - k] : 1;
    const int64_t b = k < own.size() ? own[own.size() - 1 - k] : 1;
    if (a != b && a != 1 && b != 1) {
      std::string text;
      for (size_t i = 0; i < indices.size(); i++) {
        const std::optional<at::Tensor> index = indices.get(i);
        if (!index || !index->defined()) continue;
        text += (text.empty() ? "" : ", ") + c10::str(index->sizes());
      }
      TORCH_CHECK_INDEX(
          false, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
          text);
    }
    wide[wide.size() - 1 - k] = a == 1 ? b : a;
  }
  shape = wide;
}

// As PyTorch's shape function of `index` says it.
void warn_of_bytes(const OptionalTensors& indices) {
  for (size_t i = 0; i < indices.size(); i++) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index || !index->defined() || index->scalar_type() != c10::kByte) continue;
    TORCH_WARN("indexing with dtype torch.uint8 is now deprecated,",
               " please use a dtype torch.bool instead.");
  }
}

Given given(const at::Tensor& self, const OptionalTensors& indices) {
  TORCH_CHECK_INDEX(int64_t(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  Given g;
  g.is_plain = self.is_contiguous();
  std::vector<bool> is_named;
  const auto name = [&](const weft::Tensor& places) {
    broadcast_shape(g.shape, places.shape(), indices);
    g.list.emplace_back(ByTensor(places));
    is_named.push_back(true);
  };
  for (size_t i = 0; i < indices.size(); i++) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index || !index->defined()) {
      g.list.emplace_back(Slice{});
      is_named.push_back(false);
      continue;
    }
    g.is_plain &= index->is_contiguous();
    if (!is_mask(*index)) {
      const auto axis = int64_t(g.list.size());
      TORCH_CHECK_INDEX(axis >= self.dim() || self.size(axis) != 0 || index->numel() == 0,
                        "index is out of bounds for dimension with size 0");
      name(values_of(*index));
      continue;
    }
    check_mask(self, *index, g.list.size());
    const weft::Tensor mask = mask_of(*index);
    if (index->dim() == 0) {  // a new axis is the caller's; here it names nothing
      TORCH_CHECK_INDEX(false, "weft: a mask without axes as one of the indices");
    }
    for (const std::vector<int64_t>& at : true_places(mask)) {
      name(weft::Tensor::from<int64_t>(at, {int64_t(at.size())}, weft_device().name()));
    }
  }
  TORCH_CHECK_INDEX(int64_t(g.list.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    g.list.size(), ")");
  const auto first = std::ranges::find(is_named, true);
  const auto last = std::find(is_named.rbegin(), is_named.rend(), true).base();
  const bool is_together = std::find(first, last, false) == last;
  if (!is_together) g.result = g.shape;
  for (int64_t k = 0; k < self.dim(); k++) {
    if (is_together && first != is_named.end() && k == first - is_named.begin()) {
      g.result.append(g.shape);
    }
    if (size_t(k) >= is_named.size() || !is_named[size_t(k)]) g.result.push_back(self.size(k));
  }
  return g;
}

// -------------------------------------------------------------------------------------------
// a[...]

at::Tensor index(const at::Tensor& self, const OptionalTensors& indices) {
  at::native::checkIndexTensorTypes(indices, /*allow_int=*/true);
  const Given g = given(self, indices);
  if (!has_tensors(g.list)) return give(handle(self).clone(), self.scalar_type());
  if (g.is_plain) {
    warn_of_bytes(indices);
    const at::Tensor result = empty(ints(g.result), self.scalar_type());
    if (result.numel() != 0) put(result, handle(self).at(g.list));
    return result;
  }
  detail::Shaping<at::meta::structured_index_Tensor, 1> shaping(Form::kFunctional, {});
  shaping.meta(self, indices);
  const at::Tensor& result = shaping.outputs()[0];
  if (result.numel() != 0) put(result, handle(self).at(g.list));
  return result;
}

at::Tensor& index_out(const at::Tensor& self, const OptionalTensors& indices, at::Tensor& out) {
  detail::Shaping<at::meta::structured_index_Tensor, 1> shaping(Form::kOut, {out});
  shaping.meta(self, indices);
  if (out.numel() != 0) put(out, handle(self).at(given(self, indices).list));
  return out;
}

// Bools are numbers while they are added up.
void write_to(const Chosen& places, const weft::Tensor& value, bool accumulate) {
  if (!accumulate || !places.target.dtype().is_bool()) {
    places.write("index_put", read(value), accumulate ? std::optional(Op::ADD) : std::nullopt);
    return;
  }
  const weft::Tensor numbers = places.target.cast(dtypes::uint8).clone();
  Chosen{numbers, places.first, places.past, places.index}.write(
      "index_put", read(value.cast(dtypes::uint8)), Op::MAX);
  weft::Tensor(places.target).assign(numbers.ne(int64_t(0)));
}

// The mask that alone names elements, broadcast to self: PyTorch fills by it, and refuses less of
// what shares memory.
std::optional<at::Tensor> only_mask(const at::Tensor& self, const OptionalTensors& indices) {
  at::Tensor mask;
  int64_t axis = 0;
  for (size_t i = 0; i < indices.size(); i++) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index || !index->defined()) {
      axis++;
      continue;
    }
    if (mask.defined() || index->scalar_type() != c10::kBool || index->dim() == 0) return {};
    mask = *index;
    check_mask(self, mask, size_t(axis));
    axis += mask.dim();
  }
  if (!mask.defined() || !mask.device().is_privateuseone()) return {};
  for (; axis < self.dim(); axis++) mask = mask.unsqueeze(-1);
  return mask;
}

at::Tensor& index_put_impl(at::Tensor& self, const OptionalTensors& indices,
                           const at::Tensor& values, bool accumulate, bool /*unsafe*/) {
  TORCH_CHECK_INDEX(int64_t(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", values.scalar_type(),
              " for the source.");
  warn_of_bytes(indices);
  if (!accumulate && values.numel() == 1) {
    const std::optional<at::Tensor> mask = only_mask(self, indices);
    if (mask) return self.masked_fill_(*mask, values.reshape({}));
  }
  at::assert_no_overlap(self, values);
  for (size_t i = 0; i < indices.size(); i++) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (index && index->defined()) at::assert_no_overlap(self, *index);
  }
  at::native::checkIndexTensorTypes(indices, /*allow_int=*/true);
  const weft::Tensor target = handle(self), value = elements(values, self.scalar_type());
  if (indices.size() == 1 && !accumulate) {
    const std::optional<at::Tensor> only = indices.get(0);
    if (only && only->defined() && is_mask(*only)) {  // may need no count of what is true
      check_mask(self, *only, 0);
      const Index mask[] = {ByTensor(mask_of(*only))};
      if (write_by_mask(target, mask, read(value))) return self;
    }
  }
  const Given g = given(self, indices);
  TORCH_CHECK(at::is_expandable_to(values.sizes(), ints(g.result)),
              "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", ints(g.result));
  if (Ints(g.result).size() != 0 && std::ranges::count(g.result, 0) > 0) return self;
  if (!has_tensors(g.list)) {
    put(self, accumulate ? target.add(value) : value);
  } else if (!accumulate) {
    weft::Tensor(target).set(g.list, value);
  } else {
    write_to(choose(target, g.list), value, accumulate);
  }
  return self;
}

at::Tensor& index_put_(at::Tensor& self, const OptionalTensors& indices, const at::Tensor& values,
                       bool accumulate) {
  return index_put_impl(self, indices, values, accumulate, false);
}

// PyTorch clones: strides of a dense tensor stay.
at::Tensor index_put(const at::Tensor& self, const OptionalTensors& indices,
                     const at::Tensor& values, bool accumulate) {
  const bool is_dense = self.is_non_overlapping_and_dense();
  at::Tensor result = is_dense ? empty_strided(self.sizes(), self.strides(), self.scalar_type())
                               : empty(self.sizes(), self.scalar_type());
  put(result, handle(self));
  return index_put_impl(result, indices, values, accumulate, false);
}

// ----------------------------------------------------------------------------------------- one
// axis

weft::Tensor with_axis(const weft::Tensor& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }

at::Tensor& index_select_out(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                             at::Tensor& out) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", index.scalar_type(), " and size: ", index.sizes());
  TORCH_CHECK(!(self.dim() == 0 && index.numel() != 1),
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(),
              " value(s)");
  TORCH_CHECK(
      index.scalar_type() == c10::kLong || index.scalar_type() == c10::kInt,
      "index_select(): Expected dtype int32 or int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() > 0) sizes[size_t(dim)] = index.numel();
  TORCH_CHECK(self.dim() <= 1 || index.numel() == 0 || self.size(dim) > 0,
              "index_select(): self indexing axis dim should be positive");
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  const weft::Tensor whole = handle(self), i = with_axis(operand(index));
  const weft::Tensor x = self.dim() == 0 ? whole.unsqueeze(0) : whole;
  Ref<Value> places =
      index_of("index_select", i, dim, x.shape()[size_t(dim)], Negative::kOutOfRange);
  const weft::Tensor value = Chosen{x, dim, dim + 1, std::move(places)}.read();
  Sizes shape(ints(out.sizes()));
  if (out.is_complex()) shape.push_back(2);
  put(out, value.reshape(shape));
  return out;
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::Tensor out = empty({0}, self.scalar_type());
  index_select_out(self, dim, index, out);
  return out;
}

// What an index names along an axis, to be filled; none where that is nothing.
std::optional<Chosen> filled(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.scalar_type() == c10::kLong,
                    "index_fill_(): Expected dtype int64 for index.");
  at::assert_no_overlap(self, index);
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  if (index.numel() == 0) return {};
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != dim && self.size(i) == 0) return {};
  }
  const weft::Tensor x = with_axis(handle(self)), i = with_axis(operand(index));
  const int64_t size = x.shape()[size_t(dim)];
  TORCH_CHECK_INDEX(size != 0, "index ", index.flatten()[0].item<int64_t>(),
                    " is out of bounds for dimension ", dim, " with size 0");
  return Chosen{x, dim, dim + 1, index_of("index_fill_", i, dim, size)};
}

at::Tensor& index_fill_scalar(at::Tensor& self, int64_t dim, const at::Tensor& index,
                              const at::Scalar& value) {
  const auto part = filled(self, dim, index);
  const c10::ScalarType type = self.scalar_type();
  if (part) part->write("index_fill_", read(number(checked_number(value, type), type)));
  return self;
}

at::Tensor& index_fill_tensor(at::Tensor& self, int64_t dim, const at::Tensor& index,
                              const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0,
              "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  const auto part = filled(self, dim, index);
  if (part) part->write("index_fill_", read(operand(value, self.scalar_type())));
  return self;
}

// --------------------------------------------------------------------------------- the flat tensor

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  TORCH_CHECK(index.scalar_type() == c10::kLong,
              "take(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "take(): Expected out to have the same dtype as self");
  TORCH_CHECK_INDEX(!(self.numel() == 0 && index.numel() != 0),
                    "take(): tried to take from an empty tensor");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, index);
  at::assert_no_overlap(out, self);
  at::native::resize_output(out, index.sizes());
  if (out.numel() != 0) put(out, handle(self).take(operand(index)));
  return out;
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  at::Tensor out = empty(index.sizes(), self.scalar_type());
  take_out(self, index, out);
  return out;
}

at::Tensor& put_in(at::Tensor& self, const at::Tensor& index, const at::Tensor& source,
                   bool accumulate) {
  TORCH_CHECK(index.scalar_type() == c10::kLong,
              "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ",
              self.scalar_type(), " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(source.numel() == index.numel(),
              "put_(): Expected source and index to have the same number of elements, but got "
              "source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(!(self.numel() == 0 && index.numel() != 0),
                    "put_(): Expected self to be non-empty");
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  const weft::Tensor x = with_axis(handle(self)), i = handle(index).reshape({-1});
  const Chosen places{x, 0, x.ndim(), index_of("put_", i, 0, x.numel())};
  const weft::Tensor value = handle(source).reshape({-1});
  write_to(places, value, accumulate);
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::index_Tensor, index>(m);
  native<at::_ops::_unsafe_index_Tensor, index>(m);
  native<at::_ops::index_Tensor_out, index_out>(m);
  native<at::_ops::_index_put_impl_, index_put_impl>(m);
  native<at::_ops::index_put_, index_put_>(m);
  native<at::_ops::index_put, index_put>(m);
  native<at::_ops::_unsafe_index_put, index_put>(m);
  native<at::_ops::index_select, index_select>(m);
  native<at::_ops::index_select_out, index_select_out>(m);
  native<at::_ops::index_fill__int_Scalar, index_fill_scalar>(m);
  native<at::_ops::index_fill__int_Tensor, index_fill_tensor>(m);
  native<at::_ops::take, take>(m);
  native<at::_ops::take_out, take_out>(m);
  native<at::_ops::put_, put_in>(m);
}

bool add_kernels() noexcept {
  add_complex_kernel<at::_ops::index_Tensor, index>();
  add_complex_kernel<at::_ops::_unsafe_index_Tensor, index>();
  add_complex_kernel<at::_ops::index_Tensor_out, index_out>();
  add_complex_kernel<at::_ops::_index_put_impl_, index_put_impl>();
  add_complex_kernel<at::_ops::index_put_, index_put_>();
  add_complex_kernel<at::_ops::index_put, index_put>();
  add_complex_kernel<at::_ops::_unsafe_index_put, index_put>();
  add_complex_kernel<at::_ops::index_select, index_select>();
  add_complex_kernel<at::_ops::index_select_out, index_select_out>();
  return true;
}
const bool kAdded = add_kernels();

}  // namespace
}  // namespace weft::pytorch
