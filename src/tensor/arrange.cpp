// Tensors split, repeated, and laid out anew: compositions of views.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tensor/operand.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

using Box = std::vector<std::pair<int64_t, int64_t>>;

Box whole_of(Ints shape) {
  Box box;
  for (const int64_t size : shape) box.emplace_back(0, size);
  return box;
}

}  // namespace

std::vector<Tensor> Tensor::split(Ints sizes, int64_t axis) const {
  const size_t along = axis_of("split", axis, view_.rank());
  int64_t end = 0;
  bool fits = true;
  for (const int64_t size : sizes) fits &= size >= 0 && !__builtin_add_overflow(end, size, &end);
  if (!fits || end != view_.shape[along]) {
    throw ShapeError(fmt::format("[split] sizes {} of axis {} of {}: they add up to its size",
                                 text_of_shape(sizes), along, text_of_shape(shape())));
  }
  std::vector<Tensor> parts;
  Box box = whole_of(shape());
  end = 0;
  for (const int64_t size : sizes) {
    box[along] = {end, end + size};
    end += size;
    parts.push_back(shrink(box));
  }
  return parts;
}

std::vector<Tensor> Tensor::split(int64_t size, int64_t axis) const {
  const int64_t whole = view_.shape[axis_of("split", axis, view_.rank())];
  if (size < 0 || (size == 0 && whole > 0)) {
    throw ShapeError(fmt::format("[split] parts of size {}; it is at least 1", size));
  }
  assume_exact({whole, size});
  std::vector<int64_t> sizes;
  for (int64_t left = whole; left > 0; left -= size) sizes.push_back(std::min(left, size));
  if (sizes.empty()) sizes.push_back(0);
  return split(Ints(sizes), axis);
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t axis) const {
  if (chunks <= 0) throw ShapeError(fmt::format("[chunk] {} chunks; there is at least 1", chunks));
  const int64_t whole = view_.shape[axis_of("chunk", axis, view_.rank())];
  assume_exact({whole, chunks});
  if (whole == 0) return split(Ints(Sizes(size_t(chunks), 0)), axis);
  return split((whole - 1) / chunks + 1, axis);
}

Tensor Tensor::stack(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) throw ShapeError("[stack] there are no tensors");
  const int64_t at = int64_t(axis_of("stack", axis, parts[0].view().rank() + 1));
  std::vector<Tensor> raised;
  for (const Tensor& part : parts) {
    if (!std::ranges::equal(part.shape(), parts[0].shape())) {
      throw ShapeError(fmt::format("[stack] shapes {} and {} differ",
                                   text_of_shape(parts[0].shape()), text_of_shape(part.shape())));
    }
    raised.push_back(part.unsqueeze(at));
  }
  return cat(raised, at);
}

Tensor Tensor::repeat(Ints repeats) const {
  if (repeats.size() < view_.rank()) {
    throw ShapeError(fmt::format("[repeat] {} has {} axes; given are repeats of {}",
                                 text_of_shape(shape()), ndim(), repeats.size()));
  }
  const size_t added = repeats.size() - view_.rank();
  Sizes apart, wide, result;
  for (size_t i = 0; i < repeats.size(); i++) {
    const int64_t size = i < added ? 1 : view_.shape[i - added];
    apart.push_back(1);
    apart.push_back(size);
    wide.push_back(repeats[i]);
    wide.push_back(size);
  }
  checked_numel("repeat", wide);
  for (size_t i = 0; i < repeats.size(); i++) result.push_back(wide[2 * i] * wide[2 * i + 1]);
  return reshape(apart).expand(wide).reshape(result).clone();
}

Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> axis) const {
  if (!axis) return flatten().repeat_interleave(repeats, 0);
  const size_t along = axis_of("repeat_interleave", *axis, view_.rank());
  Sizes wide(shape()), result(shape());
  wide.insert(along + 1, repeats);
  checked_numel("repeat_interleave", wide);
  result[along] *= repeats;
  return unsqueeze(int64_t(along) + 1).expand(wide).reshape(result).clone();
}

Tensor Tensor::unflatten(int64_t axis, Ints sizes) const {
  const size_t along = axis_of("unflatten", axis, view_.rank());
  Sizes to;
  for (size_t i = 0; i < view_.rank(); i++) {
    if (i != along) {
      to.push_back(view_.shape[i]);
      continue;
    }
    int64_t known = 1;
    for (const int64_t size : sizes) known *= size == -1 ? 1 : size;
    for (const int64_t size : sizes) {
      const bool is_open = size == -1 && known > 0;
      to.push_back(is_open ? view_.shape[i] / known : size);
    }
  }
  int64_t product = 1;
  bool is_endless = false;
  for (size_t i = 0; i < sizes.size(); i++) {
    is_endless |= __builtin_mul_overflow(product, to[along + i], &product);
  }
  if (sizes.empty() || is_endless || product != view_.shape[along] ||
      std::ranges::count(sizes, -1) > 1) {
    throw ShapeError(fmt::format("[unflatten] cannot view axis {} of {} as {}", along,
                                 text_of_shape(shape()), text_of_shape(sizes)));
  }
  return reshape(to);
}

