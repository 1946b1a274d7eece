// Convolutions of any rank, and their gradients, which are weft's own of the same formula.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "base/ref.h"
#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "tensor/convolution.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

// One per axis of the windows; the lists have as many numbers, or one for all.
class Convolution {
 public:
  Convolution(const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding,
              at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
              int64_t groups)
      : count_(size_t(weight.dim()) - 2), groups_(groups), is_transposed_(transposed) {
    TORCH_CHECK(weight.dim() > 2 && count_ <= kMostAxes, "weft: a convolution of ", count_,
                " axes; there are those of 1 to ", kMostAxes);
    const auto set = [&](Numbers& to, at::IntArrayRef list) {
      for (size_t i = 0; i < count_; i++) to[i] = list.size() == 1 ? list[0] : list.at(i);
    };
    set(stride_, stride);
    set(padding_, padding);
    set(dilation_, dilation);
    if (transposed) set(output_padding_, output_padding);
    for (size_t i = 0; i < count_; i++) {
      TORCH_CHECK(stride_[i] > 0, "stride should be greater than zero, but got ", stride);
      TORCH_CHECK(dilation_[i] > 0, "dilation should be greater than zero, but got ", dilation);
      TORCH_CHECK(output_padding_[i] < std::max(stride_[i], dilation_[i]),
                  "output padding must be ", "smaller than either stride or dilation, but got ",
                  output_padding);
    }
  }

  Convolution() = default;
  auto fields() {
    return std::tie(count_, groups_, is_transposed_, order_, stride_, padding_, dilation_,
                    output_padding_);
  }

  void check(const at::Tensor& input, const at::Tensor& weight) const {
    TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "expected scalar type ",
                input.scalar_type(), " but found ", weight.scalar_type());
    TORCH_CHECK(input.dim() == weight.dim(), "expected ", weight.dim(), "-dimensional input for ",
                weight.dim(), "-dimensional weight ", weight.sizes(), ", but got ", input.sizes());
    const int64_t per_group = is_transposed_ ? weight.size(0) : weight.size(1) * groups_;
    TORCH_CHECK(groups_ > 0 && weight.size(0) % groups_ == 0 && input.size(1) == per_group,
                "a weight of size ", weight.sizes(), " and ", groups_,
                " groups do not fit an input ", "of size ", input.sizes());
  }

  Sizes shape_of(at::IntArrayRef input, at::IntArrayRef weight) const {
    Sizes shape{input[0], is_transposed_ ? weight[1] * groups_ : weight[0]};
    for (size_t i = 0; i < count_; i++) {
      const int64_t size = input[i + 2], reach = dilation_[i] * (weight[i + 2] - 1);
      shape.push_back(is_transposed_ ? (size - 1) * stride_[i] - 2 * padding_[i] + reach +
                                           output_padding_[i] + 1
                                     : (size + 2 * padding_[i] - reach - 1) / stride_[i] + 1);
    }
    return shape;
  }

  // The input as it lies in memory.
  void note_order(const at::Tensor& input) {
    const bool is_strided = input.size(-1) > 1 && input.stride(-1) != 1;
    order_ = is_strided ? LastAxis::kStrided : LastAxis::kInOrder;
  }

  weft::Tensor of(const weft::Tensor& x, const weft::Tensor& weight,
                  const std::optional<weft::Tensor>& bias = {}) const {
    const auto list = [&](const Numbers& numbers) {
      return std::vector<int64_t>(numbers.begin(), numbers.begin() + count_);
    };
    ConvOptions options;
    options.groups = groups_;
    options.stride = list(stride_);
    options.padding = list(padding_);
    options.dilation = list(dilation_);
    if (!is_transposed_) return weft::convolution(x, order_, weight, bias, options);
    options.output_padding = list(output_padding_);
    return x.conv_transpose2d(weight, bias, options);
  }

  // The gradient of `of` by an input of this shape: with strides, a transposed convolution.
  weft::Tensor by_input(Ints shape, const weft::Tensor& by, const weft::Tensor& weight) const {
    if (is_transposed_ || std::ranges::all_of(stride_, [](int64_t n) { return n <= 1; })) {
      return pulled_back(ints(Sizes(shape)), by, [&](const auto& t) { return of(t, weight); });
    }
    Convolution back = *this;
    back.is_transposed_ = true;
    back.output_padding_ = {};
    const auto list = [](Ints of) { return at::IntArrayRef(of.data(), of.size()); };
    const Sizes without = back.shape_of(list(by.shape()), list(weight.shape()));
    for (size_t i = 0; i < count_; i++) back.output_padding_[i] = shape[2 + i] - without[2 + i];
    return back.of(by, weight);
  }

 private:
  static constexpr size_t kMostAxes = 3;
  using Numbers = std::array<int64_t, kMostAxes>;

  size_t count_ = 0;
  int64_t groups_ = 1;
  bool is_transposed_ = false;
  LastAxis order_ = LastAxis::kInOrder;
  Numbers stride_{}, padding_{}, dilation_{}, output_padding_{};
};

