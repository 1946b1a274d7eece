// a[1, 2:7:2, None, ...] as a view.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// The first element of a slice and how many there are, by Python's rules.
struct Taken {
  int64_t start, count;
};
Taken take(const Slice& slice, int64_t size) {
  if (slice.step == 0) throw IndexError("[index] the step of a slice is 0");
  const bool is_forward = slice.step > 0;
  const int64_t lowest = is_forward ? 0 : -1, highest = is_forward ? size : size - 1;
  const auto clamped = [&](int64_t i) {
    const int64_t at = is_less(i, 0) ? i + size : i;
    if (is_less(at, lowest)) return lowest;
    return is_less(highest, at) ? highest : at;
  };
  const int64_t start = slice.start ? clamped(*slice.start) : is_forward ? lowest : highest;
  const int64_t stop = slice.stop ? clamped(*slice.stop) : is_forward ? highest : lowest;
  const int64_t span = is_forward ? stop - start : start - stop;
  const uint64_t step = is_forward ? uint64_t(slice.step) : -uint64_t(slice.step);
  if (!is_less(0, span)) {
    assume_exact({span});
    return {start, 0};
  }
  const int64_t steps = int64_t((uint64_t(span) - 1) / step);
  if (step != 1) assume_exact({steps, span, slice.step});
  return {start, steps + 1};
}

// Goes through the axes of a view, one index after the other.
class Indexer {
 public:
  explicit Indexer(const View& from) : from_(from), result_{from.dtype, {}, {}, from.offset} {}

  void skip(size_t count) {
    while (count-- > 0) keep_axis(from_.shape[axis_], from_.strides[axis_]);
  }
  void operator()(int64_t index) {
    const int64_t size = from_.shape[axis_];
    if (index < -size || index >= size) {
      throw IndexError(
          fmt::format("[index] {} is out of bounds of axis {} with size {}", index, axis_, size));
    }
    assume_at_most(-size, index);
    assume_at_most(index + 1, size);
    result_.offset += (is_less(index, 0) ? index + size : index) * from_.strides[axis_];
    axis_++;
  }
  void operator()(const Slice& slice) {
    const auto [start, count] = take(slice, from_.shape[axis_]);
    const int64_t stride = from_.strides[axis_];
    if (count > 0) result_.offset += start * stride;
    keep_axis(count, count > 1 ? stride * slice.step : stride);
  }
  void operator()(NewAxis) {
    result_.shape.push_back(1);
    result_.strides.push_back(1);
  }
  View finish() {
    skip(from_.rank() - axis_);
    return std::move(result_);
  }

 private:
  void keep_axis(int64_t size, int64_t stride) {
    result_.shape.push_back(size);
    result_.strides.push_back(stride);
    axis_++;
  }

  const View& from_;
  View result_;
  size_t axis_ = 0;
};

}  // namespace

Tensor Tensor::at(Indices index) const {
  if (has_tensors(index)) {
    const std::optional<std::vector<Index>> numbers = with_numbers(*this, index);
    if (!numbers) return choose(*this, index).read();
    return has_tensors(*numbers) ? at(*numbers) : at(*numbers).clone();
  }
  return viewed(basic_view(view_, index));
}

View basic_view(const View& from, Indices index) {
  size_t used = 0, ellipses = 0;
  for (const Index& i : index) {
    used += std::holds_alternative<int64_t>(i) || std::holds_alternative<Slice>(i);
    ellipses += std::holds_alternative<Ellipsis>(i);
  }
  if (ellipses > 1) throw IndexError("[index] there is more than one ellipsis");
  if (used > from.rank()) {
    throw IndexError(
        fmt::format("[index] {} indices are too many for {}", used, text_of_shape(from.shape)));
  }
  Indexer indexer(from);
  for (const Index& i : index) {
    if (const int64_t* number = std::get_if<int64_t>(&i)) {
      indexer(*number);
    } else if (const Slice* slice = std::get_if<Slice>(&i)) {
      indexer(*slice);
    } else if (std::holds_alternative<NewAxis>(i)) {
      indexer(NewAxis{});
    } else {
      indexer.skip(from.rank() - used);
    }
  }
  return indexer.finish();
}

}  // namespace weft
