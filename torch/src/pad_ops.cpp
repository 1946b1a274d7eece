// Padding: with a number, or with the elements that a tensor has; columns of windows and back.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/TensorMeta.h>
#include <ATen/core/DimVector.h>
#include <ATen/native/Padding.h>
#include <ATen/native/Resize.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/ops/reflection_pad1d_backward_meta.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad3d_backward_meta.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/replication_pad1d_backward_meta.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad3d_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/windows.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;
using Mode = weft::Tensor::PadMode;

// PyTorch lists pairs from the last axis on.
std::vector<std::pair<int64_t, int64_t>> pairs_of(int64_t rank, IntArrayRef padding) {
  std::vector<std::pair<int64_t, int64_t>> pairs(static_cast<size_t>(rank));
  for (size_t i = 0; i < padding.size() / 2; i++) {
    pairs[size_t(rank) - 1 - i] = {padding[2 * i], padding[2 * i + 1]};
  }
  return pairs;
}

at::Tensor constant_pad(const at::Tensor& self, IntArrayRef padding, const at::Scalar& value) {
  TORCH_CHECK(padding.size() % 2 == 0, "Length of pad must be even but instead it equals ",
              padding.size());
  TORCH_CHECK(self.dim() * 2 >= int64_t(padding.size()), "Length of pad should be no more than ",
              "twice the number of dimensions of the input. Pad length is ", padding.size(),
              "while the input has ", self.dim(), "dimensions.");
  const auto pairs = pairs_of(self.dim(), padding);
  std::vector<int64_t> sizes = list_of(self.sizes());
  bool is_cut_off = false;  // more is taken away from one end than there is
  for (size_t i = 0; i < sizes.size(); i++) {
    const int64_t left =
        sizes[i] + std::min<int64_t>(pairs[i].first, 0) + std::min<int64_t>(pairs[i].second, 0);
    TORCH_CHECK(left >= 0, "narrow(): length must be non-negative.");
    is_cut_off |= left == 0;
    sizes[i] += pairs[i].first + pairs[i].second;
    TORCH_CHECK(sizes[i] >= 0, "The input size ", self.size(int64_t(i)), ", plus negative padding ",
                pairs[i].first, " and ", pairs[i].second, " resulted in a negative output size, ",
                "which is invalid. Check dimension ", i, " of your input.");
  }
  at::Tensor result = empty(sizes, self.scalar_type());
  const auto format = self.suggest_memory_format();
  if (format != c10::MemoryFormat::Contiguous) {
    result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  if (result.numel() == 0) return result;
  const bool is_filled = self.numel() == 0 || is_cut_off;
  put(result,
      is_filled ? number(value, self.scalar_type()) : operand(self).pad(pairs, number_of(value)));
  return result;
}

// ---- with its own elements

// A list of padding, as an attribute of a call.
struct Pads {
  size_t count = 0;
  std::array<int64_t, 6> numbers{};

  Pads() = default;
  explicit Pads(IntArrayRef padding) : count(padding.size()) {
    TORCH_CHECK(count <= numbers.size(), "padding of ", count / 2, " axes; there is that of 3");
    std::ranges::copy(padding, numbers.begin());
  }
  auto fields() { return std::tie(count, numbers); }
  std::vector<std::pair<int64_t, int64_t>> pairs(int64_t rank) const {
    return pairs_of(rank, IntArrayRef(numbers.data(), count));
  }
  std::vector<int64_t> sizes(IntArrayRef of) const {
    std::vector<int64_t> sizes = list_of(of);
    const auto each = pairs(int64_t(of.size()));
    for (size_t i = 0; i < sizes.size(); i++) sizes[i] += each[i].first + each[i].second;
    return sizes;
  }
};

constexpr auto kPad = row("pad", [](Mode mode, const Pads& pads, const weft::Tensor& x) {
  return x.pad(pads.pairs(x.ndim()), mode);
});
constexpr auto kPadBackward =
    row("pad_backward", [](Ints shape, Mode mode, const Pads& pads, const weft::Tensor& by) {
      return pulled_back(ints(Sizes(shape)), by,
                         [&](const weft::Tensor& x) { return x.pad(pads.pairs(x.ndim()), mode); });
    });

template <Mode mode>
weft::Tensor padded(const at::Tensor& self, IntArrayRef padding) {
  const Pads pads(padding);
  const weft::Tensor x = operand(self);
  return call<kPad>({x.dtype(), ints(IntArrayRef(pads.sizes(self.sizes())))}, mode, pads, x);
}
template <Mode mode>
weft::Tensor shaped(const Shaped&, const at::Tensor& self, IntArrayRef padding) {
  return padded<mode>(self, padding);
}
template <Mode mode>
weft::Tensor backward_of(const at::Tensor& gradient, const at::Tensor& self, IntArrayRef padding) {
  const Pads pads(padding);
  check_sizes("the gradient", gradient, pads.sizes(self.sizes()));
  const weft::Tensor g = wide_operand(gradient);
  return call<kPadBackward>({g.dtype(), ints(self.sizes())}, mode, pads, g);
}
template <Mode mode>
weft::Tensor padded_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& self,
                             IntArrayRef padding) {
  return backward_of<mode>(gradient, self, padding);
}

