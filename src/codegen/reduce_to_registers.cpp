// From the innermost REDUCE outwards.
#include "codegen/reduce_to_registers.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "codegen/across_threads.h"
#include "codegen/places.h"
#include "codegen/replace_ranges.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

class Reduction {
 public:
  Reduction(UOp reduce, const Target& target)
      : reduce_(reduce), arena_(reduce.arena()), op_(reduce.arg_op()), target_(target) {
    for (UOp r : reduce.srcs().subspan(1)) {
      if (!r.is(Op::RANGE)) continue;
      switch (r.axis()) {
        case AxisType::kUnroll: unrolls_.push_back(r); break;
        case AxisType::kGroupReduce: groups_.push_back(r); break;
        case AxisType::kLane: lanes_.push_back(r); break;
        case AxisType::kLocal: threads_.push_back(r); break;
        default: loops_.push_back(r);
      }
    }
    const std::span<const UOp> open = ranges_of(reduce);
    around_.assign(open.begin(), open.end());
    around_.insert(around_.end(), lanes_.begin(), lanes_.end());
    around_.insert(around_.end(), threads_.begin(), threads_.end());
  }

  UOp lower() {
    // A sum of floats begins with +0: one of -0 alone is +0, in lanes too.
    const bool has_begin = op_ == Op::ADD && reduce_.dtype().is_float();
    if (loops_.empty() && unrolls_.empty() && groups_.empty() && threads_.empty() && !has_begin) {
      return reduce_;
    }
    std::vector<UOp> parts;
    for (const RangePlace& place : places_of(groups_)) {
      parts.push_back(accumulate(replace_ranges(reduce_.src(0), place, Registers::kOwn)));
    }
    const UOp all = over_lanes(combine_in_pairs(op_, parts));
    return threads_.empty() ? all : reduce_across_threads(all, op_, threads_);
  }

 private:
  UOp over_lanes(UOp x) const {
    if (lanes_.empty()) return x;
    std::vector<UOp> srcs{x};
    srcs.insert(srcs.end(), lanes_.begin(), lanes_.end());
    return arena_.with_srcs(reduce_, srcs);
  }

  UOp identity() const {
    return arena_.make(Op::CONST, reduce_.dtype(), {},
                       Arg::bits(*identity_bits(op_, reduce_.dtype())));
  }

  UOp accumulate(UOp x) {
    if (loops_.empty()) return take_in(identity(), x);
    const UOp reg =
        arena_.make(Op::DEFINE_REG, reduce_.dtype(), {}, Arg::integer(arena_.fresh_id()));
    const UOp init =
        around_.empty() ? reg.assign(identity()) : after(reg, around_).assign(identity());
    std::vector<UOp> started{init};
    started.insert(started.end(), loops_.begin(), loops_.end());
    const UOp before = after(reg, started);
    return after(reg, end(before.assign(take_in(before, x)), loops_));
  }

  UOp take_in(UOp so_far, UOp x) {
    for (const RangePlace& place : places_of(unrolls_)) {
      so_far = take_one(so_far, replace_ranges(x, place, Registers::kOwn));
    }
    return so_far;
  }

  UOp take_one(UOp so_far, UOp x) const {
    const bool is_product = op_ == Op::ADD && x.is(Op::MUL) && x.dtype().is_float();
    if (is_product && target_.can(Op::MULACC, x.dtype())) {
      return mulacc(x.src(0), x.src(1), so_far);
    }
    return arena_.make(op_, x.dtype(), {so_far, x});
  }

  UOp reduce_;
  Arena& arena_;
  Op op_;
  const Target& target_;
  std::vector<UOp> loops_, unrolls_, groups_, lanes_, threads_, around_;
};

}  // namespace

UOp combine_in_pairs(Op op, std::span<const UOp> values) {
  std::vector<UOp> left(values.begin(), values.end());
  while (left.size() > 1) {
    std::vector<UOp> next;
    for (size_t i = 0; i + 1 < left.size(); i += 2) {
      next.push_back(left[0].arena().make(op, left[i].dtype(), {left[i], left[i + 1]}));
    }
    if (left.size() % 2 == 1) next.push_back(left.back());
    left = std::move(next);
  }
  return left.at(0);
}

UOp reduce_to_registers(UOp sink, const Target& target) {
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    const UOp made = n.arena().with_srcs(n, srcs);
    return made.is(Op::REDUCE) ? Reduction(made, target).lower() : made;
  });
}

}  // namespace weft
