// Planes of zeros with elements at the places that pooling kept; channels of groups, interleaved.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using at::IntArrayRef;

template <size_t count>
std::vector<int64_t> sizes_of(const at::Tensor& self, const at::Tensor& indices, IntArrayRef size) {
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(size.size() == count, "There should be exactly ", count,
              " elements in output_size, but got ", size.size(), " elements.");
  TORCH_CHECK(self.dim() == int64_t(count) + 1 || self.dim() == int64_t(count) + 2,
              "Input to max_unpooling", count, "d should be a ", count + 1, "d or ", count + 2,
              "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  TORCH_CHECK(self.sizes() == indices.sizes(),
              "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < self.dim(); i++) {
    TORCH_CHECK(self.size(i) > 0, "max_unpooling", count, "d(): Expected input to have non-zero ",
                "size for non-batch dimensions, but got ", self.sizes(), " with dimension ", i,
                " being empty.");
  }
  std::vector<int64_t> sizes = list_of(self.sizes().slice(0, size_t(self.dim()) - count));
  sizes.insert(sizes.end(), size.begin(), size.end());
  return sizes;
}

template <size_t count>
at::Tensor& unpool_out(const at::Tensor& self, const at::Tensor& indices, IntArrayRef size,
                       at::Tensor& out) {
  const auto sizes = sizes_of<count>(self, indices, size);
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  const int64_t first = self.dim() - int64_t(count);
  const weft::Tensor x = operand(self).flatten(first);
  const weft::Tensor planes = weft::Tensor::zeros(sizes, x.dtype(), x.device()).flatten(first);
  chosen_along("max_unpool", planes, size_t(first), operand(indices).flatten(first),
               Negative::kOutOfRange)
      .write("max_unpool", read(x));
  put(out, planes.reshape(sizes));
  return out;
}
template <size_t count>
at::Tensor unpool(const at::Tensor& self, const at::Tensor& indices, IntArrayRef size) {
  at::Tensor result = empty({0}, self.scalar_type());
  unpool_out<count>(self, indices, size, result);
  return result;
}

void check_steps(IntArrayRef stride, IntArrayRef padding) {
  TORCH_CHECK(stride.size() == 3, "There should be exactly three elements (depth, height, width) ",
              "in stride, but got: ", stride.size(), " elements.");
  TORCH_CHECK(padding.size() == 3, "There should be exactly three elements (depth, height, width) ",
              "in padding, but got: ", padding.size(), " elements.");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "strides should be greater than zero, but got stride: ", stride);
}
at::Tensor& unpool3d_out(const at::Tensor& self, const at::Tensor& indices, IntArrayRef size,
                         IntArrayRef stride, IntArrayRef padding, at::Tensor& out) {
  check_steps(stride, padding);
  return unpool_out<3>(self, indices, size, out);
}
at::Tensor unpool3d(const at::Tensor& self, const at::Tensor& indices, IntArrayRef size,
                    IntArrayRef stride, IntArrayRef padding) {
  check_steps(stride, padding);
  return unpool<3>(self, indices, size);
}

at::Tensor channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with ",
              "sizes ", self.sizes());
  const int64_t channels = self.size(1);
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of ",
              "groups:", groups);
  TORCH_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ",
              channels, " channels and ", groups, " groups.");
  if (self.numel() == 0) return empty(self.sizes(), self.scalar_type());
  return give_in(read(operand(self)
                          .unflatten(1, {groups, channels / groups})
                          .transpose(1, 2)
                          .reshape(ints(self.sizes()))),
                 self.scalar_type(), self.suggest_memory_format());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::max_unpool2d, unpool<2>>(m);
  native<at::_ops::max_unpool2d_out, unpool_out<2>>(m);
  native<at::_ops::max_unpool3d, unpool3d>(m);
  native<at::_ops::max_unpool3d_out, unpool3d_out>(m);
  native<at::_ops::channel_shuffle, channel_shuffle>(m);
  native<at::_ops::native_channel_shuffle, channel_shuffle>(m);
}

}  // namespace
}  // namespace weft::pytorch
