// A step of the tape whose gradient is a function that a user gave: it leads from the results to
// the inputs, whatever was computed in between.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ref.h"
#include "value/value.h"

namespace weft {

class LinkedStep {
 public:
  // Inputs that a gradient may pass are held, as steps.
  explicit LinkedStep(std::span<const Ref<Value>> inputs);
  LinkedStep(const LinkedStep&) = delete;
  LinkedStep& operator=(const LinkedStep&) = delete;
  virtual ~LinkedStep();

  // By each input, in its shape and dtype, of that by each result; none where it is 0.
  virtual std::vector<Ref<Value>> gradients(std::span<const Ref<Value>> by_results) = 0;

  // Null for those that no gradient passes.
  std::span<Value* const> inputs() const { return inputs_; }
  size_t results() const { return results_; }
  // Larger than that of every step that this one can lead to.
  uint64_t number() const { return number_; }

 protected:
  size_t results_ = 0;  // NOLINT(misc-non-private-member-variables-in-classes): how many

 private:
  friend void retain(LinkedStep* step) noexcept;
  friend void release(LinkedStep* step) noexcept;

  std::vector<Value*> inputs_;
  uint64_t number_;
  std::atomic<uint32_t> owners_ = 1;
};

void retain(LinkedStep* step) noexcept;
// However long a chain of steps is that only this one held, it is freed without recursion.
void release(LinkedStep* step) noexcept;

}  // namespace weft
