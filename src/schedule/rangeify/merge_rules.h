// Reductions that depend on others over the same range: what they become when the range is done
// block by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"

namespace weft {

// How the result so far goes on when a result that it depends on has become another one.
enum class Correction : uint8_t {
  kNone,              // it depends on none
  kExponentials,      // a sum of exponentials of distances from a maximum
  kSquaredDeviations  // a sum of squared distances from a mean
};
std::string_view name_of(Correction correction);

// A REDUCE over the range that the group shares.
struct MergedReduction {
  UOp reduce;  // as it stands in the value
  UOp body;    // over the shared range, without the factors in `scales`
  Correction correction = Correction::kNone;
  size_t on = 0;  // the reduction of the group that it is corrected by
  UOp base{};     // kExponentials: what is subtracted, of the maximum; kSquaredDeviations: the mean
  // Of the base where all elements are -inf: whether the result is NaN there, as -inf - -inf is.
  bool is_nan_when_empty = false;
  // Factors of the whole result, from the inside out: it is multiplied by them, or divided.
  std::vector<std::pair<Op, UOp>> scales{};
};

// Reductions in an order in which each follows those that it depends on: those that can be done in
// one pass over `range`, each over it alone. `reduces` are in such an order, their bodies over
// `range`. Others are left out.
std::vector<MergedReduction> merged_reductions(const std::vector<std::pair<UOp, UOp>>& reduces,
                                               UOp range);

// EXP or EXP2 of a sum of exponentials: the only function of its kind that stands on the way to the
// base.
Op exponential_of(const MergedReduction& reduction);

// From which place of the range on nothing counts: there all that the maximum is of is -inf, as a
// comparison of indices says, and all other reductions are sums of exponentials below it. An index
// in terms of the ranges around the reductions; null where there is no such place.
UOp end_of_places(std::span<const MergedReduction> reductions, UOp range);

}  // namespace weft
