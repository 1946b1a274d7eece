// Tensor's pooling and convolution.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include "tensor.h"
#include "weft/error.h"
#include "weft/options.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

std::vector<int64_t> list_of(nb::handle value, std::string_view what) {
  return *axes_of(value, what);
}

// An int is a square of them.
std::vector<int64_t> kernel_of(nb::handle value, std::string_view what) {
  std::vector<int64_t> sizes = list_of(value, what);
  if (PyIndex_Check(value.ptr())) sizes.push_back(sizes[0]);
  return sizes;
}

PoolOptions pool_options(std::string_view what, nb::handle kernel_size, nb::handle stride,
                         nb::handle dilation, nb::handle padding, bool ceil_mode) {
  return {.kernel_size = kernel_of(kernel_size, what),
          .stride = stride.is_none() ? std::vector<int64_t>() : list_of(stride, what),
          .dilation = list_of(dilation, what),
          .padding = list_of(padding, what),
          .ceil_mode = ceil_mode};
}

Tensor avg_pool(const Tensor& x, nb::handle kernel_size, nb::handle stride, nb::handle dilation,
                nb::handle padding, bool ceil_mode, bool count_include_pad) {
  PoolOptions options =
      pool_options("avg_pool2d", kernel_size, stride, dilation, padding, ceil_mode);
  options.count_include_pad = count_include_pad;
  return x.avg_pool2d(options);
}

nb::object max_pool(const Tensor& x, nb::handle kernel_size, nb::handle stride, nb::handle dilation,
                    nb::handle padding, bool ceil_mode, bool return_indices) {
  const PoolOptions options =
      pool_options("max_pool2d", kernel_size, stride, dilation, padding, ceil_mode);
  if (!return_indices) return nb::cast(x.max_pool2d(options));
  const auto [largest, indices] = x.max_pool2d_with_indices(options);
  return nb::make_tuple(largest, indices);
}

Tensor max_unpool(const Tensor& x, const Tensor& indices, nb::handle kernel_size, nb::handle stride,
                  nb::handle dilation, nb::handle padding, nb::handle output_size) {
  const PoolOptions options =
      pool_options("max_unpool2d", kernel_size, stride, dilation, padding, false);
  return x.max_unpool2d(indices, options, axes_of(output_size, "max_unpool2d"));
}

Tensor interpolate(const Tensor& x, nb::handle size, std::string_view mode, bool align_corners) {
  const std::vector<int64_t> sizes = list_of(size, "interpolate");
  const auto by = [&](Interpolation i) { return x.interpolate(sizes, i, align_corners); };
  if (mode == "linear" || mode == "bilinear" || mode == "trilinear") {
    return by(Interpolation::kLinear);
  }
  if (mode == "nearest") return by(Interpolation::kNearest);
  if (mode == "nearest-exact") return by(Interpolation::kNearestExact);
  if (mode == "cubic" || mode == "bicubic") return by(Interpolation::kCubic);
  throw ShapeError(fmt::format(
      "[interpolate] mode '{}'; there are linear, nearest, nearest-exact and cubic", mode));
}

std::optional<Tensor> bias_of(nb::handle value, const Tensor& x, std::string_view what) {
  if (value.is_none()) return {};
  if (const Tensor* tensor = as_tensor(value)) return *tensor;
  if (std::optional<Tensor> array = as_array(value, x.device())) return array;
  no_operand(what, value);
}

Tensor conv(const Tensor& x, const Tensor& weight, nb::handle bias, int64_t groups,
            nb::handle stride, nb::handle dilation, nb::handle padding, nb::handle dtype) {
  return x.conv2d(weight, bias_of(bias, x, "conv2d"),
                  {.groups = groups,
                   .stride = list_of(stride, "conv2d"),
                   .dilation = list_of(dilation, "conv2d"),
                   .padding = list_of(padding, "conv2d"),
                   .dtype = optional_dtype_of(dtype)});
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, nb::handle bias, int64_t groups,
                      nb::handle stride, nb::handle dilation, nb::handle padding,
                      nb::handle output_padding) {
  return x.conv_transpose2d(weight, bias_of(bias, x, "conv_transpose2d"),
                            {.groups = groups,
                             .stride = list_of(stride, "conv_transpose2d"),
                             .dilation = list_of(dilation, "conv_transpose2d"),
                             .padding = list_of(padding, "conv_transpose2d"),
                             .output_padding = list_of(output_padding, "conv_transpose2d")});
}

#define WEFT_POOL_ARGUMENTS                                        \
  "self, kernel_size: " WEFT_SIZES " = (2, 2), stride: " WEFT_AXES \
  " = None, dilation: " WEFT_SIZES " = 1, padding: " WEFT_SIZES    \
  " = 0, ceil_mode: bool = "                                       \
  "False, "

