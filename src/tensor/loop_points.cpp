// Evaluates the index, the gate and the sizes of the loops: in all iterations where they are few,
// else in those at the ends of the loops and some between.
#include "tensor/loop_points.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "ir/scope.h"
#include "ir/walk.h"

namespace weft {
namespace {

constexpr int64_t kMostSteps = int64_t(1) << 16;  // nodes that are evaluated for one access
constexpr size_t kMostNodes = 256;
constexpr size_t kMostSources = 3;

bool is_loop(UOp n) { return n.is(Op::RANGE) || n.is(Op::SPECIAL); }

class Evaluation {
 public:
  explicit Evaluation(const LoopPlaces& places) : places_(places), step_of_(places.index.arena()) {
    add_all(places.index);
    if (places.gate) add_all(places.gate);
    for (UOp r : ranges_of(places.within)) add_all(r);
    is_known_ = is_known_ && steps_.size() <= kMostNodes;
  }

  std::optional<PlaceOutside> run() {
    if (!is_known_) return {};
    const int64_t most = kMostSteps / int64_t(steps_.size());
    int64_t all = 1;
    for (const Loop& loop : loops_) {
      if (loop.most < 1) return {};
      if (__builtin_mul_overflow(all, loop.most, &all)) all = INT64_MAX;
    }
    for (int64_t i = 0; i < std::min(all, most); i++) {
      if (all <= most) {
        choose_in_order(i);
      } else {
        choose_some(uint64_t(i));
      }
      if (std::optional<PlaceOutside> found = look()) return found;
    }
    return {};
  }

 private:
  struct Step {
    UOp node;
    std::array<size_t, kMostSources> srcs{};
    uint64_t value = 0;
  };
  struct Loop {
    size_t step;
    int64_t most;  // iterations
    int64_t at = 0;
  };

  void add_all(UOp root) {
    visit_missing(
        root, [&](UOp n) { return !is_known_ || step_of_.has(n); }, [&](UOp n) { add(n); });
  }

  // Sources of a loop are sizes; what else there is must be arithmetic on integers.
  void add(UOp n) {
    const DType type = n.dtype();
    const bool is_number = !type.is_float() && !type.is_void() && !type.is_pointer() &&
                           !type.is_vector() && n.src_count() <= kMostSources;
    is_known_ &= is_number && (is_loop(n) || n.is_const() || is_elementwise(n.op()));
    if (!is_known_) return;
    Step step{.node = n};
    for (size_t i = 0; i < n.src_count(); i++) step.srcs[i] = step_of_.number(n.src(i)) - 1;
    if (n.is_const()) step.value = n.bits();
    steps_.push_back(step);
    step_of_.put_number(n, steps_.size());
    if (!is_loop(n)) return;
    const int64_t most = bounds(n.src(0)).hi;
    is_known_ &= most != Interval::kHigh;
    loops_.push_back({steps_.size() - 1, most});
  }

  void choose_in_order(int64_t number) {
    for (Loop& loop : loops_) {
      loop.at = number % loop.most;
      number /= loop.most;
    }
  }

  // First the ends of all loops, then iterations as they come.
  void choose_some(uint64_t number) {
    const size_t corners = std::min<size_t>(loops_.size(), 10);
    for (size_t i = 0; i < loops_.size(); i++) {
      Loop& loop = loops_[i];
      if (number < uint64_t(1) << corners) {
        loop.at = (number >> i & 1) != 0 ? loop.most - 1 : 0;
      } else {
        loop.at = int64_t(random() % uint64_t(loop.most));
      }
    }
  }
  uint64_t random() {  // xorshift
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  // Whether the chosen iteration happens and every number in it has a value.
  bool evaluate() {
    size_t loop = 0;
    for (Step& step : steps_) {
      const UOp n = step.node;
      if (n.is_const()) continue;
      if (is_loop(n)) {
        const Loop& here = loops_[loop++];
        if (here.at >= int64_t(steps_[step.srcs[0]].value)) return false;
        step.value = uint64_t(here.at);
        continue;
      }
      std::array<uint64_t, kMostSources> operands{};
      for (size_t i = 0; i < n.src_count(); i++) operands[i] = steps_[step.srcs[i]].value;
      const std::optional<uint64_t> value =
          evaluate_scalar(n.op(), n.src(n.src_count() - 1).dtype(), n.dtype(),
                          std::span(operands).first(n.src_count()));
      if (!value) return false;
      step.value = *value;
    }
    return true;
  }

  std::optional<PlaceOutside> look() {
    if (!evaluate() || (places_.gate && value_of(places_.gate) == 0)) return {};
    int64_t first = 0;
    if (__builtin_mul_overflow(int64_t(value_of(places_.index)), places_.unit, &first)) return {};
    if (first >= 0 && first <= places_.count - places_.width) return {};
    PlaceOutside out{first < 0 ? first : std::max(first, places_.count), {}};
    for (const Loop& loop : loops_) {
      out.where += fmt::format("{}{} = {}", out.where.empty() ? "" : ", ",
                               short_form(steps_[loop.step].node), loop.at);
    }
    return out;
  }

  uint64_t value_of(UOp n) const { return steps_[step_of_.number(n) - 1].value; }

  const LoopPlaces& places_;
  NodeMap step_of_;  // 1 + the step of a node
  std::vector<Step> steps_;
  std::vector<Loop> loops_;  // in the order of their steps
  bool is_known_ = true;
  uint64_t state_ = 0x9e3779b97f4a7c15;
};

}  // namespace

std::optional<PlaceOutside> find_outside(const LoopPlaces& places) {
  return Evaluation(places).run();
}

}  // namespace weft
