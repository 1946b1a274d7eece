// Random optimisations that apply to a kernel, found by trying.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/gate_loads.h"
#include "codegen/opt/loops.h"
#include "codegen/opt/opt.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

// Sums of floats depend on their order, which some optimisations change.
inline bool is_exact_in_any_order(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  return std::ranges::none_of(order, [](UOp n) {
    return n.is(Op::REDUCE) && n.dtype().is_float() && n.arg_op() != Op::MAX &&
           n.arg_op() != Op::MIN;
  });
}

struct OptLimits {
  int64_t copies = 1 << 20;  // the product of all copies and lanes that a loop's body is made into
  bool any_lanes = true;     // C has vectors of a power of two only
  int64_t threads = 0;       // of a workgroup; 0: there are none
};

enum class Reductions : bool { kLeft, kCut };  // whether reductions may be summed in another order

inline OptList random_opts(UOp ast, Choices& choices, Reductions reductions,
                           const OptLimits& limits = {}) {
  constexpr std::array amounts = {1, 2, 3, 4, 5, 7, 8, 16};
  OptList opts;
  UOp at = mark_parallel_loops(gate_loads(ast));
  int64_t copies = 1, threads = 1, local_loops = 0;
  for (size_t tries = choices.below(8); tries > 0; tries--) {
    const auto number = choices.below(limits.threads > 0 ? 13 : 10);
    const bool is_shard = number == (limits.threads > 0 ? 12U : 9U);
    const auto kind = is_shard ? OptKind::kShard : OptKind(number);
    if (kind == OptKind::kThread && limits.threads > 0) continue;
    const auto axis = int64_t(choices.below(6));
    const Opt opt{
        kind, axis,
        choices.one_in(5) ? int64_t(choices.below(6)) : amounts[choices.below(amounts.size())]};
    if (!why_not(at, opt).empty()) continue;
    if (kind != OptKind::kStage && kind != OptKind::kShare && reductions == Reductions::kLeft &&
        range_by_id(at, opt.axis).axis() == AxisType::kReduce) {
      continue;
    }
    if (kind == OptKind::kVector && !limits.any_lanes &&
        !std::has_single_bit(uint64_t(opt.amount))) {
      continue;
    }
    const bool is_copied = kind == OptKind::kUpcast || kind == OptKind::kVector ||
                           kind == OptKind::kUnroll || kind == OptKind::kGroup;
    if (is_copied && copies * opt.amount > limits.copies) continue;
    if (is_copied) copies *= opt.amount;
    if (kind == OptKind::kLocal) {
      if (threads * opt.amount > limits.threads || local_loops == 3) continue;
      threads *= opt.amount;
      local_loops++;
    }
    opts.push_back(opt);
    try {
      at = apply_opt(at, opt);
      verify(at, Stage::kKernel);
    } catch (const Error& e) {
      throw std::runtime_error(fmt::format("{}\n{}\n{}", e.what(), print(ast), print(opts)));
    }
  }
  return opts;
}

}  // namespace weft::fuzz
