// partial -> STORE to local memory, END of the threads; LOADs of it, combined in pairs.
#include "codegen/across_threads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/reduce_to_registers.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"

namespace weft {
namespace {

constexpr int64_t kMostAtOnce = 8;  // parts that every thread combines by itself

// The place of some ranges in row-major order.
struct Flat {
  UOp at;
  int64_t size = 1;
};
Flat flat_place(Arena& arena, std::span<const UOp> ranges) {
  Flat out{index_const(arena, 0)};
  for (UOp r : ranges) {
    const int64_t size = r.src(0).const_int();
    out.at = out.at * size + r;
    out.size *= size;
  }
  return out;
}

// The least divisor of n whose square is at least n, or `most`, a divisor, where it is less.
int64_t row_length(int64_t n, int64_t most) {
  int64_t length = 1;
  while (length * length < n || n % length != 0) length++;
  return std::min(length, most);
}

// Ranges that become places, some of which have copies of what stands in them.
bool may_be_copied(AxisType axis) {
  return axis == AxisType::kUnroll || axis == AxisType::kGroupReduce || axis == AxisType::kGlobal;
}

class AcrossThreads {
 public:
  AcrossThreads(UOp partial, Op op, std::span<const UOp> threads)
      : arena_(partial.arena()), op_(op), type_(partial.dtype()) {
    std::vector<UOp> others;
    for (UOp r : ranges_of(partial)) {
      const bool has_own = r.axis() == AxisType::kLocal || r.axis() == AxisType::kLane;
      if (has_own && std::ranges::find(threads, r) == threads.end()) others.push_back(r);
      if (may_be_copied(r.axis())) copied_.push_back(r);
    }
    others_ = flat_place(arena_, others);
    parts_ = flat_place(arena_, threads);
  }

  UOp run(UOp partial, std::span<const UOp> threads) {
    const UOp all = left_by(partial, parts_, threads);
    if (parts_.size <= kMostAtOnce) return combined(all, parts_.size, 0, 1, parts_.size);
    // The threads of a row are some of those along the innermost range: a group has no others.
    const int64_t length = row_length(parts_.size, threads.back().src(0).const_int());
    if (length == parts_.size || length == 1) return combined(all, parts_.size, 0, 1, parts_.size);
    const UOp row = arena_.make(Op::RANGE, dtypes::index, {index_const(arena_, length)},
                                Arg::range(arena_.fresh_id(), AxisType::kLocal));
    const UOp some = combined(all, parts_.size, row, length, parts_.size / length);
    return combined(left_by(some, {row, length}, {&row, 1}), length, 0, 1, length);
  }

 private:
  // Local memory once every thread has left its part. It stands in the ranges of which copies will
  // be made: each copy gets memory of its own.
  UOp left_by(UOp part, const Flat& place, std::span<const UOp> threads) {
    const UOp memory = define_local(arena_, type_, others_.size * place.size, arena_.fresh_id());
    const UOp at = others_.at * place.size + place.at;
    const UOp opened = copied_.empty() ? memory : after(memory, copied_);
    return after(memory, end(index(opened, at).assign(part), threads));
  }

  // Parts first, first + step, ... of the thread's own `row_size` ones.
  UOp combined(UOp memory, int64_t row_size, UOp first, int64_t step, int64_t count) {
    std::vector<UOp> parts;
    parts.reserve(size_t(count));
    for (int64_t i = 0; i < count; i++) {
      parts.push_back(load(index(memory, others_.at * row_size + first + i * step)));
    }
    return combine_in_pairs(op_, parts);
  }
  UOp combined(UOp memory, int64_t row_size, int64_t first, int64_t step, int64_t count) {
    return combined(memory, row_size, index_const(arena_, first), step, count);
  }

  Arena& arena_;
  Op op_;
  DType type_;
  Flat others_, parts_;
  std::vector<UOp> copied_;
};

}  // namespace

UOp reduce_across_threads(UOp partial, Op op, std::span<const UOp> threads) {
  return AcrossThreads(partial, op, threads).run(partial, threads);
}

}  // namespace weft