// Where PyTorch has no shape function of its own: padding is of the last `count` axes.
template <size_t count>
void check_padded(const at::Tensor& self, IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 2 * count, "padding size is expected to be ", 2 * count);
  const auto rank = size_t(self.dim());
  TORCH_CHECK(rank == count + 1 || rank == count + 2, "expected ", count + 1, "D or ", count + 2,
              "D (batch mode) tensor, got ", self.sizes());
}
template <Mode mode, size_t count>
at::Tensor unshaped_backward(const at::Tensor& gradient, const at::Tensor& self,
                             IntArrayRef padding) {
  check_padded<count>(self, padding);
  check_sizes("the gradient", gradient, Pads(padding).sizes(self.sizes()));
  check_one_type(gradient, self);
  at::Tensor result = empty(self.sizes(), self.scalar_type());
  if (result.numel() != 0) put(result, backward_of<mode>(gradient, self, padding));
  return result;
}
template <Mode mode, size_t count>
at::Tensor& unshaped_backward_out(const at::Tensor& gradient, const at::Tensor& self,
                                  IntArrayRef padding, at::Tensor& out) {
  check_padded<count>(self, padding);
  check_sizes("the gradient", gradient, Pads(padding).sizes(self.sizes()));
  check_one_type(gradient, self);
  at::native::resize_output(out, self.sizes());
  if (out.numel() != 0) put(out, backward_of<mode>(gradient, self, padding));
  return out;
}

at::Tensor& reflection_pad2d_out(const at::Tensor& self, IntArrayRef padding, at::Tensor& out) {
  at::native::padding::check_valid_input<2>(self, padding);
  std::vector<int64_t> sizes = list_of(self.sizes());
  const size_t rank = sizes.size();
  for (size_t i = 0; i < 2; i++) {
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    int64_t& size = sizes[rank - 1 - i];
    TORCH_CHECK(before < size && after < size, "Argument #", i == 0 ? 4 : 6,
                ": Padding size should be less than the corresponding input dimension, but got: ",
                "padding (", before, ", ", after, ") at dimension ", rank - 1 - i, " of input ",
                self.sizes());
    size += before + after;
  }
  TORCH_CHECK(sizes[rank - 1] >= 1 || sizes[rank - 2] >= 1, "input (H: ", self.size(-2),
              ", W: ", self.size(-1), ") is too small. Calculated output H: ", sizes[rank - 2],
              " W: ", sizes[rank - 1]);
  at::native::resize_output(out, sizes);
  if (out.numel() != 0) put(out, padded<Mode::kReflect>(self, padding));
  return out;
}
at::Tensor reflection_pad2d(const at::Tensor& self, IntArrayRef padding) {
  at::Tensor result = empty({0}, self.scalar_type());
  reflection_pad2d_out(self, padding, result);
  return result;
}

// ---- columns: (n, channels, height, width) to (n, channels * kernel, places)

// How columns are made. A batch may be missing.
class Columns {
 public:
  Columns() = default;
  Columns(IntArrayRef sizes, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
          IntArrayRef stride) {
    for (size_t i = 0; i < 2; i++) {
      axes_[i] = {.size = sizes[i],
                  .kernel = kernel[i],
                  .stride = stride[i],
                  .dilation = dilation[i],
                  .before = padding[i],
                  .after = padding[i]};
      axes_[i].outputs =
          (sizes[i] + 2 * padding[i] - axes_[i].extent()) / stride[i] + 1;  // as is checked before
    }
  }
  auto fields() { return std::tie(axes_); }
  int64_t kernel() const { return axes_[0].kernel * axes_[1].kernel; }
  int64_t outputs() const { return axes_[0].outputs * axes_[1].outputs; }
  weft::Tensor operator()(const weft::Tensor& x) const {
    const WindowAxes axes(axes_.begin(), axes_.end());
    const weft::Tensor batch = x.ndim() == 4 ? x : x.unsqueeze(0);
    const weft::Tensor windows = windows_of(batch, axes, int64_t(0)).permute({0, 1, 4, 5, 2, 3});
    const weft::Tensor columns = windows.flatten(1, 3).flatten(2, 3);
    return x.ndim() == 4 ? columns : columns.squeeze(0);
  }

 private:
  std::array<WindowAxis, 2> axes_{};
};
constexpr auto kColumns =
    row("im2col", [](const Columns& columns, const weft::Tensor& x) { return columns(x); });
constexpr auto kColumnsBackward =
    row("col2im", [](Ints shape, const Columns& columns, const weft::Tensor& by) {
      return pulled_back(ints(Sizes(shape)), by, columns);
    });

