// Cumulative reductions. Where loops run in order, a SCAN: one pass over memory. On a GPU in blocks
// along the axis, each reduced by a triangle, and the totals of blocks in the same way: for n
// elements and blocks of b that is n b operations and two kernels for each factor b of n.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tensor/places.h"
#include "tensor/promote.h"
#include "tensor/stored.h"
#include "tensor/term.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// Up to this many elements are one block.
constexpr int64_t kMostInOne = 64;
constexpr int64_t kBlock = 16;

Number neutral(Op op, DType dtype) {
  if (op == Op::ADD) return int64_t(0);
  if (op == Op::MUL) return int64_t(1);
  if (dtype.is_float()) return op == Op::MAX ? -HUGE_VAL : HUGE_VAL;
  const Interval range = bounds_of(dtype);
  return op == Op::MAX ? range.lo : range.hi;
}

// (i, j) -> j <= i, of size n by n
Tensor triangle(const Tensor& x, int64_t n) {
  const Tensor place = Tensor::arange(int64_t(0), n, int64_t(1), dtypes::int32, x.device());
  return place.unsqueeze(0).le(place.unsqueeze(1));
}

Axes last_axis() { return std::vector<int64_t>{-1}; }

struct Plain {
  Op op;

  Number rest(DType dtype) const { return neutral(op, dtype); }
  Tensor within(const Tensor& x) const {
    const Tensor seen =
        Tensor::where(triangle(x, x.shape().back()), x.unsqueeze(-2), rest(x.dtype()));
    return seen.reduce(op, last_axis());
  }
  Tensor join(const Tensor& x, const Tensor& before) const { return x.binary(op, before); }
};

// The running maximum comes out of the exponentials, unless it is infinite.
struct OfExponentials {
  static Number rest(DType) { return -HUGE_VAL; }
  static Tensor within(const Tensor& x) {
    const Tensor is_seen = triangle(x, x.shape().back()), row = x.unsqueeze(-2);
    const Tensor most = Tensor::where(is_seen, row, -HUGE_VAL).max(last_axis(), true).detach();
    const Tensor shift = Tensor::where(most.isinf(), 0.0, most);
    const Tensor sum = Tensor::where(is_seen, row.sub(shift), -HUGE_VAL).exp().sum(last_axis());
    return sum.log().add(shift.squeeze(-1));
  }
  static Tensor join(const Tensor& x, const Tensor& before) { return x.logaddexp(before); }
};

std::vector<std::pair<int64_t, int64_t>> on_last(const Tensor& x, int64_t before, int64_t after) {
  std::vector<std::pair<int64_t, int64_t>> pairs(x.shape().size(), {0, 0});
  pairs.back() = {before, after};
  return pairs;
}

// Along the last axis. From the last level of totals back to the elements.
template <class Kind>
Tensor scan_last(const Tensor& x, const Kind& kind) {
  std::vector<Tensor> levels;  // within blocks, the elements first
  Tensor totals = x;
  while (is_less(kMostInOne, totals.shape().back())) {
    const int64_t n = totals.shape().back(), blocks = (n + kBlock - 1) / kBlock;
    assume_quotient(n + kBlock - 1, kBlock);
    const Number rest = kind.rest(x.dtype());
    Sizes shape(totals.shape());
    shape.back() = blocks;
    shape.push_back(kBlock);
    const Tensor whole = totals.pad(on_last(totals, 0, blocks * kBlock - n), rest);
    levels.push_back(kind.within(whole.reshape(shape)));
    totals = levels.back().at({Ellipsis{}, int64_t(-1)});
  }
  Tensor result = kind.within(totals);
  for (size_t i = levels.size(); i-- > 0;) {
    const Tensor& inside = levels[i];
    // Block b comes after the total of those before it.
    const Tensor before = result.pad(on_last(result, 1, -1), kind.rest(x.dtype()));
    const Tensor joined = kind.join(inside, before.unsqueeze(-1));
    Sizes shape(joined.shape());
    shape.pop_back();
    shape.back() *= kBlock;
    const int64_t n = i == 0 ? x.shape().back() : levels[i - 1].shape()[shape.size() - 1];
    result = joined.reshape(shape).at({Ellipsis{}, Slice{.stop = n}});
  }
  return result;
}

// ---- in order

bool runs_in_order(const Tensor& x) { return device_of(x).limits().sequences; }

Tensor scan_in_order(Op op, const Tensor& given, int64_t axis, Ref<Value> factor = {}) {
  const Ref<Value> x = read(given);
  const Sizes numbers{int64_t(op), axis};
  return tensor_of(
      Value::make(Op::SCAN, x->dtype(), x->device(), x->shape(), numbers, x, std::move(factor)));
}

