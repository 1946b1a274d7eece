// Each copy is the body with constants for its ranges; what does not depend on them is shared.
#include "codegen/expand.h"

#include <algorithm>
#include <span>
#include <vector>

#include "codegen/places.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

UOp copies_of(UOp end) {
  const std::vector<UOp> upcasts = ranges_with(end, AxisType::kUpcast);
  if (upcasts.empty()) return end;
  Arena& arena = end.arena();
  std::vector<UOp> copies;
  for (const RangePlace& place : places_of(upcasts)) {
    std::vector<UOp> srcs{replace_ranges(end.src(0), place, Registers::kOwn)};
    for (UOp r : end.srcs().subspan(1)) {
      if (std::ranges::find(upcasts, r) == upcasts.end()) srcs.push_back(r);
    }
    copies.push_back(srcs.size() == 1 ? srcs[0] : arena.with_srcs(end, srcs));
  }
  return arena.make(Op::SINK, dtypes::void_, copies);
}

}  // namespace

UOp expand(UOp sink) {
  return rebuild(sink, [](UOp n, std::span<const UOp> srcs) {
    const UOp made = flattened(n, srcs);
    if (!n.is(Op::END)) return made;
    if (made.is(Op::END)) return copies_of(made);
    std::vector<UOp> all;
    for (UOp end : made.srcs()) all.push_back(copies_of(end));
    return flattened(made, all);
  });
}

}  // namespace weft
