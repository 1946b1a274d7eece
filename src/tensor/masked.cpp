// Elements by masks: how many there are is known from the mask, or said.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

void check_size(std::string_view what, int64_t size) {
  if (size >= 0) return;
  throw ShapeError(fmt::format("[{}] the size is {}; allowed are 0 or more", what, size));
}

// The first `size` elements of x where the mask holds, both of one axis. The k-th that is true is
// at place k: a sum of all before it says so. What is false is written nowhere.
Tensor compacted(const Tensor& x, const Tensor& mask, int64_t size, Number fill_value) {
  assume_exact(x.shape());
  assume_exact({size});
  Tensor out = Tensor::full({size}, fill_value, x.dtype(), x.device());
  if (size == 0 || x.numel() == 0) return out;
  const bool is_wide = x.numel() > std::numeric_limits<int32_t>::max();
  const DType type = is_wide ? dtypes::int64 : dtypes::int32;
  const Tensor place = mask.cast(type).cumsum(0).sub(int64_t(1)).cast(type);
  const Tensor index = Tensor::where(mask, place, Tensor::full({}, int64_t(-1), type, x.device()));
  Chosen{out, 0, 1, read(index)}.write("masked_select", read(x));
  return out;
}

}  // namespace

Tensor Tensor::masked_select(const Tensor& mask, std::optional<int64_t> size,
                             Number fill_value) const {
  check_same_device("masked_select", *this, mask);
  if (!mask.dtype().is_bool()) {
    throw DTypeError(
        fmt::format("[masked_select] a mask has dtype {}; it must be bool", mask.dtype().name()));
  }
  const Sizes all = broadcast_shapes("masked_select", shape(), mask.shape());
  const Tensor x = expand(all), m = mask.expand(all);
  // One place for each element, not one for each of its axes.
  if (!size) return x.reshape({-1}).at({Index(ByTensor(m.reshape({-1})))});
  check_size("masked_select", *size);
  return compacted(x.reshape({-1}), m.reshape({-1}), *size, fill_value);
}

Tensor Tensor::nonzero(std::optional<int64_t> size, Number fill_value) const {
  const Tensor mask = dtype().is_bool() ? *this : binary(Op::CMPNE, int64_t(0));
  std::vector<Tensor> columns;
  if (!size) {
    const std::vector<std::vector<int64_t>> places = true_places(mask);
    for (const std::vector<int64_t>& at : places) {
      columns.push_back(from<int64_t>(at, {int64_t(at.size())}, device()).cast(dtypes::int32));
    }
    const int64_t count = mask.ndim() == 0 && mask.item<bool>() ? 1 : 0;
    return columns.empty() ? empty({count, 0}, dtypes::int32, device()) : stack(columns, 1);
  }
  check_size("nonzero", *size);
  if (ndim() == 0) return empty({*size, 0}, dtypes::int32, device());
  const Tensor numbers = arange(int64_t(0), numel(), int64_t(1), dtypes::int64, device());
  const Tensor flat = compacted(numbers, mask.reshape({-1}), *size, int64_t(-1));
  const Tensor is_there = flat.binary(Op::CMPLT, int64_t(0)).unary(Op::NOT);
  int64_t stride = 1;
  for (size_t axis = size_t(ndim()); axis-- > 0;) {
    const int64_t places = std::max<int64_t>(shape()[axis], 1);
    const Tensor at = flat.binary(Op::IDIV, stride).binary(Op::MOD, places);
    columns.insert(columns.begin(), where(is_there, at.cast(dtypes::int32),
                                          full({}, fill_value, dtypes::int32, device())));
    stride *= places;
  }
  return stack(columns, 1);
}

}  // namespace weft
