// Integers to places, places to one index, and reads and writes by it.
#include "tensor/chosen.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "engine/foreign_memory.h"
#include "engine/index_checks.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/array_bytes.h"
#include "runtime/device.h"
#include "tensor/index_bounds.h"
#include "tensor/operand.h"
#include "value/call.h"
#include "value/movement.h"
#include "value/number_watch.h"
#include "value/row.h"
#include "value/storage.h"
#include "value/storage_watch.h"
#include "value/value.h"
#include "weft/gradient.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

constexpr int64_t kMostInt32 = std::numeric_limits<int32_t>::max();

Ref<Value> number(Device& device, DType dtype, int64_t n) {
  return wrapped_constant(device, dtype, n);
}

Ref<Value> both(Op op, const Ref<Value>& a, const Ref<Value>& b) {
  const Sizes shape(a->shape().empty() ? b->shape() : a->shape());
  return apply(op, yields_bool(op) ? dtypes::bool_ : a->dtype(), shape, a, b);
}

bool is_at_hand(const Tensor& x) {
  return !is_opening_call() && storage_watch() == nullptr && device_of(x).has_host_memory() &&
         x.is_realized();
}

// Whether the least and the greatest of integers in memory are in range; then what that takes for
// granted of sizes is noted. One pass, for those that are many.
template <class Int>
bool are_all_in(std::span<const std::byte> bytes, int64_t size, Negative negative) {
  Int least = std::numeric_limits<Int>::max(), greatest = std::numeric_limits<Int>::lowest();
  for (size_t i = 0; i < bytes.size(); i += sizeof(Int)) {
    Int at;
    std::memcpy(&at, bytes.data() + i, sizeof(Int));
    least = std::min(least, at), greatest = std::max(greatest, at);
  }
  if (bytes.empty()) return true;
  const auto lo = int64_t(least), hi = int64_t(greatest);
  if (lo < (negative == Negative::kOutOfRange ? 0 : -size) || hi >= size) return false;
  assume_at_most(std::max(lo < 0 ? -lo : 0, hi + 1), size);
  return true;
}

bool are_in_range(const Tensor& index, int64_t size, Negative negative) {
  const std::vector<std::byte> bytes = index.bytes();
  if (index.dtype() == dtypes::int64) return are_all_in<int64_t>(bytes, size, negative);
  if (index.dtype() == dtypes::int32) return are_all_in<int32_t>(bytes, size, negative);
  return false;
}

// The integers, all of which are in range.
std::vector<uint64_t> checked_values(std::string_view what, const Tensor& index, int64_t axis,
                                     int64_t size, Negative negative = Negative::kFromEnd,
                                     std::optional<int64_t> ignored = {}) {
  const bool is_unsigned = !index.dtype().is_signed();
  const DType type = index.dtype();
  std::vector<uint64_t> all = bits_of_bytes(type, index.bytes());
  for (const uint64_t bits : all) {
    const auto i = int64_t(bits);
    if (ignored && i == *ignored) continue;
    // Unsigned ones past 63 bits wrapped.
    const bool is_below = is_unsigned || negative == Negative::kOutOfRange ? i < 0 : i < -size;
    if (!is_below && i < size) {
      assume_at_most(i < 0 ? -i : i + 1, size);
      continue;
    }
    const std::string text = is_unsigned ? fmt::format("{}", uint64_t(i)) : fmt::format("{}", i);
    throw IndexError(
        fmt::format("[{}] {} is out of bounds of axis {} with size {}", what, text, axis, size));
  }
  return all;
}

