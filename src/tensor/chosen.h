// Elements that integers name: indices as Values, reads and writes by them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "ir/op.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

// Places on an axis: integers from 0 on, in int32 or int64.
struct Places {
  Ref<Value> index;
  Ref<Value> valid{};  // bools, where some may be out of range; none: surely all are in it
};

// What a negative index is.
enum class Negative : uint8_t { kFromEnd, kOutOfRange };

// The integers of `index` as places on an axis of this size. Throws DTypeError where they are none,
// and IndexError where they are in memory and one is out of range. Where they are not computed yet,
// what is computed from an index out of range fails.
Places places_of(std::string_view what, const Tensor& index, int64_t axis, int64_t size,
                 Negative negative = Negative::kFromEnd);
// The same, as an index of this axis alone: one step until it is computed.
Ref<Value> index_of(std::string_view what, const Tensor& index, int64_t axis, int64_t size,
                    Negative negative = Negative::kFromEnd);
// The integers as places on one axis, and on the others where they stand themselves: an index of
// all axes of these sizes, merged; one step until it is computed. They have as many axes.
Ref<Value> index_along(std::string_view what, const Tensor& index, size_t axis, Ints sizes,
                       Negative negative = Negative::kFromEnd);
// Whether the integers of `y` are surely classes: from 0 to `count` - 1, or the one that is
// ignored. Throws as places_of does, where they are in memory and one is none. False where nobody
// knows yet.
bool are_classes(std::string_view what, const Tensor& y, int64_t axis, int64_t count,
                 std::optional<int64_t> ignored = {});
// The same integers; the one that is ignored may be any class. Where they are not computed yet,
// what is computed from one that is no class fails.
Tensor as_classes(std::string_view what, const Tensor& y, int64_t axis, int64_t count,
                  std::optional<int64_t> ignored = {});
// Places that are in range anyway: this says so to those who index with them (index_bounds.h).
Ref<Value> within(const Ref<Value>& places, int64_t size);
// The same places as numbers, where they are in memory that can be looked at. None where not.
std::optional<std::vector<int64_t>> places_at_hand(std::string_view what, const Tensor& index,
                                                   int64_t axis, int64_t size);
// The same indices of x, with a number for each integer tensor of no axes that is in memory that
// can be looked at: as indices such a tensor and its number are the same. None where there is none.
std::optional<std::vector<Index>> with_numbers(const Tensor& x, Indices index);
// 0, 1, ... size - 1 on axis `axis` of as many axes as `rank`, the others of size 1.
Places counted_places(Device& device, int64_t size, size_t axis, size_t rank);

// One index for several axes of these sizes, in row-major order, of places that broadcast together.
Ref<Value> merged_places(std::span<const Places> places, Ints sizes, Ints shape);

// Part of a tensor that an index names: axes [first, past) of `target`, as one, by a merged index.
struct Chosen {
  Tensor target;
  int64_t first, past;
  Ref<Value> index;

  Sizes shape() const;
  Tensor read() const;
  // A value that broadcasts to shape(), in any dtype; combined with what is there by an op.
  void write(std::string_view what, Ref<Value> value, std::optional<Op> op = {}) const;
};

// target[..., index, ...] along one axis, on the others the places of the index itself, which has
// as many axes: what gather reads and scatter writes (scatter.cpp).
Chosen chosen_along(std::string_view what, const Tensor& target, size_t axis, const Tensor& index,
                    Negative negative = Negative::kFromEnd);

// a[index] with tensors among the indices (choose.cpp).
bool has_tensors(Indices index);
Chosen choose(const Tensor& x, Indices index);
// a[mask] = value where that does not depend on how many are true: done. The mask is not realised.
bool write_by_mask(const Tensor& x, Indices index, const Ref<Value>& value);

// a[[i, j, k]] = value for a few places that are at hand, as writes through views: done. They are
// pending stores like any other, which loops are made of. Nothing where this is not of that kind.
bool write_few(const Tensor& x, Indices index, const Ref<Value>& value);

// The places of what is true, axis by axis. The mask is realised.
std::vector<std::vector<int64_t>> true_places(const Tensor& mask);

// The view of a basic index (index.cpp).
View basic_view(const View& from, Indices index);

// Throws ShapeError.
void check_broadcasts_to(std::string_view what, Ints shape, Ints target);
void check_not_expanded(std::string_view what, const Tensor& target);

}  // namespace weft
