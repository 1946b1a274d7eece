// Views: the same storage, seen through other strides.
#include "value/movement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "tensor/operand.h"
#include "value/number_watch.h"
#include "value/storage.h"
#include "value/view.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// The shape with its -1 worked out.
Sizes solved_shape(Ints asked, int64_t numel, Ints own) {
  Sizes shape(asked);
  int64_t known = 1, unknown = -1;
  bool is_endless = false;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] != -1) {
      is_endless |= __builtin_mul_overflow(known, shape[i], &known);
    } else if (unknown >= 0) {
      throw ShapeError(
          fmt::format("[reshape] {} leaves more than one size open", text_of_shape(asked)));
    } else {
      unknown = int64_t(i);
    }
  }
  if (unknown >= 0 && known > 0 && !is_endless && numel % known == 0)
    shape[size_t(unknown)] = numel / known;
  if (unknown >= 0 && shape[size_t(unknown)] == -1) {
    throw ShapeError(fmt::format("[reshape] cannot view {} as {}: {} elements", text_of_shape(own),
                                 text_of_shape(asked), numel));
  }
  return shape;
}

// `axes` as positions; throws when one occurs twice.
Sizes distinct_axes(std::string_view what, Ints axes, size_t rank) {
  Sizes result;
  for (const int64_t axis : axes) {
    const int64_t at = int64_t(axis_of(what, axis, rank));
    if (std::find(result.begin(), result.end(), at) != result.end()) {
      throw ShapeError(fmt::format("[{}] axis {} is given twice", what, axis));
    }
    result.push_back(at);
  }
  return result;
}

}  // namespace

Tensor Tensor::reshape(Ints asked) const {
  const Sizes to = solved_shape(asked, numel(), shape());
  const int64_t count = checked_numel("reshape", to);
  if (count != numel()) {
    throw ShapeError(fmt::format("[reshape] cannot view {} as {}: {} elements against {}",
                                 text_of_shape(shape()), text_of_shape(to), numel(), count));
  }
  if (std::optional<View> view = reshape_view(view_, to)) return viewed(*std::move(view));
  return tensor_of(reshaped(read(*this), to));
}

Tensor Tensor::permute(Ints order) const {
  const Sizes axes = distinct_axes("permute", order, view_.rank());
  if (axes.size() != view_.rank()) {
    throw ShapeError(fmt::format("[permute] [{}] is not an order of the {} axes of {}",
                                 fmt::join(order.begin(), order.end(), ", "), ndim(),
                                 text_of_shape(shape())));
  }
  View view = view_;
  for (size_t i = 0; i < axes.size(); i++) {
    view.shape[i] = view_.shape[size_t(axes[i])];
    view.strides[i] = view_.strides[size_t(axes[i])];
  }
  return viewed(std::move(view));
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  const size_t i = axis_of("transpose", a, view_.rank()), j = axis_of("transpose", b, view_.rank());
  View view = view_;
  std::swap(view.shape[i], view.shape[j]);
  std::swap(view.strides[i], view.strides[j]);
  return viewed(std::move(view));
}

Tensor Tensor::flip(Ints axes) const {
  View view = view_;
  for (const int64_t axis : distinct_axes("flip", axes, view_.rank())) {
    const size_t i = size_t(axis);
    if (view.shape[i] > 0) view.offset += (view.shape[i] - 1) * view.strides[i];
    view.strides[i] = -view.strides[i];
  }
  return viewed(std::move(view));
}

Tensor Tensor::expand(Ints to) const {
  if (to.size() < view_.rank()) {
    throw ShapeError(fmt::format("[expand] cannot expand {} to {}: {} axes against {}",
                                 text_of_shape(shape()), text_of_shape(to), ndim(), to.size()));
  }
  const size_t added = to.size() - view_.rank();
  View view{view_.dtype, Sizes(to), Sizes(to.size()), view_.offset};
  for (size_t i = 0; i < view_.rank(); i++) {
    int64_t& size = view.shape[added + i];
    if (size == -1) size = view_.shape[i];
    if (size == view_.shape[i]) {
      view.strides[added + i] = view_.strides[i];
    } else if (view_.shape[i] != 1) {
      throw ShapeError(fmt::format(
          "[expand] cannot expand {} to {}: axis {} has size {}, and only 1 is repeated",
          text_of_shape(shape()), text_of_shape(to), i, view_.shape[i]));
    }
  }
  checked_numel("expand", view.shape);
  return viewed(std::move(view));
}

Tensor Tensor::shrink(Pairs begin_end) const {
  if (begin_end.size() != view_.rank()) {
    throw ShapeError(fmt::format("[shrink] {} has {} axes; given are bounds of {}",
                                 text_of_shape(shape()), ndim(), begin_end.size()));
  }
  View view = view_;
  for (size_t i = 0; i < view_.rank(); i++) {
    const auto [begin, end] = begin_end[i];
    if (begin < 0 || begin > end || end > view_.shape[i]) {
      throw ShapeError(fmt::format("[shrink] cannot take {} to {} of axis {} of {}", begin, end, i,
                                   text_of_shape(shape())));
    }
    assume_at_most(0, begin);
    assume_at_most(end, view_.shape[i]);
    view.shape[i] = end - begin;
    view.offset += begin * view.strides[i];
  }
  return viewed(std::move(view));
}

