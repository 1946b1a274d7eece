// The tape: the steps by which a Value was computed from others, as a gradient goes back over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/ref.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/gradient.h"  // IWYU pragma: export

namespace weft {

// What steps hold on to changes under this lock. No other is taken while it is held.
std::mutex& tape_mutex();

class Tape {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Step {
    Value* value;
    // For each source: its step, kNone where no gradient is asked for; its data, where it is held.
    std::array<uint32_t, Value::kMostSources> sources;
    std::array<Ref<Value>, Value::kMostSources> operands;
    Ref<Value> out;     // the data of the Value itself, where it is held
    Ref<Storage> leaf;  // of a leaf whose Storage lives
    bool is_target;     // one of those asked for
  };

  // What to differentiate by: these Values, leaves of Storages with these numbers, or every leaf.
  struct Targets {
    std::span<const Value* const> values = {};
    std::span<const int64_t> leaves = {};
    bool all_leaves = false;
  };
  // The steps that lead from the roots, which outlive it, to targets, and to results of
  // LinkedSteps, which are targets too; sources before users.
  Tape(std::span<Value* const> roots, const Targets& targets);
  Tape(const Ref<Value>& root, const Targets& targets)
      : Tape(std::array<Value*, 1>{root.get()}, targets) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape();

  std::span<const Step> steps() const { return steps_; }
  // The step of each root; kNone where it leads to no target.
  std::span<const uint32_t> roots() const { return roots_; }

 private:
  void collect(std::span<Value* const> roots, const Targets& targets);
  void add(Value& value, bool is_target, std::span<const uint32_t> sources);

  std::vector<Step> steps_;
  std::vector<uint32_t> roots_;
};

}  // namespace weft