// The same index; where one of `valid` does not hold, what is computed from it fails. `given` are
// the integers as they were given, which the error names.
Ref<Value> guarded(Ref<Value> index, const Ref<Value>& given, const Ref<Value>& valid, int64_t axis,
                   int64_t size) {
  Device& device = index->device();
  const Sizes shape(index->shape());
  const DType type = dtypes::int64;
  const Ref<Value> none = number(device, type, kNoIndex);
  // Unsigned ones past 63 bits count as the largest, signed ones are never `none`.
  const bool is_unsigned = !given->dtype().is_signed();
  Ref<Value> named = cast_value(given, type);
  if (given->dtype() == dtypes::uint64) {
    const Ref<Value> wraps = both(Op::CMPLT, named, number(device, type, 0));
    named = apply(Op::WHERE, type, shape, wraps, number(device, type, Interval::kHigh), named);
  } else if (!is_unsigned && given->dtype().bits() == 64) {
    named = both(Op::MAX, named, number(device, type, kNoIndex + 1));
  }
  Ref<Value> check = apply(Op::WHERE, type, shape, valid, none, named);
  Sizes over{int64_t(Op::MAX)}, ones(shape.size(), 1);
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] > 1) over.push_back(int64_t(i));
  }
  if (over.size() > 1) check = Value::make(Op::REDUCE_AXIS, type, device, ones, over, check);
  check = reshaped(std::move(check), {});
  return Value::make_guard(std::move(index), std::move(check), axis, size);
}

// One axis that integers name. They may be known to be in range.
struct NamedAxis {
  int64_t axis, size;
  Negative negative;
  bool is_checked;
  std::optional<int64_t> ignored{};  // an integer that counts as in range

  auto fields() { return std::tie(axis, size, negative, is_checked, ignored); }

  DType dtype_of_places(DType from) const {
    const bool is_wide = from.bits() == 64 || from == dtypes::uint32 || size > kMostInt32;
    return is_wide ? dtypes::int64 : dtypes::int32;
  }
};

// Throws where the integers are none, or are at hand and one is out of range.
NamedAxis checked_axis(std::string_view what, const Tensor& index, int64_t axis, int64_t size,
                       Negative negative, std::optional<int64_t> ignored = {}) {
  const DType from = index.dtype();
  if (!from.is_int()) {
    throw DTypeError(fmt::format("[{}] an index has dtype {}; allowed are integers and bool", what,
                                 from.name()));
  }
  if (size == 0 && index.numel() > 0) {
    throw IndexError(
        fmt::format("[{}] axis {} has size 0: no index is within its bounds", what, axis));
  }
  const bool is_checked = is_at_hand(index);
  if (is_checked && (ignored || !are_in_range(index, size, negative))) {
    checked_values(what, index, axis, size, negative, ignored);
  }
  // None of its dtype is that one.
  if (ignored && (*ignored < bounds_of(from).lo || *ignored > bounds_of(from).hi)) ignored.reset();
  return {axis, size, negative, is_checked, ignored};
}

Places places_on(const NamedAxis& named, const Ref<Value>& given) {
  const auto& [axis, size, negative, is_checked, ignored] = named;
  const DType from = given->dtype(), type = named.dtype_of_places(from);
  const bool counts_back = negative == Negative::kFromEnd && from.is_signed();
  const auto is_within = [&](Interval all) {
    const int64_t least = counts_back ? -size : 0;
    const bool is_it = all.lo >= least && all.hi < size && all.hi != Interval::kHigh;
    if (is_it) {
      assume_at_most(least, all.lo);
      assume_at_most(all.hi + 1, size);
    }
    return is_it;
  };
  const bool is_sure = is_checked || given->numel() == 0 || is_within(bounds_of(from)) ||
                       is_within(element_bounds(*given));
  Device& device = given->device();
  const Sizes shape(given->shape());
  Ref<Value> i = cast_value(given, type);
  const Ref<Value> zero = number(device, type, 0), end = number(device, type, size);
  if (counts_back) {
    i = apply(Op::WHERE, type, shape, both(Op::CMPLT, i, zero), both(Op::ADD, i, end), i);
  }
  if (is_sure) return {std::move(i)};
  const Ref<Value> is_below = both(Op::CMPLT, i, zero);
  Ref<Value> valid =
      both(Op::AND, apply(Op::NOT, dtypes::bool_, shape, is_below), both(Op::CMPLT, i, end));
  if (ignored) {
    valid = both(Op::OR, valid, both(Op::CMPEQ, i, number(device, type, *ignored)));
  }
  return {guarded(std::move(i), given, valid, axis, size), valid};
}

