// Movement ops as lists of element positions.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/array.h"
#include "ir/evaluate_parts.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"

namespace weft::evaluator {
namespace {

using Sizes = std::vector<int64_t>;

[[noreturn]] void fail_shape(UOp n, const std::string& what) {
  throw ShapeError(fmt::format("[evaluate] {}: {}\n{}", name_of(n.op()), what, neighbourhood(n)));
}

// Element (c0, c1, ...) of the result is element offset + c0*strides[0] + ... of the source.
ElementMap strided(UOp n, Sizes shape, const Sizes& strides, int64_t offset, int64_t source_size) {
  ElementMap map{std::move(shape), {}};
  if (size_of(map.shape) == 0) return map;
  Sizes at(map.shape.size(), 0);
  do {
    int64_t from = offset;
    bool fits = true;
    for (size_t i = 0; i < at.size(); i++) {
      int64_t step = 0;
      fits &= !__builtin_mul_overflow(at[i], strides[i], &step) &&
              !__builtin_add_overflow(from, step, &from);
    }
    if (!fits || from < 0 || from >= source_size) {
      throw IndexError(
          fmt::format("[evaluate] {}: element {} is outside of a source of {} elements\n{}",
                      name_of(n.op()), text_of_sizes(at), source_size, neighbourhood(n)));
    }
    map.from.push_back(from);
  } while (advance(at, map.shape));
  return map;
}

ElementMap reshape(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  ElementMap map{{numbers.begin(), numbers.end()}, {}};
  const int64_t size = size_of(map.shape);
  if (size != size_of(shape)) {
    fail_shape(n, fmt::format("{} elements against {}", size_of(shape), size));
  }
  map.from.resize(size_t(size));
  std::iota(map.from.begin(), map.from.end(), int64_t(0));
  return map;
}

ElementMap permute(UOp n, const Sizes& shape) {
  const Sizes strides = row_major_strides(shape);
  Sizes new_shape, new_strides;
  std::vector<bool> used(shape.size());
  for (const int64_t axis : n.ints()) {
    if (axis < 0 || size_t(axis) >= shape.size() || used[size_t(axis)]) {
      fail_shape(n, fmt::format("its order is none of the axes of {}", text_of_sizes(shape)));
    }
    used[size_t(axis)] = true;
    new_shape.push_back(shape[size_t(axis)]);
    new_strides.push_back(strides[size_t(axis)]);
  }
  if (new_shape.size() != shape.size()) fail_shape(n, "its order leaves axes out");
  return strided(n, new_shape, new_strides, 0, size_of(shape));
}

ElementMap expand(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  if (numbers.size() != shape.size()) fail_shape(n, "one size for every axis is needed");
  Sizes strides = row_major_strides(shape);
  for (size_t i = 0; i < shape.size(); i++) {
    if (numbers[i] == shape[i]) continue;
    if (shape[i] != 1) {
      fail_shape(n, fmt::format("axis {} has size {}, not 1", i, shape[i]));
    }
    strides[i] = 0;
  }
  return strided(n, {numbers.begin(), numbers.end()}, strides, 0, size_of(shape));
}

ElementMap shrink(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  const size_t rank = shape.size();
  if (numbers.size() != 2 * rank) fail_shape(n, "a begin and an end for every axis are needed");
  const Sizes strides = row_major_strides(shape);
  Sizes new_shape;
  int64_t offset = 0;
  for (size_t i = 0; i < rank; i++) {
    const int64_t begin = numbers[i], end = numbers[rank + i];
    if (begin < 0 || begin > end || end > shape[i]) {
      fail_shape(n, fmt::format("{} to {} is no part of axis {}, whose size is {}", begin, end, i,
                                shape[i]));
    }
    new_shape.push_back(end - begin);
    offset += begin * strides[i];
  }
  return strided(n, new_shape, strides, offset, size_of(shape));
}

ElementMap flip(UOp n, const Sizes& shape) {
  Sizes strides = row_major_strides(shape);
  int64_t offset = 0;
  for (const int64_t axis : n.ints()) {
    if (axis < 0 || size_t(axis) >= shape.size()) fail_shape(n, "no such axis");
    offset += (shape[size_t(axis)] - 1) * strides[size_t(axis)];
    strides[size_t(axis)] = -strides[size_t(axis)];
  }
  return strided(n, shape, strides, offset, size_of(shape));
}

ElementMap pad(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  const size_t rank = shape.size();
  if (numbers.size() != 2 * rank) fail_shape(n, "a before and an after for every axis are needed");
  ElementMap map;
  for (size_t i = 0; i < rank; i++) {
    const int64_t before = numbers[i], after = numbers[rank + i];
    if (before < 0 || after < 0) fail_shape(n, "it pads by less than nothing");
    map.shape.push_back(before + shape[i] + after);
  }
  map.from.assign(size_t(size_of(map.shape)), ElementMap::kZero);
  if (size_of(shape) == 0) return map;
  const Sizes strides = row_major_strides(map.shape);
  Sizes at(rank, 0);
  int64_t from = 0;
  do {
    int64_t to = 0;
    for (size_t i = 0; i < rank; i++) to += (at[i] + numbers[i]) * strides[i];
    map.from[size_t(to)] = from++;
  } while (advance(at, shape));
  return map;
}

ElementMap view(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  if (numbers.size() % 2 != 1) fail_shape(n, "it needs as many strides as sizes, and an offset");
  const size_t rank = numbers.size() / 2;
  const auto sizes = numbers.first(rank), strides = numbers.subspan(rank, rank);
  return strided(n, {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, numbers.back(),
                 size_of(shape));
}

}  // namespace

ElementMap map_elements(UOp n, const Sizes& shape, std::span<const int64_t> numbers) {
  switch (n.op()) {
    case Op::RESHAPE: return reshape(n, shape, numbers);
    case Op::PERMUTE: return permute(n, shape);
    case Op::EXPAND: return expand(n, shape, numbers);
    case Op::SHRINK: return shrink(n, shape, numbers);
    case Op::FLIP: return flip(n, shape);
    case Op::PAD: return pad(n, shape, numbers);
    case Op::VIEW: return view(n, shape, numbers);
    default: fail(n, "it is no movement op");
  }
}

}  // namespace weft::evaluator
