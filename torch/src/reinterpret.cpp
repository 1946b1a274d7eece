// The bits of a Value as elements of another width.
#include "reinterpret.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

DType unsigned_of(int bytes) {
  switch (bytes) {
    case 1: return dtypes::uint8;
    case 2: return dtypes::uint16;
    case 4: return dtypes::uint32;
    default: return dtypes::uint64;
  }
}

// wide[i] >> (8 * bytes * j) is element i * parts + j.
weft::Tensor split(const weft::Tensor& wide, int bytes) {
  const int64_t parts = wide.dtype().item_bytes() / bytes;
  const weft::Tensor shifts = weft::Tensor::arange(int64_t(0), parts * 8 * bytes,
                                                   int64_t(8 * bytes), wide.dtype(), wide.device());
  const weft::Tensor shifted = wide.reshape({wide.numel(), 1}).binary(Op::SHR, shifts);
  return shifted.cast(unsigned_of(bytes)).reshape({wide.numel() * parts});
}

weft::Tensor join(const weft::Tensor& narrow, int bytes) {
  const int width = narrow.dtype().item_bytes();
  const int64_t parts = bytes / width;
  const int64_t count = (narrow.numel() + parts - 1) / parts;
  weft::Tensor padded = narrow;
  if (const int64_t missing = count * parts - narrow.numel(); missing > 0) {
    padded = narrow.pad({{0, missing}}, int64_t(0));
  }
  const weft::Tensor rows = padded.reshape({count, parts}).cast(unsigned_of(bytes));
  const weft::Tensor shifts = weft::Tensor::arange(int64_t(0), parts * 8 * width,
                                                   int64_t(8 * width), rows.dtype(), rows.device());
  return rows.binary(Op::SHL, shifts).reduce(Op::OR, std::vector<int64_t>{1});
}

}  // namespace

Ref<Value> with_width(const Ref<Value>& value, int bytes) {
  const int width = value->dtype().item_bytes();
  Ref<Value> bits = bits_as(reshaped(value, {value->numel()}), unsigned_of(width));
  if (bytes == width) return bits;
  const weft::Tensor from = tensor_of(std::move(bits));
  return read(width > bytes ? split(from, bytes) : join(from, bytes));
}

}  // namespace weft::pytorch
