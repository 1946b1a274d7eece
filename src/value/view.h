// What is known of views: which elements of a flat storage they touch, and how one lies in another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ir/dtype.h"
#include "weft/view.h"

namespace weft {

struct Hull {
  int64_t lo, hi;  // from lo to hi - 1
};

View contiguous_view(DType dtype, Ints shape);
Sizes contiguous_strides(Ints shape);

// The elements lie one after the other in row-major order.
bool is_contiguous(const View& view);
inline bool equal(Ints a, Ints b) { return std::ranges::equal(a, b); }
// The elements between the first and the last that a view with elements touches.
Hull hull_of(const View& view);
// Touches every element of its hull exactly once.
bool is_dense(const View& view);
// Surely touches no element twice. Looks at strides alone: false does not mean that it does.
bool is_injective(const View& view);
// Touches an element twice. Exact up to kMostCompared elements, past them the opposite of
// is_injective.
inline constexpr int64_t kMostCompared = 1 << 16;
bool has_overlap(const View& view);
// Has an axis that repeats elements.
bool is_expanded(const View& view);
// The same elements, each once, when the view is expanded.
View without_expanded_axes(const View& view);
// Surely no element is touched by both: exact where all strides are multiples of each other.
bool are_disjoint(const View& a, const View& b);

// `inner` as a view of the elements of `outer` in outer's row-major order. Empty where outer does
// not surely contain it, or may touch an element twice.
std::optional<View> view_within(const View& outer, const View& inner);

// The same elements under another shape of as many, when strides can do it.
std::optional<View> reshape_view(const View& view, Ints shape);

}  // namespace weft