// About how many Values an index is made of.
constexpr int64_t kValuesOfIndex = 24;

constexpr auto kIndex = row(
    "index", kValuesOfIndex,
    [](const NamedAxis& named, const Ref<Value>& given) { return places_on(named, given).index; });
// Named on one of axes of these sizes, and counted on the others.
constexpr auto kIndexAlong =
    row("index_along", kValuesOfIndex,
        [](Ints shape, const NamedAxis& named, const Sizes& sizes, const Ref<Value>& given) {
          std::vector<Places> places;
          places.reserve(sizes.size());
          for (size_t i = 0; i < sizes.size(); i++) {
            places.push_back(int64_t(i) == named.axis
                                 ? places_on(named, given)
                                 : counted_places(given->device(), shape[i], i, sizes.size()));
          }
          return merged_places(places, sizes, shape);
        });

}  // namespace

Places places_of(std::string_view what, const Tensor& index, int64_t axis, int64_t size,
                 Negative negative) {
  return places_on(checked_axis(what, index, axis, size, negative), read(index));
}

Ref<Value> index_of(std::string_view what, const Tensor& index, int64_t axis, int64_t size,
                    Negative negative) {
  const NamedAxis named = checked_axis(what, index, axis, size, negative);
  const DType type = named.dtype_of_places(index.dtype());
  if (named.is_checked && negative == Negative::kOutOfRange) return cast_value(read(index), type);
  return call<kIndex>({type, index.shape()}, named, read(index));
}

Ref<Value> index_along(std::string_view what, const Tensor& index, size_t axis, Ints sizes,
                       Negative negative) {
  const size_t rank = sizes.size();
  if (rank == 1) return index_of(what, index, 0, sizes[0], negative);
  const NamedAxis named = checked_axis(what, index, int64_t(axis), sizes[axis], negative);
  bool is_wide = named.dtype_of_places(index.dtype()) == dtypes::int64;
  int64_t count = 1;
  for (size_t i = 0; i < rank; i++) {
    is_wide |= i != axis && index.shape()[i] > kMostInt32;
    count *= sizes[i];
  }
  const DType type = is_wide || count > kMostInt32 ? dtypes::int64 : dtypes::int32;
  return call<kIndexAlong>({type, index.shape()}, named, Sizes(sizes), read(index));
}

namespace {

NamedAxis class_axis(std::string_view what, const Tensor& y, int64_t axis, int64_t count,
                     std::optional<int64_t> ignored) {
  return checked_axis(what, y, axis, count, Negative::kOutOfRange, ignored);
}

}  // namespace

bool are_classes(std::string_view what, const Tensor& y, int64_t axis, int64_t count,
                 std::optional<int64_t> ignored) {
  return class_axis(what, y, axis, count, ignored).is_checked;
}

Tensor as_classes(std::string_view what, const Tensor& y, int64_t axis, int64_t count,
                  std::optional<int64_t> ignored) {
  const NamedAxis named = class_axis(what, y, axis, count, ignored);
  const DType type = named.dtype_of_places(y.dtype());
  if (named.is_checked) {
    return ignored ? tensor_of(within(cast_value(read(y), type), count)) : y;
  }
  const Ref<Value> places = call<kIndex>({type, y.shape()}, named, read(y));
  return tensor_of(within(places, count));
}

Ref<Value> within(const Ref<Value>& places, int64_t size) {
  Device& device = places->device();
  const DType type = places->dtype();
  const Ref<Value> least = number(device, type, 0), most = number(device, type, size - 1);
  return both(Op::MIN, both(Op::MAX, places, least), most);
}

std::optional<std::vector<int64_t>> places_at_hand(std::string_view what, const Tensor& index,
                                                   int64_t axis, int64_t size) {
  if (!index.dtype().is_int() || !is_at_hand(index)) return {};
  std::vector<int64_t> places;
  for (const uint64_t bits : checked_values(what, index, axis, size)) {
    const auto i = int64_t(bits);
    places.push_back(i < 0 ? i + size : i);
  }
  return places;
}