Tensor in_order(const Plain& kind, const Tensor& x, int64_t axis) {
  return scan_in_order(kind.op, x, axis);
}

// The sum of exponentials, of which the running maximum comes out: where it grows, what was summed
// before shrinks. In float64, as sums are held. Along the last axis one element follows the other:
// only outside of that loop are exponentials and logarithms computed side by side.
Tensor in_order(const OfExponentials&, const Tensor& x, int64_t axis) {
  const auto wide = [](const Tensor& t) { return t.cast(dtypes::float64); };
  const Tensor most = scan_in_order(Op::MAX, x.detach(), axis);
  std::vector<std::pair<int64_t, int64_t>> shifted(x.shape().size(), {0, 0});
  shifted[size_t(axis)] = {1, -1};
  const Tensor before = most.pad(shifted, -HUGE_VAL);
  const Tensor factor = Tensor::where(most.eq(before), 1.0, wide(before).sub(wide(most)).exp());
  const Tensor shift = Tensor::where(most.isinf(), 0.0, most).cast(dtypes::float64);
  const Tensor terms = wide(x).sub(shift).exp();
  const bool is_last = size_t(axis) + 1 == x.shape().size();
  const auto apart = [&](const Tensor& t) { return is_last ? stored(t) : t; };
  const Tensor sums = scan_in_order(Op::ADD, apart(terms), axis, read(apart(factor)));
  return apart(sums).log().add(shift);
}

template <class Kind>
Tensor scanned(const Kind& kind, int64_t along, const Tensor& t) {
  const Tensor x = t.ndim() == 0 ? t.reshape({1}) : t;
  if (runs_in_order(x)) return in_order(kind, x, along).reshape(t.shape());
  return scan_last(x.transpose(along, -1), kind).transpose(along, -1).reshape(t.shape());
}
constexpr auto kScan =
    row("scan", [](Op op, int64_t along, const Tensor& t) { return scanned(Plain{op}, along, t); });
constexpr auto kScanOfExponentials = row("logcumsumexp", [](int64_t along, const Tensor& t) {
  return scanned(OfExponentials{}, along, t);
});

template <const auto& kRow, class... Attributes>
Tensor scan(std::string_view what, const Tensor& given, int64_t axis, Attributes... attributes) {
  const auto along = int64_t(axis_of(what, axis, std::max<size_t>(given.view().rank(), 1)));
  if (given.numel() == 0) return given.clone();
  return call<kRow>({given.dtype(), given.shape()}, attributes..., along, given);
}

Tensor accumulate(std::string_view what, Op op, const Tensor& x, int64_t axis) {
  const ReducedDTypes types = reduced_dtypes(op, x.dtype());
  const DType held = runs_in_order(x) ? types.result : types.accumulator;
  return scan<kScan>(what, x.cast(held), axis, op).cast(types.result);
}

// An element that is the best so far is its own place; the largest place so far is the last one. A
// gradient goes to the element that was chosen.
std::pair<Tensor, Tensor> best_so_far(std::string_view what, Op op, const Tensor& given,
                                      int64_t axis) {
  const Tensor x = given.dtype().is_bool() ? given.cast(dtypes::uint8) : given;
  const Tensor best = scan<kScan>(what, x.detach(), axis, op);
  Tensor is_best = x.eq(best);
  if (x.dtype().is_float()) is_best = is_best.bitwise_or(x.isnan());
  const Tensor row = x.ndim() == 0 ? x.reshape({1}) : x;
  const size_t along = axis_of(what, axis, row.shape().size());
  const Tensor place = places_along(row, along);
  const Tensor marked = Tensor::where(is_best, place, int64_t(0)).reshape(x.shape());
  const Tensor places = scan<kScan>(what, marked, axis, Op::MAX);
  if (!read(given)->is_tracked()) return {best.cast(given.dtype()), places};
  const Tensor chosen = row.gather(int64_t(along), places.reshape(row.shape()));
  return {chosen.reshape(given.shape()), places};
}

}  // namespace

Tensor Tensor::cumsum(int64_t axis) const { return accumulate("cumsum", Op::ADD, *this, axis); }
Tensor Tensor::cumprod(int64_t axis) const { return accumulate("cumprod", Op::MUL, *this, axis); }
std::pair<Tensor, Tensor> Tensor::cummax(int64_t axis) const {
  return best_so_far("cummax", Op::MAX, *this, axis);
}
std::pair<Tensor, Tensor> Tensor::cummin(int64_t axis) const {
  return best_so_far("cummin", Op::MIN, *this, axis);
}
Tensor Tensor::logcumsumexp(int64_t axis) const {
  const DType result = real_dtype(dtype());
  return scan<kScanOfExponentials>("logcumsumexp", cast(computing_dtype(result)), axis)
      .cast(result);
}

}  // namespace weft
