// Windows as strided views.
#include "tensor/windows.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

std::vector<int64_t> per_axis(const char* what, const char* option,
                              const std::vector<int64_t>& list, size_t count) {
  if (list.size() == count) return list;
  if (list.size() == 1) return std::vector<int64_t>(count, list[0]);
  throw ShapeError(fmt::format("[{}] {} of ({}); it has 1 or {} numbers", what, option,
                               fmt::join(list, ","), count));
}

std::vector<std::pair<int64_t, int64_t>> per_side(const char* what,
                                                  const std::vector<int64_t>& padding,
                                                  size_t count) {
  std::vector<std::pair<int64_t, int64_t>> sides(count);
  const bool has_two = padding.size() == 2 * count && count > 0;
  const std::vector<int64_t> same =
      has_two ? std::vector<int64_t>() : per_axis(what, "padding", padding, count);
  for (size_t i = 0; i < count; i++) {
    const size_t at = 2 * (count - 1 - i);
    sides[i] = has_two ? std::pair(padding[at], padding[at + 1]) : std::pair(same[i], same[i]);
  }
  return sides;
}

void count_windows(const char* what, WindowAxes& axes, bool ceil_mode) {
  for (WindowAxis& axis : axes) {
    if (axis.kernel <= 0 || axis.stride <= 0 || axis.dilation <= 0) {
      throw ShapeError(
          fmt::format("[{}] a kernel of {}, stride {}, dilation {}; each is at least 1", what,
                      axis.kernel, axis.stride, axis.dilation));
    }
    const int64_t whole = axis.before + axis.size + axis.after, left = whole - axis.extent();
    // How many begin before the last element that a window may begin at. Rounded up, the last of
    // them reaches past the end.
    const int64_t begins = left + (ceil_mode ? axis.stride - 1 : 0);
    if (begins < 0) {
      throw ShapeError(
          fmt::format("[{}] a kernel that reaches over {} elements of {}, with padding", what,
                      axis.extent(), whole));
    }
    assume_exact({axis.size, whole, axis.kernel, axis.stride, axis.dilation});
    axis.outputs = begins / axis.stride + 1;
    if (!ceil_mode) continue;
    // None begins in the padding behind.
    if ((axis.outputs - 1) * axis.stride >= axis.size + axis.before) axis.outputs--;
    const int64_t end = (axis.outputs - 1) * axis.stride + axis.extent();
    axis.after += std::max<int64_t>(end - whole, 0);
  }
}

Tensor windows_of(const Tensor& x, const WindowAxes& axes, Number value) {
  const size_t first = x.view().rank() - axes.size();
  std::vector<std::pair<int64_t, int64_t>> around(first);
  bool is_padded = false;
  for (const WindowAxis& axis : axes) {
    around.emplace_back(axis.before, axis.after);
    is_padded |= axis.before != 0 || axis.after != 0;
  }
  Tensor result = is_padded ? x.pad(around, value) : x;
  for (size_t i = 0; i < axes.size(); i++) {
    result = result.unfold(int64_t(first + i), axes[i].extent(), axes[i].stride);
    if (axes[i].dilation > 1) result = result.at({Ellipsis{}, Slice{.step = axes[i].dilation}});
  }
  return result;
}

}  // namespace weft