Tensor Tensor::movedim(Ints from, Ints to) const {
  if (from.size() != to.size()) {
    throw ShapeError(fmt::format("[movedim] {} axes to {} places", from.size(), to.size()));
  }
  std::vector<int64_t> order(view_.rank(), -1), is_moved(view_.rank());
  for (size_t i = 0; i < from.size(); i++) {
    const size_t source = axis_of("movedim", from[i], view_.rank());
    const size_t target = axis_of("movedim", to[i], view_.rank());
    if (is_moved[source] != 0 || order[target] != -1) {
      throw ShapeError("[movedim] an axis is given twice");
    }
    is_moved[source] = 1;
    order[target] = int64_t(source);
  }
  size_t next = 0;
  for (int64_t& axis : order) {
    if (axis != -1) continue;
    while (is_moved[next] != 0) next++;
    axis = int64_t(next++);
  }
  return permute(order);
}

// ------------------------------------------------------------------------- to sizes, at the ends

namespace {

// The sizes asked for, with -1 replaced.
Sizes target_sizes(const char* what, const Tensor& x, Ints asked) {
  if (asked.size() != x.view().rank()) {
    throw ShapeError(fmt::format("[{}] {} has {} axes; given are sizes of {}", what,
                                 text_of_shape(x.shape()), x.ndim(), asked.size()));
  }
  Sizes sizes(asked);
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == -1) sizes[i] = x.shape()[i];
  }
  checked_numel(what, sizes);
  return sizes;
}

}  // namespace

Tensor Tensor::pad_to(Ints asked, Number value) const {
  const Sizes to = target_sizes("pad_to", *this, asked);
  Box around;
  for (size_t i = 0; i < to.size(); i++) {
    if (to[i] < view_.shape[i]) {
      throw ShapeError(fmt::format("[pad_to] {} is larger than {} in axis {}",
                                   text_of_shape(shape()), text_of_shape(to), i));
    }
    assume_at_most(view_.shape[i], to[i]);
    around.emplace_back(0, to[i] - view_.shape[i]);
  }
  return pad(around, value);
}

Tensor Tensor::shrink_to(Ints asked) const {
  const Sizes to = target_sizes("shrink_to", *this, asked);
  Box box;
  for (size_t i = 0; i < to.size(); i++) box.emplace_back(0, to[i]);
  return shrink(box);
}

// ----------------------------------------------------------------------------------- pad by modes

namespace {

// Elements `begin` to `end` of an axis, repeated or reversed where asked.
Tensor part_of(const Tensor& x, size_t axis, int64_t begin, int64_t end) {
  Box box = whole_of(x.shape());
  box[axis] = {begin, end};
  return x.shrink(box);
}

// `count` elements that stand before the first (or after the last) one.
Tensor outside(const Tensor& x, size_t axis, int64_t count, Tensor::PadMode mode, bool is_before) {
  const int64_t size = x.shape()[axis];
  switch (mode) {
    case Tensor::PadMode::kReflect: {
      const int64_t begin = is_before ? 1 : size - 1 - count;
      return part_of(x, axis, begin, begin + count).flip({int64_t(axis)});
    }
    case Tensor::PadMode::kCircular: {
      const int64_t begin = is_before ? size - count : 0;
      return part_of(x, axis, begin, begin + count);
    }
    case Tensor::PadMode::kReplicate: break;
  }
  Sizes wide(x.shape());
  wide[axis] = count;
  const int64_t begin = is_before ? 0 : size - 1;
  return part_of(x, axis, begin, begin + 1).expand(wide);
}

void check_reach(const Tensor& x, size_t axis, int64_t before, int64_t after,
                 Tensor::PadMode mode) {
  using Mode = Tensor::PadMode;
  const int64_t size = x.shape()[axis];
  const int64_t most = mode == Mode::kReflect    ? size - 1
                       : mode == Mode::kCircular ? size
                                                 : INT64_MAX;
  const int64_t reach = std::max(before, after);
  if (reach <= 0 || (size > 0 && reach <= most)) return;
  throw ShapeError(fmt::format(
      "[pad] cannot pad axis {} of {} by {} and {} with its own elements; at most by {}", axis,
      text_of_shape(x.shape()), before, after, size == 0 ? 0 : most));
}

}  // namespace

Tensor Tensor::pad(Pairs before_after, PadMode mode) const {
  if (before_after.size() != view_.rank()) {
    throw ShapeError(fmt::format("[pad] {} has {} axes; given is padding of {}",
                                 text_of_shape(shape()), ndim(), before_after.size()));
  }
  Tensor result = *this;
  for (size_t i = 0; i < before_after.size(); i++) {
    const auto [before, after] = before_after[i];
    assume_exact({before, after, view_.shape[i]});
    int64_t begin = std::max<int64_t>(-before, 0);
    int64_t end = view_.shape[i] - std::max<int64_t>(-after, 0);
    if (begin > end) {
      throw ShapeError(fmt::format("[pad] cannot pad axis {} of {} by {} and {}", i,
                                   text_of_shape(shape()), before, after));
    }
    if (mode == PadMode::kCircular && end - begin < view_.shape[i]) {
      // What is left is what comes round.
      result = part_of(result, i, begin, end);
      end -= std::exchange(begin, 0);
    }
    check_reach(result, i, before, after, mode);
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(outside(result, i, before, mode, true));
    parts.push_back(part_of(result, i, begin, end));
    if (after > 0) parts.push_back(outside(result, i, after, mode, false));
    result = parts.size() == 1 ? parts[0] : cat(parts, int64_t(i));
  }
  return result.shares_memory_with(*this) ? result.clone() : result;
}

}  // namespace weft
