// By memory and by the part of the index that is not constant.
#include "codegen/widen_loads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "symbolic/linear.h"

namespace weft {
namespace {

constexpr int64_t kLeastLanes = 4;

// A lane of a vector LOAD.
struct Lane {
  uint16_t lanes;  // of its vector
  int64_t lane;
};

class Widener {
 public:
  Widener(UOp sink, const Target& target)
      : sink_(sink), arena_(sink.arena()), target_(target), is_found_(sink.arena()) {}

  UOp run() {
    for (UOp n : toposort(sink_)) {
      if (!n.is(Op::VECTORIZE) || n.src(0) == n.src(n.src_count() - 1)) continue;
      for (UOp s : n.srcs()) add(s);
    }
    for (auto& [key, loads] : groups_) widen(loads);
    if (lanes_.empty()) return sink_;
    return rebuild(sink_, [&](UOp n, std::span<const UOp> srcs) {
      const auto at = lanes_.find(n);
      if (at == lanes_.end()) return arena_.with_srcs(n, srcs);
      return element(n, srcs[0], at->second);
    });
  }

 private:
  struct Load {
    int64_t offset;
    UOp node;
  };

  void add(UOp n) {
    const bool is_plain = n.is(Op::LOAD) && n.src_count() == 1 && !n.dtype().is_vector();
    if (!is_plain || is_found_.has(n) || !n.src(0).is(Op::INDEX)) return;
    is_found_.put_number(n, 1);
    std::optional<LinearSum> sum = linear_sum(n.src(0).src(1));
    if (!sum) return;
    const int64_t offset = std::exchange(sum->constant, 0);
    const UOp rest = build_sum(arena_, *sum);
    groups_[{n.src(0).src(0).id(), rest.id()}].push_back({offset, n});
  }

  // Runs of neighbours, cut into the powers of two that the target has.
  void widen(std::vector<Load>& loads) {
    std::ranges::sort(loads, {}, &Load::offset);
    const int64_t most = int64_t(target_.lanes(loads[0].node.dtype()));
    for (size_t begin = 0; begin < loads.size();) {
      size_t end = begin + 1;
      while (end < loads.size() && loads[end].offset == loads[end - 1].offset + 1) end++;
      while (begin < end) {
        const auto run = int64_t(std::bit_floor(end - begin));
        const int64_t lanes = std::min(run, most);
        if (lanes >= kLeastLanes) make_vector(std::span(loads).subspan(begin, size_t(lanes)));
        begin += size_t(std::max<int64_t>(lanes, 1));
      }
    }
  }

  void make_vector(std::span<const Load> loads) {
    const auto lanes = uint16_t(loads.size());
    for (size_t i = 0; i < loads.size(); i++) lanes_[loads[i].node] = {lanes, int64_t(i)};
  }

  // Of a load that is made anew with `pointer`, which waits for what has been made anew, too: the
  // vector is the same node for all of its elements.
  UOp element(UOp load, UOp pointer, Lane at) {
    std::optional<LinearSum> sum = linear_sum(pointer.src(1));
    if (!sum) return arena_.with_srcs(load, std::array{pointer});
    sum->constant -= at.lane;
    const UOp first =
        arena_.with_srcs(pointer, std::array{pointer.src(0), build_sum(arena_, *sum)});
    const UOp address = arena_.make(Op::CAST, first.dtype().vec(at.lanes), {first});
    const UOp vector = arena_.make(Op::LOAD, load.dtype().vec(at.lanes), {address});
    return gep(vector, std::array{at.lane});
  }

  UOp sink_;
  Arena& arena_;
  const Target& target_;
  NodeMap is_found_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Load>> groups_;
  std::unordered_map<UOp, Lane> lanes_;
};

}  // namespace

UOp widen_loads(UOp sink, const Target& target) { return Widener(sink, target).run(); }

}  // namespace weft
