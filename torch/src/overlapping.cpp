// Writes to tensors that have an element of memory more than once: each element is written at its
// place in memory, one after the other in row-major order.
#include "overlapping.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/core/TensorBase.h>
#include <c10/util/Exception.h>

#include "base/ref.h"
#include "storage.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "value/movement.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

constexpr int64_t kNowhere = -1;

// The elements of memory from the first to the last that a tensor sees.
weft::Tensor memory_of(const weft::Tensor& x) {
  const Hull hull = hull_of(x.view());
  return {x.storage(), View{x.dtype(), {hull.hi - hull.lo}, {1}, hull.lo}};
}

// Where in it each of its elements is.
weft::Tensor places_in_memory(const weft::Tensor& x) {
  const View& view = x.view();
  weft::Tensor places = weft::Tensor::zeros({}, dtypes::int64, x.device());
  for (size_t i = 0; i < view.rank(); i++) {
    if (view.shape[i] == 1 || view.strides[i] == 0) continue;
    const weft::Tensor steps = positions(weft_device(), view.shape[i], i, view.rank());
    places = places.add(steps.cast(dtypes::int64).mul(view.strides[i]));
  }
  return places.expand(view.shape);
}

void put_at(const weft::Tensor& x, const weft::Tensor& places, const weft::Tensor& value) {
  Chosen{memory_of(x), 0, 1, read(places)}.write("put", read(value));
}

}  // namespace

Ref<Value> for_each_once(Ref<Value> value, const View& view) {
  Sizes own(view.rank() - value->shape().size(), 1);
  own.append(value->shape());
  const View each = without_expanded_axes(view);
  for (size_t i = view.rank(); i-- > 0;) {
    if (view.shape[i] == 1 || view.strides[i] != 0) continue;
    TORCH_CHECK(own[i] == 1,
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Please clone() the tensor before performing the "
                "operation.");
    own.erase(i);
  }
  if (value->shape().empty()) return value;
  return broadcast(reshaped(std::move(value), own), each.shape);
}

void put_where(const at::TensorBase& tensor, const weft::Tensor& mask, const weft::Tensor& value) {
  const weft::Tensor x = handle(tensor);
  if (!has_overlap(x.view())) {
    put(tensor, weft::Tensor::where(mask, value, x));
    return;
  }
  put_at(x, weft::Tensor::where(mask, places_in_memory(x), kNowhere), value);
}

void put_in_order(const at::TensorBase& tensor, const weft::Tensor& value) {
  const weft::Tensor x = handle(tensor);
  if (!is_expanded(x.view())) return put(tensor, value);
  put_at(x, places_in_memory(x), value);
}

Chosen in_memory(Chosen places) {
  const weft::Tensor& x = places.target;
  if (!is_expanded(x.view())) return places;
  int64_t size = 1;
  Sizes ones(places.index->shape());
  for (int64_t i = places.first; i < x.ndim(); i++) {
    if (i < places.past) {
      size *= x.shape()[size_t(i)];
    } else {
      ones.push_back(1);
    }
  }
  const weft::Tensor index = tensor_of(reshaped(places.index, ones)).cast(dtypes::int64);
  const weft::Tensor is_one = index.ge(int64_t(0)).bitwise_and(index.lt(size));
  const weft::Tensor chosen =
      Chosen{places_in_memory(x), places.first, places.past, places.index}.read();
  return {memory_of(x), 0, 1, read(weft::Tensor::where(is_one, chosen, kNowhere))};
}

}  // namespace weft::pytorch
