// Elements of planes at places that a grid names, between those that are there.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/native/GridSamplerUtils.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using at::native::GridSamplerInterpolation;
using at::native::GridSamplerPadding;

struct Sampler {
  GridSamplerInterpolation way;
  GridSamplerPadding padding;
  bool align_corners;

  auto fields() { return std::tie(way, padding, align_corners); }

  // From -1 to 1 to places of an axis.
  weft::Tensor unnormalized(const weft::Tensor& x, int64_t size) const {
    if (align_corners) return (x + 1.0) * (double(size - 1) / 2);
    return ((x + 1.0) * double(size) - 1.0) * 0.5;
  }
  // Mirrored at both ends until it is between them.
  weft::Tensor reflected(const weft::Tensor& x, int64_t size) const {
    const double low = align_corners ? 0 : -0.5;
    const double span = align_corners ? double(size - 1) : double(size);
    if (span == 0) return x * 0.0;
    const weft::Tensor from = (x - low).abs();
    const weft::Tensor flips = (from.detach() * (1 / span)).floor();
    const weft::Tensor extra = from - flips * span;
    const weft::Tensor is_even = flips.fmod(2.0).eq(0.0);
    return weft::Tensor::where(is_even, extra + low, (extra - span).neg() + low);
  }
  weft::Tensor padded(const weft::Tensor& x, int64_t size) const {
    if (padding == GridSamplerPadding::Zeros) return x;
    const weft::Tensor y = padding == GridSamplerPadding::Reflection ? reflected(x, size) : x;
    const double last = double(size - 1);
    // An end itself has no gradient.
    const weft::Tensor inside = y.gt(0.0).bitwise_and(y.lt(last));
    return weft::Tensor::where(inside, y, y.detach().clamp(0.0, last));
  }

  // Of (n, c, h, w), the element of each place (n, oh, ow), 0 outside: (n, c, oh, ow).
  static weft::Tensor at(const weft::Tensor& planes, const weft::Tensor& y, const weft::Tensor& x) {
    const int64_t n = planes.shape()[0], c = planes.shape()[1], height = planes.shape()[2],
                  width = planes.shape()[3];
    const weft::Tensor inside = x.ge(0.0)
                                    .bitwise_and(x.le(double(width - 1)))
                                    .bitwise_and(y.ge(0.0))
                                    .bitwise_and(y.le(double(height - 1)));
    const weft::Tensor row = y.clamp(0.0, double(height - 1)).cast(dtypes::int64);
    const weft::Tensor column = x.clamp(0.0, double(width - 1)).cast(dtypes::int64);
    const int64_t oh = y.shape()[1], ow = y.shape()[2];
    const weft::Tensor index =
        (row * width + column).reshape({n, 1, oh * ow}).expand({n, c, oh * ow});
    const weft::Tensor values =
        planes.reshape({n, c, height * width}).gather(2, index).reshape({n, c, oh, ow});
    return weft::Tensor::where(inside.unsqueeze(1), values, 0.0);
  }
  weft::Tensor at_padded(const weft::Tensor& planes, const weft::Tensor& y,
                         const weft::Tensor& x) const {
    return at(planes, padded(y, planes.shape()[2]), padded(x, planes.shape()[3]));
  }

  static std::array<weft::Tensor, 4> cubic_weights(const weft::Tensor& t) {
    constexpr double a = -0.75;
    const auto near = [&](const weft::Tensor& u) {
      return ((u * (a + 2) - (a + 3)) * u) * u + 1.0;
    };
    const auto far = [&](const weft::Tensor& u) {
      return ((u * a - 5 * a) * u + 8 * a) * u - 4 * a;
    };
    return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  }

  weft::Tensor operator()(const weft::Tensor& planes, const weft::Tensor& grid) const {
    const int64_t height = planes.shape()[2], width = planes.shape()[3];
    weft::Tensor x = unnormalized(grid.at({Ellipsis(), int64_t(0)}), width);
    weft::Tensor y = unnormalized(grid.at({Ellipsis(), int64_t(1)}), height);
    if (way == GridSamplerInterpolation::Bicubic) return cubic(planes, y, x);
    x = padded(x, width);
    y = padded(y, height);
    if (way == GridSamplerInterpolation::Nearest) {
      return at(planes, y.detach().round(), x.detach().round());
    }
    const weft::Tensor left = x.detach().floor(), top = y.detach().floor();
    const weft::Tensor right = left + 1.0, bottom = top + 1.0;
    const weft::Tensor to_right = x - left, to_bottom = y - top;
    const weft::Tensor to_left = right - x, to_top = bottom - y;
    const auto part = [&](const weft::Tensor& row, const weft::Tensor& column,
                          const weft::Tensor& weight) {
      return at(planes, row, column) * weight.unsqueeze(1);
    };
    return part(top, left, to_top * to_left) + part(top, right, to_top * to_right) +
           part(bottom, left, to_bottom * to_left) + part(bottom, right, to_bottom * to_right);
  }

