// Sources first: a node with a vector among its sources becomes a vector, the others are repeated.
#include "codegen/vectorize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/print.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

bool is_lane(UOp r) { return r.is(Op::RANGE) && r.axis() == AxisType::kLane; }

// The lane range that n stands in, or that it closes.
UOp lane_range_of(UOp n) {
  UOp found;
  const auto look = [&](std::span<const UOp> ranges) {
    for (UOp r : ranges) {
      if (!is_lane(r) || r == found) continue;
      if (found)
        throw InternalError(fmt::format("[vectorize] {} has two lane ranges", short_form(n)));
      found = r;
    }
  };
  look(ranges_of(n));
  if (n.is(Op::END) || n.is(Op::REDUCE)) look(n.srcs().subspan(1));
  return found;
}

UOp repeated(UOp x, uint16_t lanes) {
  if (x.dtype().lanes == lanes) return x;
  Arena& arena = x.arena();
  const DType type = x.dtype().vec(lanes);
  if (x.is_const()) return arena.make(Op::CONST, type, {}, Arg::bits(x.bits()));
  return arena.make(Op::VECTORIZE, type, std::vector<UOp>(lanes, x));
}

UOp lane_at(UOp x, int64_t lane) {
  if (!x.dtype().is_vector()) return x;
  if (x.is_const()) return x.arena().make(Op::CONST, x.dtype().element(), {}, Arg::bits(x.bits()));
  if (x.is(Op::VECTORIZE)) return x.src(size_t(lane));
  return gep(x, std::array{lane});
}

