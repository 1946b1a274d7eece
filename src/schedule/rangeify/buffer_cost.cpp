// Operations and bytes of one evaluation.
#include "schedule/rangeify/buffer_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "schedule/rangeify/stored_values.h"

namespace weft {
namespace {

constexpr std::array<double, kOpCount> weights() {
  std::array<double, kOpCount> table{};
  for (size_t i = 0; i < kOpCount; i++) table[i] = is_elementwise(Op(i)) ? 1 : 0;
  table[size_t(Op::BITCAST)] = 0;
  for (Op op : {Op::FDIV, Op::RECIP, Op::SQRT}) table[size_t(op)] = cost::kDivision;
  for (Op op : {Op::EXP, Op::EXP2, Op::LOG, Op::LOG2, Op::SIN, Op::COS, Op::THREEFRY}) {
    table[size_t(op)] = cost::kFunction;
  }
  for (Op op : {Op::IDIV, Op::MOD, Op::CDIV, Op::CMOD}) {
    table[size_t(op)] = cost::kIntegerDivision;
  }
  return table;
}
constexpr auto kWeights = weights();

bool has(std::span<const UOp> set, UOp r) {
  return std::find(set.begin(), set.end(), r) != set.end();
}

// How often n runs in one evaluation: once for every place of the loops that are inside.
double repeats(UOp n, std::span<const UOp> outer) {
  double product = 1;
  for (UOp r : ranges_of(n)) {
    if (!has(outer, r)) product *= places({&r, 1});
  }
  return product;
}

// Some read under the reduction does not depend on one of the loops around it.
bool is_contraction(UOp reduce) {
  const std::span<const UOp> around = ranges_of(reduce);
  bool found = false;
  const UOp body[] = {reduce.src(0)};
  visit_computation(body, [&](UOp n) {
    if (!is_read(n) || found) return;
    const std::span<const UOp> used = ranges_of(n);
    found = std::any_of(around.begin(), around.end(), [&](UOp r) { return !has(used, r); });
  });
  return found;
}

}  // namespace

double weight_of(Op op) { return kWeights[size_t(op)]; }

Work work_of(const StoredValue& stored) {
  Work w;
  const UOp root[] = {stored.value()};
  visit_computation(root, [&](UOp n) {
    if (is_read(n)) {
      w.reads++;
      w.bytes += repeats(n, stored.ranges()) * n.dtype().element().item_bytes();
    } else if (n.is(Op::REDUCE)) {
      w.statements++;
      w.has_reduction = true;
      w.reductions++;
      w.has_contraction = w.has_contraction || is_contraction(n);
      w.operations += repeats(n.src(0), stored.ranges());
    } else if (is_elementwise(n.op())) {
      w.statements++;
      w.operations += weight_of(n.op()) * repeats(n, stored.ranges());
    }
  });
  return w;
}

}  // namespace weft
