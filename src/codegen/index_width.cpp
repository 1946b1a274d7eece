// One walk that changes dtypes, with casts where a vector is made of scalars.
#include "codegen/index_width.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"

namespace weft {
namespace {

bool fits_int32(UOp n) {
  const Interval all = bounds(n);
  return all.lo >= std::numeric_limits<int32_t>::min() &&
         all.hi <= std::numeric_limits<int32_t>::max();
}

bool is_index_vector(UOp n) { return n.dtype().is_index() && n.dtype().is_vector(); }

}  // namespace

UOp index_width(UOp sink, const Target& target) {
  Arena& arena = sink.arena();
  const std::vector<UOp> order = toposort(sink);
  const bool scalars_too = target.narrow_indices;
  const bool is_narrow = std::ranges::all_of(order, [&](UOp n) {
    if (!is_index_vector(n) && !(scalars_too && n.dtype().is_index())) return true;
    return fits_int32(n) && std::ranges::all_of(n.srcs(), [](UOp s) {
             return !s.dtype().is_index() || fits_int32(s);
           });
  });
  const auto widened = [&](DType type) {
    if (!type.is_index()) return type;
    const Scalar scalar =
        is_narrow && (scalars_too || type.is_vector()) ? Scalar::kInt32 : Scalar::kInt64;
    return DType{scalar, type.space, type.lanes};
  };
  return rebuild(sink, [&](UOp n, std::vector<UOp>& srcs) {
    const DType type = widened(n.dtype());
    if (n.is(Op::VECTORIZE)) {
      for (UOp& s : srcs) {
        if (s.dtype().scalar == type.scalar) continue;
        s = s.is_const() ? arena.make(Op::CONST, type.element(), {}, Arg::bits(s.bits()))
                         : arena.make(Op::CAST, type.element().vec(s.dtype().lanes), {s});
      }
    }
    if (n.is(Op::GEP) && srcs[0].dtype().scalar != type.scalar) {  // a lane of a narrow vector
      const UOp lane = arena.with_srcs(n, srcs, srcs[0].dtype().vec(type.lanes));
      return arena.make(Op::CAST, type, {lane});
    }
    return type == n.dtype() ? arena.with_srcs(n, srcs) : arena.with_srcs(n, srcs, type);
  });
}

}  // namespace weft
