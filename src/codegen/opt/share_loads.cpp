// LOAD(x at i) becomes LOAD(AFTER(local, END(STORE(local[f], x at f), f))[i]), where f runs over
// the places of all threads, and this thread does every T-th of them.
#include "codegen/opt/share_loads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "codegen/opt/loops.h"
#include "codegen/replace_ranges.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/scope.h"
#include "ir/walk.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

constexpr int64_t kVectorBytes = 16;  // that a thread copies at once
constexpr int64_t kBankBytes = 128;   // rows that are a multiple of this apart share their banks
constexpr int64_t kMostCopies = 16;   // accesses of a fill without a loop

// The loops around `range` in what closes it, and itself.
std::vector<UOp> loops_around(UOp sink, UOp range) {
  std::vector<UOp> out;
  const auto add = [&](UOp r) {
    if (std::ranges::find(out, r) == out.end()) out.push_back(r);
  };
  for (UOp closer : closers_of(sink, range)) {
    for (UOp r : ranges_of(closer)) add(r);
    for (UOp r : closer.srcs().subspan(1)) {
      add(r);
      if (r == range) break;
    }
  }
  return out;
}

bool is_thread(UOp r) { return r.axis() == AxisType::kLocal; }

// Whether places of the range lie in one workgroup at one time.
bool is_in_group(UOp r) {
  return is_thread(r) || r.axis() == AxisType::kUpcast || r.axis() == AxisType::kLane;
}

// The ranges whose places of the load are copied together, the largest step in memory first.
std::vector<UOp> places_of(UOp load, std::span<const UOp> around) {
  std::vector<UOp> out;
  for (UOp r : ranges_of(load)) {
    // A global loop is other groups.
    const bool is_inside =
        r.axis() != AxisType::kGlobal && std::ranges::find(around, r) == around.end();
    if (is_inside || is_in_group(r)) out.push_back(r);
  }
  const auto step = [&](UOp r) { return std::abs(step_of(load, r).value_or(0)); };
  std::ranges::stable_sort(out, [&](UOp a, UOp b) { return step(a) > step(b); });
  return out;
}

// The threads of a group: the local ranges of the one END that there is, the last of which steps
// fastest. None where a reduction has some of its own.
std::vector<UOp> threads_of(UOp sink) {
  std::vector<UOp> out;
  if (sink.src_count() != 1 || !sink.src(0).is(Op::END)) return out;
  for (UOp r : sink.src(0).srcs().subspan(1)) {
    if (is_thread(r)) out.push_back(r);
  }
  for (UOp n : toposort(sink)) {
    if (n.is(Op::RANGE) && is_thread(n) && std::ranges::find(out, n) == out.end()) return {};
  }
  return out;
}

int64_t size_of(UOp range) { return range.src(0).const_int(); }

class Sharer {
 public:
  Sharer(UOp sink, UOp range)
      : arena_(sink.arena()), around_(loops_around(sink, range)), next_id_(free_range_id(sink)) {
    thread_ = index_const(arena_, 0);
    for (UOp r : threads_of(sink)) {
      thread_ = thread_ * size_of(r) + r;
      threads_ *= size_of(r);
      fastest_ = r;
    }
  }

  UOp shared(UOp read) {
    const std::vector<UOp> ranges = places_of(read, around_);
    int64_t count = 1;
    for (UOp r : ranges) count *= size_of(r);
    const int64_t lanes = lanes_for(read, ranges, count);
    const std::vector<int64_t> strides = strides_of(read, ranges, lanes);

    const int64_t steps = (count + threads_ * lanes - 1) / (threads_ * lanes);
    const AxisType axis = steps <= kMostCopies ? AxisType::kUpcast : AxisType::kLoop;
    const UOp step = new_range(steps, axis), lane = new_range(lanes, AxisType::kLane);
    const UOp flat = (step * threads_ + thread_) * lanes + lane;
    std::vector<std::pair<UOp, UOp>> places;
    UOp left = flat;
    for (size_t i = ranges.size(); i-- > 0;) {
      places.emplace_back(ranges[i], i == 0 ? left : left % size_of(ranges[i]));
      left = left / size_of(ranges[i]);
    }
    for (auto& [r, at] : places) at = simplify(at, nullptr, Loads::kStay);
    const UOp local =
        define_local(arena_, read.dtype(), strides[0] * size_of(ranges[0]), arena_.fresh_id());
    UOp value = replace_ranges(read, places), store;
    UOp at = index_const(arena_, 0);
    for (size_t i = 0; i < ranges.size(); i++) {
      for (const auto& [r, place] : places) {
        if (r == ranges[i]) at = at + place * strides[i];
      }
    }
    const UOp to = index(local, simplify(at, nullptr, Loads::kStay));
    if (count % (threads_ * lanes) == 0) {
      store = to.assign(value);
    } else {
      const UOp gate = flat < count;
      value = gated(value, gate);
      store = to.assign(value, gate);
    }
    std::vector<UOp> closed;
    if (steps > 1) closed.push_back(step);
    if (lanes > 1) closed.push_back(lane);
    const UOp filled = closed.empty() ? store : end(store, closed);
    return load(index(after(local, filled), address(ranges, strides)));
  }