UOp lanes_from(UOp x, int64_t first, int64_t count) {
  std::vector<int64_t> lanes(static_cast<size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return gep(x, lanes);
}

// Where the lanes of an access lie.
struct Address {
  UOp memory;                                  // made anew
  UOp index;                                   // as it was, a scalar
  UOp lanes;                                   // made anew, a vector if it depends on the range
  std::optional<int64_t> step = std::nullopt;  // from lane to lane, where that is constant
};

class Vectorizer {
 public:
  explicit Vectorizer(UOp sink) : sink_(sink), arena_(sink.arena()) {}

  UOp run() {
    return rebuild(sink_, [&](UOp n, std::vector<UOp>& srcs) {
      range_ = lane_range_of(n);
      if (n.is(Op::LANE)) return make_lane(n, srcs);
      if (!range_) return flattened(n, srcs);
      lanes_ = uint16_t(range_.src(0).const_int());
      return make(n, srcs);
    });
  }

 private:
  UOp make(UOp n, std::vector<UOp>& srcs) const {
    using Maker = UOp (Vectorizer::*)(UOp n, std::vector<UOp>& srcs) const;
    // What is no elementwise op.
    static constexpr std::pair<Op, Maker> kMakers[] = {
        {Op::RANGE, &Vectorizer::make_range},   {Op::INDEX, &Vectorizer::make_index},
        {Op::LOAD, &Vectorizer::make_load},     {Op::STORE, &Vectorizer::make_store},
        {Op::AFTER, &Vectorizer::make_after},   {Op::END, &Vectorizer::make_end},
        {Op::REDUCE, &Vectorizer::make_reduce}, {Op::FETCH, &Vectorizer::make_fetch}};
    for (const auto& [op, maker] : kMakers) {
      if (n.is(op)) return (this->*maker)(n, srcs);
    }
    return elementwise(n, srcs);
  }

  UOp make_range(UOp n, std::vector<UOp>& srcs) const {
    return is_lane(n) ? numbers() : arena_.with_srcs(n, srcs);
  }

  // Of lanes until its access is made.
  UOp make_index(UOp n, std::vector<UOp>& srcs) const { return arena_.with_srcs(n, srcs); }

  // Of a whole vector, which does not stand in the lane range.
  UOp make_lane(UOp n, std::span<const UOp> srcs) const {
    std::vector<int64_t> lanes;
    for (int64_t i = 0; i < (range_ ? range_.src(0).const_int() : 1); i++) {
      UOp index = n.src(1);
      if (range_) {
        const std::pair<UOp, UOp> place{range_, index_const(arena_, i)};
        index = replace_ranges(index, {&place, 1});
      }
      index = simplify(index);
      if (!index.is_const()) {
        throw InternalError(fmt::format("[vectorize] {} is not constant", short_form(n.src(1))));
      }
      lanes.push_back(index.const_int());
    }
    return gep(srcs[0], lanes);
  }

  UOp numbers() const {
    std::vector<UOp> all;
    all.reserve(lanes_);
    for (int64_t i = 0; i < lanes_; i++) all.push_back(index_const(arena_, i));
    return vectorize(all);
  }

  static UOp vectorize(std::span<const UOp> lanes) {
    if (lanes.size() == 1) return lanes[0];
    return lanes[0].arena().make(Op::VECTORIZE, lanes[0].dtype().vec(uint16_t(lanes.size())),
                                 lanes);
  }

  UOp elementwise(UOp n, std::vector<UOp>& srcs) const {
    if (!is_elementwise(n.op())) {
      throw InternalError(fmt::format("[vectorize] {} stands in a lane range", short_form(n)));
    }
    for (UOp& s : srcs) s = repeated(s, lanes_);
    return arena_.with_srcs(n, srcs, n.dtype().vec(lanes_));
  }

  // ---- memory

  Address address_of(UOp access, UOp pointer) const {
    if (!pointer.is(Op::INDEX)) throw InternalError("[vectorize] an address is no INDEX");
    Address out{pointer.src(0), access.src(0).src(1), pointer.src(1)};
    if (!is_in_scope(range_, out.index)) {
      out.step = 0;
    } else if (const std::optional<LinearSum> sum = linear_sum(out.index)) {
      int64_t step = 0;
      for (const Term& term : sum->terms) {
        if (term.base == range_) {
          step = term.coefficient;
        } else if (is_in_scope(range_, term.base)) {
          return out;
        }
      }
      out.step = step;
    }
    return out;
  }

  UOp index_at(const Address& address, int64_t lane) const {
    if (!is_in_scope(range_, address.index)) return address.lanes;
    if (reads_memory(address.index)) return lane_at(address.lanes, lane);
    const std::pair<UOp, UOp> place{range_, index_const(arena_, lane)};
    return simplify(replace_ranges(address.index, {&place, 1}), nullptr, Loads::kStay);
  }

  // Whether an index is more than arithmetic on loops.
  static bool reads_memory(UOp index) {
    const std::vector<UOp> order = toposort(index);
    return std::ranges::any_of(order, [](UOp n) { return n.is(Op::LOAD) || n.is(Op::AFTER); });
  }

  UOp pointer_at(const Address& address, UOp index) const {
    return arena_.make(Op::INDEX, address.memory.dtype(), {address.memory, index});
  }
  UOp vector_pointer(const Address& address, UOp index) const {
    return arena_.make(Op::CAST, address.memory.dtype().vec(lanes_), {pointer_at(address, index)});
  }

  UOp make_load(UOp n, std::vector<UOp>& srcs) const {
    const Address address = address_of(n, srcs[0]);
    const bool has_gate = n.src_count() == 3;
    const bool is_uniform =
        has_gate && (srcs[1].dtype().is_vector() || srcs[2].dtype().is_vector());
    if (address.step == 0 && !is_uniform) return arena_.with_srcs(n, srcs);
    const bool is_backward = address.step == -1 && !has_gate;
    if (address.step == 1 || is_backward) {
      const UOp first = index_at(address, is_backward ? lanes_ - 1 : 0);
      std::vector<UOp> of_vector{vector_pointer(address, first)};
      if (has_gate) of_vector.insert(of_vector.end(), {srcs[1], repeated(srcs[2], lanes_)});
      const UOp vector = arena_.with_srcs(n, of_vector, n.dtype().vec(lanes_));
      return is_backward ? reversed(vector) : vector;
    }
    std::vector<UOp> all;
    for (int64_t i = 0; i < lanes_; i++) {
      std::vector<UOp> of_lane{pointer_at(address, index_at(address, i))};
      if (has_gate) of_lane.insert(of_lane.end(), {lane_at(srcs[1], i), lane_at(srcs[2], i)});
      all.push_back(arena_.with_srcs(n, of_lane));
    }
    return vectorize(all);
  }

  UOp make_store(UOp n, std::vector<UOp>& srcs) const {
    if (is_register(n.src(0))) return store_register(srcs);
    const Address address = address_of(n, srcs[0]);
    if (address.step == 1) {
      std::vector<UOp> of_vector{vector_pointer(address, index_at(address, 0)),
                                 repeated(srcs[1], lanes_)};
      if (n.src_count() == 3) of_vector.push_back(srcs[2]);
      return arena_.with_srcs(n, of_vector);
    }
    std::vector<UOp> all;
    for (int64_t i = 0; i < lanes_; i++) {
      std::vector<UOp> of_lane{pointer_at(address, index_at(address, i)), lane_at(srcs[1], i)};
      if (n.src_count() == 3) of_lane.push_back(lane_at(srcs[2], i));
      all.push_back(arena_.with_srcs(n, of_lane));
    }
    return arena_.make(Op::SINK, dtypes::void_, all);
  }

  // Of a value whose lanes are its place's.
  UOp make_fetch(UOp n, std::vector<UOp>& srcs) const {
    srcs[1] = repeated(srcs[1], lanes_);
    return arena_.with_srcs(n, srcs);
  }

  UOp reversed(UOp vector) const {
    std::vector<int64_t> lanes(lanes_);
    for (size_t i = 0; i < lanes.size(); i++) lanes[i] = int64_t(lanes.size() - 1 - i);
    return gep(vector, lanes);
  }

  // ---- registers and order

  UOp store_register(std::span<const UOp> srcs) const {
    const UOp target = register_of(srcs[0]);
    return arena_.make(Op::STORE, target.dtype(), {target, repeated(srcs[1], lanes_)});
  }

  // A bare register is not in the scope of anything: its users say that it has lanes.
  UOp register_of(UOp n) const {
    if (!n.is(Op::DEFINE_REG)) return n;
    return arena_.make(Op::DEFINE_REG, n.dtype().vec(lanes_), {}, Arg::integer(n.number()));
  }

  UOp make_after(UOp n, std::vector<UOp>& srcs) const {
    std::vector<UOp> all{register_of(srcs[0])};
    for (size_t i = 1; i < srcs.size(); i++) {
      if (is_lane(n.src(i))) continue;
      if (srcs[i].is(Op::SINK)) {
        all.insert(all.end(), srcs[i].srcs().begin(), srcs[i].srcs().end());
      } else {
        all.push_back(srcs[i]);
      }
    }
    if (all.size() == 1) return all[0];
    return arena_.with_srcs(n, all, all[0].dtype());
  }

  UOp make_end(UOp n, std::vector<UOp>& srcs) const {
    std::vector<UOp> loops;
    for (size_t i = 1; i < srcs.size(); i++) {
      if (!is_lane(n.src(i))) loops.push_back(srcs[i]);
    }
    const std::vector<UOp> single{srcs[0]};
    const std::span<const UOp> effects = srcs[0].is(Op::SINK) ? srcs[0].srcs() : single;
    std::vector<UOp> ends;
    for (UOp effect : effects) {
      std::vector<UOp> of_end{effect};
      of_end.insert(of_end.end(), loops.begin(), loops.end());
      ends.push_back(loops.empty() ? effect : arena_.with_srcs(n, of_end));
    }
    return ends.size() == 1 ? ends[0] : arena_.make(Op::SINK, dtypes::void_, ends);
  }

  UOp make_reduce(UOp n, std::vector<UOp>& srcs) const {
    if (std::ranges::find(n.srcs(), range_) == n.srcs().end()) {
      throw InternalError("[vectorize] a REDUCE over loops is left");
    }
    UOp x = repeated(srcs[0], lanes_);
    for (int64_t left = lanes_; left > 1; left /= 2) {
      const UOp low = lanes_from(x, 0, left / 2), high = lanes_from(x, left / 2, left / 2);
      x = arena_.make(n.arg_op(), low.dtype(), {low, high});
    }
    return x;
  }

  UOp sink_;
  Arena& arena_;
  UOp range_;
  uint16_t lanes_ = 1;
};

}  // namespace

UOp vectorize(UOp sink) { return Vectorizer(sink).run(); }

}  // namespace weft
