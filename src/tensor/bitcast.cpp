// The bits of a tensor in another dtype: a view for one of the same width, else its elements taken
// apart or put together along the last axis, the low bits first.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

DType unsigned_of_bytes(int bytes) {
  constexpr DType unsigneds[] = {dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64};
  return unsigneds[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

Sizes with_last(Sizes shape, int64_t last) {
  shape.back() = last;
  return shape;
}

// 0, 8, 16, ... : how far each part lies from the low end of the whole.
Tensor shifts(const Tensor& x, int64_t parts, DType narrow, DType wide) {
  const int64_t step = int64_t(narrow.item_bytes()) * 8;
  return Tensor::arange(int64_t(0), parts * step, step, wide, x.device());
}

Tensor taken_apart(const Tensor& x, DType dtype) {
  const DType wide = unsigned_of_bytes(x.dtype().item_bytes());
  const DType narrow = unsigned_of_bytes(dtype.item_bytes());
  const int64_t parts = x.dtype().item_bytes() / dtype.item_bytes();
  const Sizes shape(x.shape());
  const Tensor bits = x.bitcast(wide).unsqueeze(-1);
  const Tensor each = bits.binary(Op::SHR, shifts(x, parts, narrow, wide)).cast(narrow);
  return each.reshape(with_last(shape, shape.back() * parts)).bitcast(dtype);
}

Tensor put_together(const Tensor& x, DType dtype) {
  const DType narrow = unsigned_of_bytes(x.dtype().item_bytes());
  const DType wide = unsigned_of_bytes(dtype.item_bytes());
  const int64_t parts = dtype.item_bytes() / x.dtype().item_bytes();
  const Sizes shape(x.shape());
  Sizes split = with_last(shape, shape.back() / parts);
  split.push_back(parts);
  const Tensor bits = x.bitcast(narrow).reshape(split).cast(wide);
  const Tensor each = bits.binary(Op::SHL, shifts(x, parts, narrow, wide));
  return each.reduce(Op::OR, std::vector<int64_t>{-1}).bitcast(dtype);
}

}  // namespace

Tensor Tensor::bitcast(DType dtype) const {
  check_element_dtype("bitcast", dtype);
  const DType from = this->dtype();
  const int64_t have = from.item_bytes(), want = dtype.item_bytes();
  if (have == want) {
    View view = view_;
    view.dtype = dtype;
    return viewed(std::move(view));
  }
  const bool fits = ndim() > 0 && (have > want || shape()[size_t(ndim() - 1)] * have % want == 0);
  if (!fits || from.is_bool() || dtype.is_bool()) {
    throw DTypeError(
        fmt::format("[bitcast] cannot view the bits of {} {} as {}: {} bits against {}",
                    from.name(), text_of_shape(shape()), dtype.name(), have * 8, want * 8));
  }
  return have > want ? taken_apart(*this, dtype) : put_together(*this, dtype);
}

}  // namespace weft
