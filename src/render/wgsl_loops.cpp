// Iterations counted from the bounds of sizes.
#include "render/wgsl_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"

namespace weft {
namespace {

constexpr int64_t kMostCopies = 64;

struct Count {
  double runs = 1;       // of its body, by one thread
  bool is_inner = true;  // it has no loop and no barrier in it
};

}  // namespace

std::unordered_map<UOp, int64_t> loop_copies(UOp linear, int64_t most_iterations) {
  std::unordered_map<UOp, Count> counts;
  std::vector<UOp> open;
  for (UOp n : linear.srcs()) {
    if (n.is(Op::END)) open.resize(open.size() - (n.src_count() - 1));
    const bool is_range = n.is(Op::RANGE);
    if ((is_range || n.is(Op::BARRIER)) && !open.empty()) counts[open.back()].is_inner = false;
    if (!is_range) continue;
    const double around = open.empty() ? 1 : counts[open.back()].runs;
    counts[n].runs = around * double(std::max<int64_t>(bounds(n.src(0)).hi, 0));
    open.push_back(n);
  }
  double inner = 0, outer = 0;
  for (const auto& [range, count] : counts) (count.is_inner ? inner : outer) += count.runs;
  const double most = double(most_iterations) * 0.99;
  std::unordered_map<UOp, int64_t> out;
  if (inner + outer <= most) return out;
  const double least = outer < most ? inner / (most - outer) : HUGE_VAL;
  if (least > double(kMostCopies)) {
    throw DeviceError(fmt::format(
        "[WEBGPU] a thread of this kernel runs up to {:.0f} iterations of loops; the driver ends "
        "them after {}, or {} with {} copies of their bodies; use another device",
        inner + outer, most_iterations, most_iterations * kMostCopies, kMostCopies));
  }
  const auto copies = int64_t(std::bit_ceil(uint64_t(std::ceil(least))));
  for (const auto& [range, count] : counts) {
    if (count.is_inner) out[range] = copies;
  }
  return out;
}

}  // namespace weft
