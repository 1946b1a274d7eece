// Counts through loops.
#include "codegen/places.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"

namespace weft {

std::vector<RangePlace> places_of(std::span<const UOp> ranges) {
  std::vector<RangePlace> places{{}};
  for (UOp range : ranges) {
    if (!range.src(0).is_const()) {
      throw CompileError(fmt::format("[lower] {} cannot be unrolled: its size is not constant",
                                     short_form(range)));
    }
    std::vector<RangePlace> longer;
    for (const RangePlace& place : places) {
      for (int64_t i = 0; i < range.src(0).const_int(); i++) {
        longer.push_back(place);
        longer.back().emplace_back(range, index_const(range.arena(), i));
      }
    }
    places = std::move(longer);
  }
  return places;
}

std::vector<UOp> ranges_with(UOp n, AxisType axis) {
  std::vector<UOp> out;
  for (UOp r : n.srcs().subspan(1)) {
    if (r.is(Op::RANGE) && r.axis() == axis) out.push_back(r);
  }
  return out;
}

}  // namespace weft
