// Convolutions of any rank, and their gradients, which are weft's own of the same formula.
#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

struct Convolution {
  ConvOptions options;
  bool is_transposed;

  Convolution(at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
              bool transposed, at::IntArrayRef output_padding, int64_t groups)
      : is_transposed(transposed) {
    options.groups = groups;
    options.stride = list_of(stride);
    options.padding = list_of(padding);
    options.dilation = list_of(dilation);
    if (transposed) options.output_padding = list_of(output_padding);
  }

  weft::Tensor of(const weft::Tensor& x, const weft::Tensor& weight,
                  const std::optional<weft::Tensor>& bias = {}) const {
    return is_transposed ? x.conv_transpose2d(weight, bias, options)
                         : x.conv2d(weight, bias, options);
  }
};

// Channels are last in the result where they are in one of both.
c10::MemoryFormat format_of(const at::Tensor& a, const at::Tensor& b) {
  const c10::MemoryFormat first = a.suggest_memory_format();
  return first != c10::MemoryFormat::Contiguous ? first : b.suggest_memory_format();
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const MaybeTensor& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                       bool transposed, at::IntArrayRef output_padding, int64_t groups) {
  const Convolution conv(stride, padding, dilation, transposed, output_padding, groups);
  return give_in(conv.of(wide_operand(input), wide_operand(weight), wide_operand(bias)),
                 input.scalar_type(), format_of(input, weight));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  const Convolution conv(stride, padding, dilation, transposed, output_padding, groups);
  const weft::Tensor g = wide_operand(gradient), x = wide_operand(input), w = wide_operand(weight);
  const c10::MemoryFormat format = format_of(input, weight);
  at::Tensor by_input, by_weight, by_bias;
  if (wanted[0]) {
    weft::Tensor by = pulled_back(input.sizes(), g, [&](const auto& t) { return conv.of(t, w); });
    by_input = give_in(std::move(by), input.scalar_type(), format);
  }
  if (wanted[1]) {
    weft::Tensor by = pulled_back(weight.sizes(), g, [&](const auto& t) { return conv.of(x, t); });
    by_weight = give_in(std::move(by), weight.scalar_type(), format);
  }
  if (wanted[2]) {
    std::vector<int64_t> axes{0};
    for (int64_t i = 2; i < gradient.dim(); i++) axes.push_back(i);
    by_bias = give(g.sum(axes), weight.scalar_type());
  }
  return {std::move(by_input), std::move(by_weight), std::move(by_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::convolution_overrideable, convolution>(m);
  native<at::_ops::convolution_backward_overrideable, convolution_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