Tensor Tensor::unfold(int64_t axis, int64_t size, int64_t step) const {
  const size_t i = axis_of("unfold", axis, view_.rank());
  if (size < 0 || size > view_.shape[i] || step <= 0) {
    throw ShapeError(
        fmt::format("[unfold] cannot take windows of {} in steps of {} along axis {} of {}", size,
                    step, i, text_of_shape(shape())));
  }
  assume_exact({view_.shape[i], size, step});
  View view = view_;
  view.shape[i] = (view_.shape[i] - size) / step + 1;
  if (view.shape[i] > 1) view.strides[i] = view_.strides[i] * step;
  view.shape.push_back(size);
  view.strides.push_back(view_.strides[i]);
  checked_numel("unfold", view.shape);
  return viewed(std::move(view));
}

Tensor Tensor::diagonal(int64_t offset, int64_t axis1, int64_t axis2) const {
  const size_t a = axis_of("diagonal", axis1, view_.rank());
  const size_t b = axis_of("diagonal", axis2, view_.rank());
  if (a == b) throw ShapeError(fmt::format("[diagonal] axis {} is given twice", axis1));
  assume_exact({offset, view_.shape[a], view_.shape[b]});
  offset = std::clamp(offset, -view_.shape[a], view_.shape[b]);  // past them there is nothing
  const int64_t rows = view_.shape[a] - std::max<int64_t>(-offset, 0);
  const int64_t columns = view_.shape[b] - std::max<int64_t>(offset, 0);
  const int64_t size = std::max<int64_t>(std::min(rows, columns), 0);
  View view{view_.dtype, {}, {}, view_.offset};
  for (size_t i = 0; i < view_.rank(); i++) {
    if (i == a || i == b) continue;
    view.shape.push_back(view_.shape[i]);
    view.strides.push_back(view_.strides[i]);
  }
  if (size > 0) view.offset += offset < 0 ? -offset * view_.strides[a] : offset * view_.strides[b];
  view.shape.push_back(size);
  view.strides.push_back(view_.strides[a] + view_.strides[b]);
  return viewed(std::move(view));
}

Tensor Tensor::as_strided(Ints to, Ints strides, int64_t offset) const {
  if (to.size() != strides.size()) {
    throw ShapeError(
        fmt::format("[as_strided] {} sizes against {} strides", to.size(), strides.size()));
  }
  const int64_t count = checked_numel("as_strided", to);
  assume_exact(to);
  assume_exact(strides);
  assume_exact({offset, storage_->origin(), storage_->numel()});
  __extension__ using Wide = __int128;
  const int64_t origin = storage_->origin();
  Wide first = offset, last = offset;
  for (size_t i = 0; i < to.size(); i++) {
    const Wide reach = Wide(strides[i]) * (to[i] - 1);
    (reach < 0 ? first : last) += reach;
  }
  if (count > 0 && (first < origin || last - origin >= storage_->numel())) {
    throw ShapeError(fmt::format(
        "[as_strided] sizes {} with strides {} from {} read elements {} to {} of {}",
        text_of_shape(to), text_of_shape(strides), offset, first, last, storage_->numel()));
  }
  View view{view_.dtype, Sizes(to), Sizes(strides), count == 0 ? 0 : offset - origin};
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] <= 1 || count == 0) view.strides[i] = 1;  // no step is taken
  }
  return viewed(std::move(view));
}

Tensor Tensor::flatten(int64_t start, int64_t end) const {
  if (view_.rank() == 0) return reshape({1});
  const size_t first = axis_of("flatten", start, view_.rank());
  const size_t last = axis_of("flatten", end, view_.rank());
  if (first > last) {
    throw ShapeError(fmt::format("[flatten] axis {} stands after axis {}", start, end));
  }
  Sizes to;
  for (size_t i = 0; i < view_.rank(); i++) {
    if (i > first && i <= last) {
      to.back() *= view_.shape[i];
    } else {
      to.push_back(view_.shape[i]);
    }
  }
  return reshape(to);
}

Tensor Tensor::squeeze(std::optional<int64_t> axis) const {
  const size_t least = 1;  // a scalar has nothing to lose along its one axis
  const size_t only = axis ? axis_of("squeeze", *axis, std::max(view_.rank(), least)) : 0;
  View view{view_.dtype, {}, {}, view_.offset};
  for (size_t i = 0; i < view_.rank(); i++) {
    if (!axis || i == only) assume_exact({view_.shape[i]});
    if (view_.shape[i] == 1 && (!axis || i == only)) continue;
    view.shape.push_back(view_.shape[i]);
    view.strides.push_back(view_.strides[i]);
  }
  return viewed(std::move(view));
}

Tensor Tensor::unsqueeze(int64_t axis) const {
  const size_t at = axis_of("unsqueeze", axis, view_.rank() + 1);
  View view = view_;
  view.shape.insert(at, 1);
  view.strides.insert(at, at < view_.rank() ? view_.strides[at] * view_.shape[at] : 1);
  return viewed(std::move(view));
}

}  // namespace weft