std::optional<std::vector<Index>> with_numbers(const Tensor& x, Indices index) {
  std::optional<std::vector<Index>> found;
  for (size_t k = 0; k < index.size(); k++) {
    const auto* by = std::get_if<ByTensor>(&index[k]);
    if (by == nullptr || by->view.rank() != 0 || !by->view.dtype.is_int()) continue;
    const Tensor number{by->storage, by->view};
    if (&device_of(number) != &device_of(x) || !is_at_hand(number)) continue;
    const Element element = number.item();
    if (!element.dtype.is_signed() && int64_t(element.bits) < 0) continue;  // past 63 bits
    if (!found) found.emplace(index.begin(), index.end());
    (*found)[k] = int64_t(element.bits);
  }
  return found;
}

Places counted_places(Device& device, int64_t size, size_t axis, size_t rank) {
  const DType type = size > kMostInt32 ? dtypes::int64 : dtypes::int32;
  Sizes shape(rank, 1);
  shape[axis] = size;
  return {reshaped(Value::make(Op::IOTA, type, device, {size}), shape)};
}

Ref<Value> merged_places(std::span<const Places> places, Ints sizes, Ints shape) {
  if (places.size() == 1) return broadcast(places[0].index, shape);
  bool is_wide = false;
  int64_t count = 1;
  for (size_t k = 0; k < places.size(); k++) {
    is_wide |= places[k].index->dtype() == dtypes::int64;
    count *= sizes[k];
  }
  const DType type = is_wide || count > kMostInt32 ? dtypes::int64 : dtypes::int32;
  Device& device = places[0].index->device();
  Ref<Value> sum, valid;
  for (size_t k = 0; k < places.size(); k++) {
    Ref<Value> i = broadcast(cast_value(places[k].index, type), shape);
    sum = k == 0 ? i : both(Op::ADD, both(Op::MUL, sum, number(device, type, sizes[k])), i);
    if (!places[k].valid) continue;
    const Ref<Value> own = broadcast(places[k].valid, shape);
    valid = valid ? both(Op::AND, valid, own) : own;
  }
  // Out of range on one axis is no place of another one.
  if (!valid) return sum;
  return apply(Op::WHERE, type, sum->shape(), valid, sum, number(device, type, -1));
}

Sizes Chosen::shape() const {
  const Ints all = target.shape();
  Sizes out(all.subspan(0, size_t(first)));
  out.append(index->shape());
  out.append(all.subspan(size_t(past)));
  return out;
}

Tensor Chosen::read() const {
  const Sizes to = shape();
  checked_numel("index", to);
  const DType dtype = target.dtype();
  return tensor_of(Value::make(Op::INDEX, dtype, device_of(target), to, {first, past},
                               weft::read(target), index));
}

void Chosen::write(std::string_view what, Ref<Value> value, std::optional<Op> op) const {
  const Sizes to = shape();
  check_not_expanded(what, target);
  if (op && target.dtype() != target.storage()->dtype()) {  // memory has no numbers of that kind
    const Tensor numbers = target.clone();
    Chosen{numbers, first, past, index}.write(what, std::move(value), op);
    Tensor(target).assign(numbers);
    return;
  }
  Sizes own(value->shape());
  while (own.size() > to.size() && own[0] == 1) own.erase(0);  // as NumPy does
  value = reshaped(std::move(value), own);
  check_broadcasts_to(what, own, to);
  value = as_operand(cast_value(std::move(value), target.dtype()), to);
  Storage& storage = *target.storage();
  keep_bound(storage);
  const GradMode mode(gradients_are_on() && !target.is_detached());
  WriteThrough through(storage);
  storage.write(target.view(), std::move(value), index,
                {.first = first, .past = past, .op = op.value_or(Op{})});
  through.finish();
}

}  // namespace weft
