// Two numbers for each element: the levels of what wrote it and of what read it last.
#include "schedule/roll/loop_levels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/roll/loop_bodies.h"
#include "schedule/roll/loop_statements.h"
#include "schedule/roll/region.h"

namespace weft {
namespace {

constexpr int64_t kMostTouched = int64_t(1) << 24;  // elements, in all steps

// 1 + the level of the last step that did it; 0: none.
struct Touched {
  uint32_t written = 0, read = 0;
};

class Leveler {
 public:
  explicit Leveler(const LoopProgram& program) : program_(program) {}

  std::optional<std::vector<uint32_t>> run() {
    std::vector<uint32_t> levels;
    levels.reserve(program_.steps.size());
    for (const LoopStep& step : program_.steps) {
      const LoopBody& body = program_.bodies[step.body];
      if (!body.varying_sizes.empty() || !body.varying_strides.empty()) return {};
      uint32_t level = 0;
      for_elements(step, body.target, 0,
                   [&](const Touched& t) { level = std::max({level, t.written, t.read}); });
      for (const LoopItem& item : body.items) {
        if (!item.leaf) continue;
        for_elements(step, *item.leaf, item.parameter,
                     [&](const Touched& t) { level = std::max(level, t.written); });
      }
      if (left_ < 0) return {};
      for (const LoopItem& item : body.items) {
        if (!item.leaf) continue;
        for_elements(step, *item.leaf, item.parameter,
                     [&](Touched& t) { t.read = std::max(t.read, level + 1); });
      }
      for_elements(step, body.target, 0, [&](Touched& t) { t.written = level + 1; });
      levels.push_back(level);
    }
    return levels;
  }

 private:
  template <class F>
  void for_elements(const LoopStep& step, const LoopLeaf& leaf, size_t parameter, F&& f) {
    const auto first = int64_t(program_.parameters[step.first_parameter + parameter]);
    left_ -= leaf.region.numel();
    if (left_ < 0) return;
    std::vector<Touched>& all = touched_[{leaf.kind, leaf.memory}];
    leaf.region.moved_to(first).for_rows([&](int64_t at, int64_t count, int64_t stride) {
      const int64_t most = std::max(at, at + (count - 1) * stride);
      if (size_t(most) >= all.size()) all.resize(size_t(most) + size_t(most) / 2 + 1);
      for (int64_t i = 0; i < count; i++) f(all[size_t(at + i * stride)]);
    });
  }

  const LoopProgram& program_;
  std::map<std::pair<LoopLeaf::Kind, uint32_t>, std::vector<Touched>> touched_;  // of each memory
  int64_t left_ = kMostTouched;
};

}  // namespace

std::optional<std::vector<uint32_t>> step_levels(const LoopProgram& program) {
  return Leveler(program).run();
}

}  // namespace weft