// Channels are last in the result where they are in one of both.
c10::MemoryFormat format_of(const at::Tensor& a, const at::Tensor& b) {
  const c10::MemoryFormat first = a.suggest_memory_format();
  return first != c10::MemoryFormat::Contiguous ? first : b.suggest_memory_format();
}

constexpr auto kConvolution =
    row("convolution", [](const Convolution& conv, const weft::Tensor& x, const weft::Tensor& w) {
      return conv.of(x, w);
    });
constexpr auto kBiasedConvolution = row(
    "biased_convolution", [](const Convolution& conv, const weft::Tensor& x, const weft::Tensor& w,
                             const weft::Tensor& bias) { return conv.of(x, w, bias); });
constexpr auto kConvolutionByInput =
    row("convolution_by_input", [](Ints shape, const Convolution& conv, const weft::Tensor& by,
                                   const weft::Tensor& w) { return conv.by_input(shape, by, w); });
constexpr auto kConvolutionByWeight =
    row("convolution_by_weight",
        [](Ints shape, const Convolution& conv, const weft::Tensor& by, const weft::Tensor& x) {
          return pulled_back(ints(Sizes(shape)), by, [&](const auto& w) { return conv.of(x, w); });
        });
constexpr auto kConvolutionByBias = row("convolution_by_bias", [](const weft::Tensor& by) {
  std::vector<int64_t> axes{0};
  for (int64_t i = 2; i < by.ndim(); i++) axes.push_back(i);
  return by.sum(axes);
});

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const MaybeTensor& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                       bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  Convolution conv(weight, stride, padding, dilation, transposed, output_padding, groups);
  conv.check(input, weight);
  conv.note_order(input);
  const Ref<Value> x = wide_value(input), w = wide_value(weight);
  const Sizes shape = conv.shape_of(input.sizes(), weight.sizes());
  if (is_given(bias)) check_sizes("bias", *bias, {shape[1]});
  return give_in(is_given(bias)
                     ? call<kBiasedConvolution>({x->dtype(), shape}, conv, x, w, wide_value(*bias))
                     : call<kConvolution>({x->dtype(), shape}, conv, x, w),
                 input.scalar_type(), format_of(input, weight));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  Convolution conv(weight, stride, padding, dilation, transposed, output_padding, groups);
  conv.check(input, weight);
  conv.note_order(input);
  check_sizes("the gradient", gradient, ints(conv.shape_of(input.sizes(), weight.sizes())));
  const Ref<Value> g = wide_value(gradient);
  const c10::MemoryFormat format = format_of(input, weight);
  at::Tensor by_input, by_weight, by_bias;
  if (wanted[0]) {
    const Ref<Value> w = wide_value(weight);
    by_input = give_in(call<kConvolutionByInput>({g->dtype(), ints(input.sizes())}, conv, g, w),
                       input.scalar_type(), format);
  }
  if (wanted[1]) {
    const Ref<Value> x = wide_value(input);
    by_weight = give_in(call<kConvolutionByWeight>({g->dtype(), ints(weight.sizes())}, conv, g, x),
                        weight.scalar_type(), format);
  }
  if (wanted[2]) {
    by_bias =
        give(call<kConvolutionByBias>({g->dtype(), {gradient.size(1)}}, g), weight.scalar_type());
  }
  return {std::move(by_input), std::move(by_weight), std::move(by_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::convolution_overrideable, convolution>(m);
  native<at::_ops::convolution_backward_overrideable, convolution_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