// Checked: a batch of columns, or the columns of one.
struct Im2Col : at::impl::MetaBase {
  static Columns columns(const at::Tensor& self, IntArrayRef kernel, IntArrayRef dilation,
                         IntArrayRef padding, IntArrayRef stride) {
    return {self.sizes().slice(size_t(self.dim()) - 2), kernel, dilation, padding, stride};
  }
  void meta(const at::Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
            IntArrayRef stride) {
    TORCH_CHECK(
        kernel.size() == 2 && dilation.size() == 2 && padding.size() == 2 && stride.size() == 2,
        "im2col: expected kernel_size, dilation, padding and stride of size 2");
    at::native::im2col_shape_check(self, at::Tensor(), kernel[0], kernel[1], dilation[0],
                                   dilation[1], padding[0], padding[1], stride[0], stride[1]);
    const Columns made = columns(self, kernel, dilation, padding, stride);
    at::DimVector sizes(self.sizes().slice(0, size_t(self.dim()) - 2));
    sizes.back() *= made.kernel();
    sizes.push_back(made.outputs());
    set_output_raw_strided(0, sizes, {}, self.options());
  }
  static weft::Tensor values(const Shaped& s, const at::Tensor& self, IntArrayRef kernel,
                             IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
    const weft::Tensor x = operand(self);
    return call<kColumns>({x.dtype(), ints(s.out().sizes())},
                          columns(self, kernel, dilation, padding, stride), x);
  }
};

struct Col2Im : at::impl::MetaBase {
  void meta(const at::Tensor& self, IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation,
            IntArrayRef padding, IntArrayRef stride) {
    TORCH_CHECK(
        size.size() == 2 && kernel.size() == 2 && dilation.size() == 2 && padding.size() == 2 &&
            stride.size() == 2,
        "col2im: expected output_size, kernel_size, dilation, padding and stride of size 2");
    at::native::col2im_shape_check(self, at::Tensor(), size[0], size[1], kernel[0], kernel[1],
                                   dilation[0], dilation[1], padding[0], padding[1], stride[0],
                                   stride[1]);
    at::DimVector sizes(self.sizes().slice(0, size_t(self.dim()) - 1));
    sizes.back() /= kernel[0] * kernel[1];
    sizes.append(size.begin(), size.end());
    set_output_raw_strided(0, sizes, {}, self.options());
  }
  static weft::Tensor values(const Shaped& s, const at::Tensor& self, IntArrayRef size,
                             IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                             IntArrayRef stride) {
    const weft::Tensor g = wide_operand(self);
    return call<kColumnsBackward>({g.dtype(), ints(s.out().sizes())},
                                  Columns(size, kernel, dilation, padding, stride), g);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::constant_pad_nd, constant_pad>(m);
  structured<at::meta::structured_reflection_pad1d, shaped<Mode::kReflect>,
             at::_ops::reflection_pad1d, at::_ops::reflection_pad1d_out>(m);
  structured<at::meta::structured_reflection_pad1d_backward, padded_backward<Mode::kReflect>,
             at::_ops::reflection_pad1d_backward, at::_ops::reflection_pad1d_backward_grad_input>(
      m);
  native<at::_ops::reflection_pad2d, reflection_pad2d>(m);
  native<at::_ops::reflection_pad2d_out, reflection_pad2d_out>(m);
  native<at::_ops::reflection_pad2d_backward, unshaped_backward<Mode::kReflect, 2>>(m);
  native<at::_ops::reflection_pad2d_backward_grad_input, unshaped_backward_out<Mode::kReflect, 2>>(
      m);
  structured<at::meta::structured_reflection_pad3d, shaped<Mode::kReflect>,
             at::_ops::reflection_pad3d, at::_ops::reflection_pad3d_out>(m);
  structured<at::meta::structured_reflection_pad3d_backward, padded_backward<Mode::kReflect>,
             at::_ops::reflection_pad3d_backward, at::_ops::reflection_pad3d_backward_grad_input>(
      m);
  structured<at::meta::structured_replication_pad1d, shaped<Mode::kReplicate>,
             at::_ops::replication_pad1d, at::_ops::replication_pad1d_out>(m);
  structured<at::meta::structured_replication_pad1d_backward, padded_backward<Mode::kReplicate>,
             at::_ops::replication_pad1d_backward, at::_ops::replication_pad1d_backward_grad_input>(
      m);
  structured<at::meta::structured_replication_pad2d, shaped<Mode::kReplicate>,
             at::_ops::replication_pad2d, at::_ops::replication_pad2d_out>(m);
  native<at::_ops::replication_pad2d_backward, unshaped_backward<Mode::kReplicate, 2>>(m);
  native<at::_ops::replication_pad2d_backward_grad_input,
         unshaped_backward_out<Mode::kReplicate, 2>>(m);
  structured<at::meta::structured_replication_pad3d, shaped<Mode::kReplicate>,
             at::_ops::replication_pad3d, at::_ops::replication_pad3d_out>(m);
  native<at::_ops::replication_pad3d_backward, unshaped_backward<Mode::kReplicate, 3>>(m);
  native<at::_ops::replication_pad3d_backward_grad_input,
         unshaped_backward_out<Mode::kReplicate, 3>>(m);
  structured<Im2Col, Im2Col::values, at::_ops::im2col, at::_ops::im2col_out>(m);
  structured<Col2Im, Col2Im::values, at::_ops::col2im, at::_ops::col2im_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
