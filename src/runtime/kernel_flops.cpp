// Nodes times loops, added up once; the sizes of loops are known at a call.
#include "runtime/kernel_flops.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/bounds.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "ir/walk.h"
#include "runtime/loop_nest.h"
#include "schedule/formula_steps.h"
#include "schedule/rangeify/buffer_cost.h"

namespace weft {
namespace {

uint64_t to_count(double operations) {
  return operations < 0x1p64 ? uint64_t(operations) : UINT64_MAX;
}

// At most; 1 where nothing bounds it, as a number from memory.
double rounds(UOp range) {
  const int64_t most = bounds(range.src(0)).hi;
  return most == INT64_MAX ? 1 : double(std::max<int64_t>(most, 0));
}

std::vector<std::string> names_of_variables(std::span<const UOp> order) {
  std::set<std::string> names;
  for (UOp n : order) {
    if (n.is(Op::VARIABLE)) names.emplace(n.name());
  }
  return {names.begin(), names.end()};
}

// Indices, and what is true of them: what is computed to find data, not of data.
class Addresses {
 public:
  // Sources first.
  bool add(UOp n) {
    const std::span<const UOp> srcs = n.srcs();
    const bool is_condition =
        n.dtype().is_bool() && is_elementwise(n.op()) && !srcs.empty() &&
        std::all_of(srcs.begin(), srcs.end(), [&](UOp s) { return s.is(Op::CONST) || has(s); });
    return (n.dtype().is_index() || is_condition) && nodes_.insert(n).second;
  }

 private:
  bool has(UOp n) const { return nodes_.contains(n); }

  std::unordered_set<UOp> nodes_;
};

}  // namespace

// Adds up operations by the loops around them.
class KernelFlops::Builder {
 public:
  Builder(KernelFlops& flops, Arena& arena) : flops_(flops), numbers_(arena) {}

  void add(double operations, std::span<const UOp> loops) {
    double most = operations;
    std::vector<uint32_t> sizes;
    for (UOp range : loops) {
      most *= rounds(range);
      const std::optional<uint32_t> step = step_of(range.src(0));
      if (step) {
        sizes.push_back(*step);
      } else {
        operations *= rounds(range);
      }
    }
    flops_.most_ += most;
    if (sizes.empty()) {
      flops_.constant_ += operations;
      return;
    }
    std::ranges::sort(sizes);
    const auto known = std::ranges::find(flops_.terms_, sizes, &Term::sizes);
    if (known == flops_.terms_.end()) {
      flops_.terms_.push_back({operations, std::move(sizes)});
    } else {
      known->operations += operations;
    }
  }

 private:
  std::optional<uint32_t> step_of(UOp size) {
    if (size.is_const()) return std::nullopt;
    return flops_.steps_.add(size, numbers_);
  }

  KernelFlops& flops_;
  NodeMap numbers_;
};

KernelFlops::KernelFlops(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  steps_ = FormulaSteps(names_of_variables(order));
  Builder builder(*this, ast.arena());
  Addresses addresses;
  const LoopNest nest(order);
  for (UOp n : order) {
    if (addresses.add(n)) continue;
    if (n.is(Op::REDUCE)) {
      builder.add(1, nest.around(n));
    } else if (is_elementwise(n.op())) {
      builder.add(weight_of(n.op()) * n.dtype().lanes, nest.around(n));
    }
  }
}

uint64_t KernelFlops::count(std::span<const int64_t> variables) const {
  if (terms_.empty()) return to_count(constant_);
  std::vector<int64_t> values;
  if (!steps_.compute(variables, values)) return to_count(most_);
  double operations = constant_;
  for (const Term& term : terms_) {
    double product = term.operations;
    for (const uint32_t size : term.sizes) product *= double(std::max<int64_t>(values[size], 0));
    operations += product;
  }
  return to_count(operations);
}

uint64_t tensor_flops(UOp sink) {
  double operations = 0;
  const auto elements = [](UOp n) {
    double count = 1;
    for (const Dim size : shape_of(n)) count *= double(size.value());
    return count;
  };
  for (UOp n : toposort(sink)) {
    if (n.dtype().is_index()) continue;
    if (n.is(Op::REDUCE_AXIS) || n.is(Op::SCAN)) {
      operations += elements(n.src(0));
    } else if (is_elementwise(n.op())) {
      operations += weight_of(n.op()) * elements(n);
    }
  }
  return to_count(operations);
}

}  // namespace weft
