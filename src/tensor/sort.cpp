// Sorting: by counting what comes before each element where there are few, else by digits
// (radix_sort.h). On a GPU by Batcher's bitonic network, whose steps compare every element with a
// partner that movement ops find.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "runtime/device.h"
#include "tensor/calls.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/places.h"
#include "tensor/radix_sort.h"
#include "tensor/stored.h"
#include "value/number_watch.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

Axes last_axis() { return std::vector<int64_t>{-1}; }

// ----------------------------------------------------------------------------------------- the
// order

// An unsigned integer of 32 or 64 bits with the order of the elements: zeros are equal, and so are
// NaNs, which are larger than all.
Tensor key_of(const Tensor& given, bool descending) {
  Tensor x = given;
  if (x.dtype().is_float() && x.dtype().bits() < 32) x = x.cast(dtypes::float32);
  if (!x.dtype().is_float() && x.dtype().bits() < 32) x = x.cast(dtypes::int32);
  const bool is_wide = x.dtype().bits() == 64;
  const DType dtype = is_wide ? dtypes::uint64 : dtypes::uint32;
  const int64_t top = is_wide ? INT64_MIN : int64_t(1) << 31;
  const auto constant = [&](int64_t bits) {
    return tensor_of(wrapped_constant(device_of(x), dtype, bits));
  };
  Tensor key = x;
  if (x.dtype().is_float()) {
    const Tensor bits = x.add(0.0).bitcast(dtype);  // -0 + 0 is 0
    const Tensor is_negative = bits.bitwise_and(constant(top)).ne(int64_t(0));
    key = Tensor::where(is_negative, bits.bitwise_not(), bits.bitwise_xor(constant(top)));
    key = Tensor::where(x.isnan(), constant(-1), key);
  } else if (x.dtype().is_signed()) {
    key = x.bitcast(dtype).bitwise_xor(constant(top));
  }
  return descending ? key.bitwise_not() : key;
}

// ------------------------------------------------------------------------------------- by counting

// Up to this many elements: counting compares each with each, which a GPU does side by side.
constexpr int64_t kMostCounted = 64, kMostCountedInOrder = 16;

// The places of elements in order, along the last axis: element i goes after all that are less, and
// those before it that are equal.
Tensor places_by_counting(const Tensor& key) {
  const size_t rank = key.shape().size();
  const Tensor other = key.unsqueeze(-2), own = key.unsqueeze(-1);
  const Tensor place = places_along(key, rank - 1);
  const Tensor is_earlier = place.unsqueeze(-2).lt(place.unsqueeze(-1));
  const Tensor is_before = other.lt(own).bitwise_or(other.eq(own).bitwise_and(is_earlier));
  const Tensor target = is_before.sum(last_axis());  // of each element
  const Tensor is_here = target.unsqueeze(-2).eq(place.unsqueeze(-1));
  return Tensor::where(is_here, place.unsqueeze(-2), int64_t(0)).sum(last_axis());
}

// -------------------------------------------------------------------------------------- by a
// network

// What the network sorts: keys of 32 bits with their places in one word, or both side by side.
struct Items {
  Tensor key;
  std::optional<Tensor> place;
};

template <class Move>
Items moved_by(const Items& items, Move&& move) {
  Items result{move(items.key), {}};
  if (items.place) result.place = move(*items.place);
  return result;
}

// The lesser of each element and its partner where `is_first` holds, else the greater.
Items compare(const Items& own, const Items& partner, const Tensor& is_first) {
  if (!own.place) {
    const Tensor least = own.key.minimum(partner.key), most = own.key.maximum(partner.key);
    return {Tensor::where(is_first, least, most), {}};
  }
  const Tensor is_less =
      own.key.lt(partner.key)
          .bitwise_or(own.key.eq(partner.key).bitwise_and(own.place->lt(*partner.place)));
  const Tensor is_kept = is_less.eq(is_first);
  return {Tensor::where(is_kept, own.key, partner.key),
          Tensor::where(is_kept, *own.place, *partner.place)};
}

// Elements i and size - 1 - i of each block.
Items compare_mirrored(const Items& items, int64_t block) {
  const Sizes whole(items.key.shape());
  Sizes shape = whole;
  shape.back() /= block;
  shape.push_back(block);
  const Items own = moved_by(items, [&](const Tensor& t) { return t.reshape(shape); });
  const Items partner = moved_by(own, [](const Tensor& t) { return t.flip({-1}); });
  const Tensor is_first = places_along(own.key, shape.size() - 1).lt(block / 2);
  return moved_by(compare(own, partner, is_first),
                  [&](const Tensor& t) { return t.reshape(whole); });
}

// Elements i and i + distance of each block of twice the distance.
Items compare_distant(const Items& items, int64_t distance) {
  const Sizes whole(items.key.shape());
  Sizes shape = whole;
  shape.back() /= 2 * distance;
  shape.push_back(2);
  shape.push_back(distance);
  const Items own = moved_by(items, [&](const Tensor& t) { return t.reshape(shape); });
  const Items partner = moved_by(own, [](const Tensor& t) { return t.flip({-2}); });
  const Tensor is_first = places_along(own.key, shape.size() - 2).lt(int64_t(1));
  return moved_by(compare(own, partner, is_first),
                  [&](const Tensor& t) { return t.reshape(whole); });
}

// Steps of the network that one kernel does: each doubles what an element reads.
constexpr int64_t kStepsInOne = 3;

