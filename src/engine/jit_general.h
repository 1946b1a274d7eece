// One recipe for all values of the variables of a call.
//
// Calls with different values leave recipes of one form behind, which differ in numbers: sizes,
// offsets, places. Where formulas of the variables give the numbers of all of them, with one call
// more than determine the formulas, they give those of other calls too, as long as all holds that
// was taken for granted (NumberWatch), and the graph is legal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/jit_recipe.h"
#include "engine/number_fit.h"
#include "ir/node.h"
#include "schedule/schedule.h"
#include "schedule/size_formulas.h"

namespace weft {

// Adds to what is assumed what makes the graph legal, and what the kernels of its schedule need.
void assume_legal(UOp sink, const Schedule& schedule);

class JitGeneral {
 public:
  // Of calls with the same variables, the newest last; those of other forms are left out. Null
  // where there is none, or not yet.
  static std::shared_ptr<const JitGeneral> make(
      std::span<const std::shared_ptr<const JitRecipe>> calls);

  const std::shared_ptr<const JitRecipe>& recipe() const { return calls_.back(); }
  std::span<const std::shared_ptr<const JitRecipe>> calls() const { return calls_; }

  // Those of a call with these values, in the order of the variables; null where it serves none
  // such. Thread-safe.
  std::shared_ptr<const JitNumbers> numbers(std::span<const int64_t> values) const;

 private:
  JitGeneral() = default;
  class Maker;

  // What a number is.
  struct Number {
    size_t item;  // in its list
    size_t part;  // of a shape: the axis; of a view: shape, strides and offset one after the other
    Polynomial formula;
  };
  struct Element {  // of a table
    size_t table, element;
    bool is_inverse;  // the element is 1 / formula
    Polynomial formula;
  };
  struct Group {
    std::vector<Polynomial> variables;
    SizeFormulas sizes;
    size_t first_sized, sized_count;
  };

  bool holds(std::span<const int64_t> values) const;
  bool set_numbers(std::span<const int64_t> values, JitNumbers& numbers) const;
  bool set_sizes(std::span<const int64_t> values, JitNumbers& numbers) const;
  bool set_tables(std::span<const int64_t> values, JitNumbers& numbers) const;

  std::vector<std::shared_ptr<const JitRecipe>> calls_;
  std::vector<Polynomial> zero_;          // are 0
  std::vector<Polynomial> not_negative_;  // are at least 0, where it is not sure
  std::vector<Number> variables_;
  std::vector<uint32_t> varying_calls_;  // whose variables are
  std::vector<Number> shapes_, views_, origins_;
  std::vector<Number> sizes_;  // of what no schedule sizes
  std::vector<Group> groups_;
  std::vector<Element> elements_;
  bool has_sizes_ = false;

  mutable std::mutex mutex_;
  mutable std::vector<int64_t> last_values_;
  mutable std::shared_ptr<const JitNumbers> last_;
};

}  // namespace weft