 private:
  UOp new_range(int64_t size, AxisType axis) {
    if (size == 1) return index_const(arena_, 0);
    return arena_.make(Op::RANGE, dtypes::index, {index_const(arena_, size)},
                       Arg::range(next_id_++, axis));
  }

  // How many of the ranges, from the last on, lie in order in the argument's memory: a row.
  static size_t ranges_of_row(UOp read, std::span<const UOp> ranges) {
    int64_t in_order = 1;
    for (size_t i = ranges.size(); i-- > 0;) {
      if (step_of(read, ranges[i]) != in_order) return ranges.size() - 1 - i;
      in_order *= size_of(ranges[i]);
    }
    return ranges.size();
  }

  // Threads that step together are in different rows.
  bool is_read_across(UOp read, std::span<const UOp> ranges) const {
    const auto at = std::ranges::find(ranges, fastest_);
    return at != ranges.end() &&
           size_t(ranges.end() - at) > std::max<size_t>(ranges_of_row(read, ranges), 1);
  }

  // Vectors are copied where memory lies in order and threads read it in that order, too.
  int64_t lanes_for(UOp read, std::span<const UOp> ranges, int64_t count) const {
    const int64_t lanes = kVectorBytes / read.dtype().item_bytes();
    int64_t in_order = 1;
    for (UOp r : ranges.last(ranges_of_row(read, ranges))) in_order *= size_of(r);
    const bool can_copy = lanes > 1 && in_order % lanes == 0 && count % (threads_ * lanes) == 0 &&
                          read.src_count() == 1 && !is_read_across(read, ranges);
    return can_copy ? lanes : 1;
  }

  // Row-major; rows that would share their banks are made longer.
  static std::vector<int64_t> strides_of(UOp read, std::span<const UOp> ranges, int64_t lanes) {
    const size_t row = ranges_of_row(read, ranges);
    std::vector<int64_t> strides(ranges.size());
    int64_t stride = 1;
    for (size_t i = ranges.size(); i-- > 0;) {
      const bool begins_row = row > 0 && ranges.size() - i == row + 1;
      if (begins_row && stride * read.dtype().item_bytes() % kBankBytes == 0) stride += lanes;
      strides[i] = stride;
      stride *= size_of(ranges[i]);
    }
    return strides;
  }

  UOp address(std::span<const UOp> ranges, std::span<const int64_t> strides) const {
    UOp at = index_const(arena_, 0);
    for (size_t i = 0; i < ranges.size(); i++) at = at + ranges[i] * strides[i];
    return simplify(at, nullptr, Loads::kStay);
  }

  UOp gated(UOp read, UOp gate) const {
    if (read.src_count() == 3) return load(read.src(0), read.src(1) & gate, read.src(2));
    return load(read.src(0), gate, arena_.make(Op::CONST, read.dtype(), {}, Arg::bits(0)));
  }

  Arena& arena_;
  std::vector<UOp> around_;
  int64_t next_id_;
  UOp thread_, fastest_;
  int64_t threads_ = 1;
};

}  // namespace

std::vector<UOp> loads_to_share(UOp sink, int64_t argument, UOp range) {
  std::vector<UOp> out;
  if (threads_of(sink).empty()) return out;
  const std::vector<UOp> around = loops_around(sink, range);
  for (UOp n : toposort(sink)) {
    if (!n.is(Op::LOAD) || !is_in_scope(range, n)) continue;
    const UOp base = place_of(n.src(0)).base;
    if (!base.is(Op::DEFINE_GLOBAL) || base.number() != argument) continue;
    const std::vector<UOp> ranges = places_of(n, around);
    const bool is_constant = std::ranges::all_of(ranges, [](UOp r) { return r.src(0).is_const(); });
    if (!ranges.empty() && is_constant) out.push_back(n);
  }
  return out;
}

UOp share_loads(UOp sink, int64_t argument, UOp range) {
  Sharer sharer(sink, range);
  std::vector<std::pair<UOp, UOp>> pairs;
  for (UOp n : loads_to_share(sink, argument, range)) pairs.emplace_back(n, sharer.shared(n));
  return rebuild(sink, [&](UOp n, std::span<const UOp> srcs) {
    for (const auto& [from, to] : pairs) {
      if (n == from) return to;
    }
    return sink.arena().with_srcs(n, srcs);
  });
}

}  // namespace weft