Items run_network(Items items) {
  const int64_t count = items.key.shape().back();
  for (int64_t block = 2; block <= count; block *= 2) {
    items = compare_mirrored(items, block);
    for (int64_t distance = block / 4; distance >= 1; distance /= 2) {
      // Counted from the end, so that blocks share their last kernels.
      if (std::countr_zero(uint64_t(distance)) % kStepsInOne == kStepsInOne - 1) {
        items = moved_by(items, stored);
      }
      items = compare_distant(items, distance);
    }
    items = moved_by(items, stored);
  }
  return items;
}

// The count is rounded up to a power of two; what is added has the largest key, and later places.
Tensor places_by_network(const Tensor& key) {
  const int64_t count = key.shape().back(), padded = int64_t(std::bit_ceil(uint64_t(count)));
  std::vector<std::pair<int64_t, int64_t>> after(key.shape().size(), {0, 0});
  after.back().second = padded - count;
  const Tensor whole = key.bitwise_not().pad(after, int64_t(0)).bitwise_not();
  const Tensor place = places_along(whole, whole.shape().size() - 1).expand(whole.shape());
  Tensor sorted = place;
  if (key.dtype().bits() == 32) {
    const Tensor word = whole.cast(dtypes::uint64).lshift(int64_t(32));
    const Items items = run_network({word.bitwise_or(place.cast(dtypes::uint64)), {}});
    sorted = items.key.cast(dtypes::uint32).cast(dtypes::int32);
  } else {
    sorted = *run_network({whole, place}).place;
  }
  return sorted.at({Ellipsis{}, Slice{.stop = count}});
}

// A scalar is a row of one element.
Tensor row_of(const Tensor& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }

// Of the last axis, the first ones in order.
Tensor places_of_first(bool descending, int64_t first, const Tensor& rows) {
  const Tensor key = key_of(rows, descending);
  const int64_t count = key.shape().back();
  const bool runs_in_order = device_of(rows).limits().sequences;
  const int64_t counted = runs_in_order ? kMostCountedInOrder : kMostCounted;
  const bool is_counted = !is_less(counted, count);
  if (first == 1) return key.argmin(-1, true).cast(dtypes::int32);
  if (!is_counted) assume_exact(key.shape());
  if (runs_in_order && !is_counted && is_selection(key, first)) {
    return first_places_by_radix(key, first).cast(dtypes::int32);
  }
  const Tensor all = is_counted      ? places_by_counting(key)
                     : runs_in_order ? places_by_radix(key)
                                     : places_by_network(key);
  const Tensor places = first == count ? all : all.at({Ellipsis{}, Slice{.stop = first}});
  return places.cast(dtypes::int32);
}
constexpr auto kSort = row<places_of_first>("sort");

// The places of a row's elements in order, along an axis.
Tensor places_in_order(const Tensor& row, int64_t axis, bool descending,
                       std::optional<int64_t> first = {}) {
  const int64_t size = row.shape()[size_t(axis)], asked = first.value_or(size);
  Sizes shape(row.shape());
  shape[size_t(axis)] = asked;
  if (row.numel() == 0 || asked == 0) return Tensor::empty(shape, dtypes::int32, row.device());
  const Tensor last = row.transpose(axis, -1);
  const int64_t count = last.shape().back();
  Sizes of_places(last.shape());
  of_places.back() = asked;
  const Ref<Value> places = call<kSort>({dtypes::int32, of_places, values_of_order(count)},
                                        descending, asked, read(last));
  return tensor_of(within(places, count)).transpose(axis, -1);
}

// The first `count` of them, and the values there; without a count all.
std::pair<Tensor, Tensor> sorted(std::string_view what, const Tensor& x, int64_t dim,
                                 bool descending, std::optional<int64_t> count) {
  const Tensor row = row_of(x);
  const size_t axis = axis_of(what, dim, row.shape().size());
  const int64_t size = row.shape()[axis];
  if (count && (*count < 0 || *count > size)) {
    throw ShapeError(fmt::format("[{}] k is {}; allowed are 0 to {}", what, *count, size));
  }
  if (count) assume_at_most(*count, size);
  const Tensor places = places_in_order(row, int64_t(axis), descending, count);
  const Tensor values = row.gather(int64_t(axis), places);
  if (x.ndim() == 0 && places.numel() == 1) return {values.reshape({}), places.reshape({})};
  return {values, places};
}

}  // namespace

int64_t values_of_order(int64_t count) {
  if (count <= kMostCounted) return 40;
  const auto blocks = int64_t(std::bit_width(uint64_t(count) - 1));
  return 40 + blocks * (blocks + 1) / 2 * 12;
}

Tensor place_of_rank(const Tensor& x, int64_t axis, const Tensor& rank) {
  if (device_of(x).limits().sequences && x.numel() > 0) {
    const Tensor key = key_of(x.transpose(axis, -1), false);
    if (is_less(kMostCountedInOrder, key.shape().back())) {
      assume_exact(key.shape());
      if (is_counted_rank(key)) {
        return place_of_rank_by_counting(key, rank.transpose(axis, -1)).transpose(axis, -1);
      }
    }
  }
  return x.argsort(axis).gather(axis, rank);
}

Tensor Tensor::argsort(int64_t dim, bool descending) const {
  const Tensor row = row_of(*this);
  const auto axis = int64_t(axis_of("argsort", dim, row.shape().size()));
  return places_in_order(row, axis, descending).reshape(shape());
}

std::pair<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return sorted("sort", *this, dim, descending, {});
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest) const {
  return sorted("topk", *this, dim, largest, k);
}

}  // namespace weft