void bind_pools(TensorClass& c) {
  c.def("avg_pool2d", avg_pool, nb::arg("kernel_size") = nb::make_tuple(2, 2),
        nb::arg("stride") = nb::none(), nb::arg("dilation") = 1, nb::arg("padding") = 0,
        nb::arg("ceil_mode") = false, nb::arg("count_include_pad") = true,
        nb::sig("def avg_pool2d(" WEFT_POOL_ARGUMENTS "count_include_pad: bool = True) -> Tensor"),
        R"(Means of windows along the last axes, as many as kernel_size has numbers.

An int as kernel_size is (n, n), and stride is the kernel's size where it is None. Padding is a number
for all sides, one per axis, or two per axis from the last axis on.

>>> Tensor.arange(16).reshape(1, 1, 4, 4).avg_pool2d().tolist()
[[[[2.5, 4.5], [10.5, 12.5]]]]
)")
      .def("max_pool2d", max_pool, nb::arg("kernel_size") = nb::make_tuple(2, 2),
           nb::arg("stride") = nb::none(), nb::arg("dilation") = 1, nb::arg("padding") = 0,
           nb::arg("ceil_mode") = false, nb::arg("return_indices") = false,
           nb::sig("def max_pool2d(" WEFT_POOL_ARGUMENTS
                   "return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]"),
           R"(The largest of windows along the last axes, and on demand where it is in its plane.

>>> x = Tensor.arange(16).reshape(1, 1, 4, 4)
>>> x.max_pool2d(3, stride=1).tolist()
[[[[10, 11], [14, 15]]]]
>>> largest, where = x.max_pool2d(return_indices=True)
>>> where.tolist()
[[[[5, 7], [13, 15]]]]
)")
      .def("max_unpool2d", max_unpool, nb::arg("indices"),
           nb::arg("kernel_size") = nb::make_tuple(2, 2), nb::arg("stride") = nb::none(),
           nb::arg("dilation") = 1, nb::arg("padding") = 0, nb::arg("output_size") = nb::none(),
           nb::sig("def max_unpool2d(self, indices: Tensor, kernel_size: " WEFT_SIZES
                   " = (2, 2), stride: " WEFT_AXES " = None, dilation: " WEFT_SIZES
                   " = 1, padding: " WEFT_SIZES " = 0, output_size: " WEFT_AXES
                   " = None) -> Tensor"),
           R"(Elements at the places that max_pool2d found them at; all else is 0.

The planes have the sizes at the end of `output_size`, or the smallest that max_pool2d makes as many
elements of.

>>> largest, where = Tensor([[[[1, 2], [4, 3]]]]).max_pool2d(return_indices=True)
>>> largest.max_unpool2d(where).tolist()
[[[[0, 0], [4, 0]]]]
)")
      .def(
          "interpolate", interpolate, nb::arg("size"), nb::arg("mode") = "linear",
          nb::arg("align_corners") = false,
          nb::sig("def interpolate(self, size: " WEFT_SIZES
                  ", mode: str = 'linear', align_corners: bool = False) -> Tensor"),
          R"(The last axes at other sizes: 'linear', 'nearest', 'nearest-exact' or 'cubic' between elements.

As many axes as `size` has numbers; PyTorch's names for 2 and 3 axes ('bilinear', ...) are taken too.

>>> Tensor([[1.0, 2.0]]).interpolate((4,)).tolist()
[[1.0, 1.25, 1.75, 2.0]]
>>> Tensor([[1, 2]]).interpolate((2, 4), mode="nearest").tolist()
[[1, 1, 2, 2], [1, 1, 2, 2]]
)");
}

}  // namespace

void bind_tensor_windows(TensorClass& c) {
  bind_pools(c);
  c.def(
       "conv2d", conv, nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("groups") = 1,
       nb::arg("stride") = 1, nb::arg("dilation") = 1, nb::arg("padding") = 0,
       nb::arg("dtype") = nb::none(),
       nb::sig(
           "def conv2d(self, weight: Tensor, bias: Tensor | None = None, groups: int = 1, stride: "
           "" WEFT_SIZES " = 1, dilation: " WEFT_SIZES " = 1, padding: " WEFT_SIZES
           " = 0, dtype: " WEFT_DTYPE " = None) -> Tensor"),
       R"(Convolution of (n, inputs, ...) with (outputs, inputs / groups, ...) along the other axes.

The weight says how many these are: one, two, three or more. Padding is a number for all sides, one
per axis, or two per axis from the last axis on.

>>> x = Tensor.arange(9).reshape(1, 1, 3, 3)
>>> x.conv2d(Tensor.ones(1, 1, 2, 2)).tolist()
[[[[8.0, 12.0], [20.0, 24.0]]]]
>>> x[0].conv2d(Tensor.ones(1, 1, 2), padding=(1, 0)).shape
Traceback (most recent call last):
weft.errors.ShapeError: [conv2d] (1,3,3) with a weight of (1,1,2) in 1 groups: channels do not fit
)")
      .def(
          "conv_transpose2d", conv_transpose, nb::arg("weight"), nb::arg("bias") = nb::none(),
          nb::arg("groups") = 1, nb::arg("stride") = 1, nb::arg("dilation") = 1,
          nb::arg("padding") = 0, nb::arg("output_padding") = 0,
          nb::sig(
              "def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, groups: int "
              "= 1, stride: " WEFT_SIZES " = 1, dilation: " WEFT_SIZES " = 1, padding: " WEFT_SIZES
              " = 0, output_padding: " WEFT_SIZES " = 0) -> Tensor"),
          R"(The gradient of a convolution as an operation: the weight is (inputs, outputs / groups, ...).

>>> Tensor([[[1, 2]]]).conv_transpose2d(Tensor([[[1, 10]]]), stride=2).tolist()
[[[1, 10, 2, 20]]]
)");
}

}  // namespace weft::python
