// An index that is a sum of ranges times constants is a place in an array.
#include "codegen/opt/tile_boxes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/opt/loops.h"
#include "ir/box.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

// What tensor maps take: steps in multiples of 16 bytes, each a multiple of the one before.
constexpr int64_t kStepBytes = 16, kMostStepBytes = int64_t(1) << 40, kMostSize = int64_t(1) << 32;

bool is_copied(const RangedArray& array) {
  const int64_t bytes = array.memory.dtype().pointee().item_bytes();
  if (array.axes.size() < kLeastBoxAxes || array.axes.size() > kMostBoxAxes) return false;
  if (array.axes[0].step != 1 || array.offset < 0 || array.offset * bytes % kStepBytes != 0)
    return false;
  for (size_t i = 0; i < array.axes.size(); i++) {
    const auto& [range, size, step] = array.axes[i];
    if (size < 1 || size > kMostSize) return false;
    if (i == 0) continue;
    const bool is_stepped = step * bytes % kStepBytes == 0 && step * bytes < kMostStepBytes;
    if (!is_stepped || step % array.axes[i - 1].step != 0) return false;
  }
  return true;
}

}  // namespace

std::vector<UOp> conditions_of(UOp gate) {
  std::vector<UOp> out, todo{gate};
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    if (n.is(Op::AND) && n.dtype() == dtypes::bool_) {
      todo.insert(todo.end(), n.srcs().begin(), n.srcs().end());
    } else {
      out.push_back(n);
    }
  }
  return out;
}

std::optional<RangedArray> ranged_array(UOp load, UOp first) {
  const UOp at = load.src(0);
  const std::optional<LinearSum> sum = linear_sum(index_of(load));
  if (!at.is(Op::INDEX) || !at.src(0).is(Op::DEFINE_GLOBAL) || !sum) return {};
  RangedArray out{at.src(0), sum->constant, {}};
  for (const Term& t : sum->terms) {
    if (!t.base.is(Op::RANGE) || !t.base.src(0).is_const() || t.coefficient < 1) return {};
    out.axes.push_back({t.base, t.base.src(0).const_int(), t.coefficient});
  }
  // Axes of one step keep the order of their ranges.
  std::ranges::stable_sort(
      out.axes, {}, [&](const RangedArray::Axis& a) { return a.range == first ? 0 : a.step; });
  const std::vector<UOp> gates =
      load.src_count() == 3 ? conditions_of(load.src(1)) : std::vector<UOp>();
  for (UOp gate : gates) {
    const auto axis = std::ranges::find(out.axes, gate.is(Op::CMPLT) ? gate.src(0) : UOp(),
                                        &RangedArray::Axis::range);
    if (axis == out.axes.end() || !gate.src(1).is_const()) return {};
    axis->size = std::min(axis->size, gate.src(1).const_int());
  }
  if (out.axes.empty() || out.axes[0].range != first || !is_copied(out)) return {};
  return out;
}

}  // namespace weft
