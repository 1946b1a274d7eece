// The order of what stands in one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"

namespace weft {

// An END seen from inside of some of its loops: its range `level` and those after it are still to
// be opened. At kWhole, or past the last range, it is the effect itself.
struct Closing {
  static constexpr size_t kWhole = SIZE_MAX;
  UOp node;
  size_t level = 0;

  bool is_loop() const;
  UOp range() const { return node.src(level + 1); }
  Closing next() const { return {node, level + 1}; }
  UOp effect() const;  // when there is no loop left: what is done
};

// A node, or a loop with all that it closes, or a write to a register that has a gate with what
// only it needs: a block that is skipped where the gate is off.
struct RegionItem {
  UOp node{};
  std::vector<Closing> closing{};
  std::vector<UOp> block{};

  bool is_loop() const { return !closing.empty(); }
  UOp range() const { return closing[0].range(); }
};

// What must run in each iteration of `range` (none: the whole kernel) so that `wanted` is done, in
// an order that respects sources, AFTERs, and that reads come before writes to the same memory that
// they do not stand AFTER. ENDs of one RANGE are one loop, unless that leaves no order.
std::vector<RegionItem> order_region(UOp range, std::span<const Closing> wanted, Arena& arena);

}  // namespace weft