  weft::Tensor cubic(const weft::Tensor& planes, const weft::Tensor& y,
                     const weft::Tensor& x) const {
    const weft::Tensor left = x.detach().floor(), top = y.detach().floor();
    const auto across = cubic_weights(x - left), down = cubic_weights(y - top);
    std::optional<weft::Tensor> sum;
    for (int64_t i = 0; i < 4; i++) {
      std::optional<weft::Tensor> row;
      for (int64_t j = 0; j < 4; j++) {
        const weft::Tensor part = at_padded(planes, top + double(i - 1), left + double(j - 1)) *
                                  across[size_t(j)].unsqueeze(1);
        row = row ? *row + part : part;
      }
      const weft::Tensor part = *row * down[size_t(i)].unsqueeze(1);
      sum = sum ? *sum + part : part;
    }
    return *sum;
  }
};

Sampler sampler_of(int64_t way, int64_t padding, bool align_corners) {
  return {GridSamplerInterpolation(way), GridSamplerPadding(padding), align_corners};
}

constexpr auto kGridSample =
    row("grid_sample", [](const Sampler& sampler, const weft::Tensor& planes,
                          const weft::Tensor& grid) { return sampler(planes, grid); });
constexpr auto kGridSampleByInput =
    row("grid_sample_by_input",
        [](Ints shape, const Sampler& sampler, const weft::Tensor& by, const weft::Tensor& grid) {
          return pulled_back(ints(Sizes(shape)), by,
                             [&](const weft::Tensor& x) { return sampler(x, grid); });
        });
constexpr auto kGridSampleByGrid =
    row("grid_sample_by_grid", [](const Sampler& sampler, const weft::Tensor& by,
                                  const weft::Tensor& planes, const weft::Tensor& grid) {
      return pulled_back(std::array{grid}, by,
                         [&](const auto& leaves) { return sampler(planes, leaves[0]); })[0];
    });

at::Tensor grid_sample(const at::Tensor& input, const at::Tensor& grid, int64_t way,
                       int64_t padding, bool align_corners) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_2d(input, grid);
  at::Tensor result =
      empty({input.size(0), input.size(1), grid.size(1), grid.size(2)}, input.scalar_type());
  if (result.numel() == 0) return result;
  const weft::Tensor x = wide_operand(input);
  put(result, call<kGridSample>({x.dtype(), ints(result.sizes())},
                                sampler_of(way, padding, align_corners), x, wide_operand(grid)));
  return result;
}

std::tuple<at::Tensor, at::Tensor> grid_sample_backward(const at::Tensor& gradient,
                                                        const at::Tensor& input,
                                                        const at::Tensor& grid, int64_t way,
                                                        int64_t padding, bool align_corners,
                                                        std::array<bool, 2> wanted) {
  at::native::check_grid_sampler_common(input, grid);
  at::native::check_grid_sampler_2d(input, grid);
  const int64_t sizes[] = {input.size(0), input.size(1), grid.size(1), grid.size(2)};
  check_sizes("the gradient", gradient, sizes);
  const Sampler sampler = sampler_of(way, padding, align_corners);
  const weft::Tensor g = wide_operand(gradient), planes = wide_operand(input);
  const weft::Tensor places = wide_operand(grid);
  at::Tensor by_input, by_grid = empty(grid.sizes(), grid.scalar_type());
  if (wanted[0]) {
    by_input = give(call<kGridSampleByInput>({g.dtype(), planes.shape()}, sampler, g, places),
                    input.scalar_type());
  }
  if (way == int64_t(GridSamplerInterpolation::Nearest)) {
    put(by_grid, number(0, grid.scalar_type()));
  } else if (wanted[1]) {
    put(by_grid,
        call<kGridSampleByGrid>({places.dtype(), places.shape()}, sampler, g, planes, places));
  }
  return {std::move(by_input), std::move(by_grid)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::grid_sampler_2d, grid_sample>(m);
  native<at::_ops::grid_sampler_2d_backward, grid_sample_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
