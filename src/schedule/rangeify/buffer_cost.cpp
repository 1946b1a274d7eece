// Operations and bytes of one evaluation.
#include "schedule/rangeify/buffer_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/op.h"
#include "ir/reads.h"
#include "ir/scope.h"
#include "schedule/rangeify/loop_order.h"
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

// How often n runs in one evaluation: once for every place of the loops that are inside.
double repeats(UOp n, std::span<const UOp> outer) {
  double product = 1;
  for (UOp r : ranges_of(n)) {
    if (!has_range(outer, r)) product *= places({&r, 1});
  }
  return product;
}

// Of a kernel for n alone: what it reads, and what it writes.
double accesses_alone(UOp n) {
  return 1 + double(std::ranges::count_if(n.srcs(), [](UOp s) { return reads_memory(s); }));
}

// Some read under the reduction does not depend on one of the loops around it.
bool is_contraction(UOp reduce) {
  const std::span<const UOp> around = ranges_of(reduce);
  bool found = false;
  const UOp body[] = {reduce.src(0)};
  visit_computation(body, [&](UOp n) {
    if (!is_read(n) || found) return;
    const std::span<const UOp> used = ranges_of(n);
    found = std::any_of(around.begin(), around.end(), [&](UOp r) { return !has_range(used, r); });
  });
  return found;
}

}  // namespace

namespace {

using Distinct = std::vector<std::pair<UOp, double>>;

void add_distinct(Distinct& to, UOp memory, double bytes) {
  const auto at = std::ranges::find(to, memory, &Distinct::value_type::first);
  if (at == to.end()) {
    to.emplace_back(memory, bytes);
  } else {
    at->second = std::max(at->second, bytes);
  }
}

double sum_of(const Distinct& all) {
  double sum = 0;
  for (const auto& [memory, bytes] : all) sum += bytes;
  return sum;
}

}  // namespace

double weight_of(Op op) { return kWeights[size_t(op)]; }

Work work_of(const StoredValue& stored) {
  Work w;
  const UOp root[] = {stored.value()};
  visit_computation(root, [&](UOp n) {
    if (n.dtype().is_bool() && !reads_memory(n)) return;  // a condition on indices
    if (is_read(n)) {
      const double count = repeats(n, stored.ranges()), bytes = n.dtype().element().item_bytes();
      w.reads++;
      w.accesses += count;
      w.bytes += count * bytes;
      add_distinct(w.distinct, n.src(0), places(ranges_of(n)) * bytes);
    } else if (n.is(Op::REDUCE)) {
      const double count = repeats(n.src(0), stored.ranges());
      w.statements++;
      w.has_reduction = true;
      w.reductions++;
      w.has_contraction = w.has_contraction || is_contraction(n);
      w.operations += count;
      w.apart += count * 2 + 1;
    } else if (is_elementwise(n.op())) {
      const double count = repeats(n, stored.ranges());
      w.statements++;
      w.operations += weight_of(n.op()) * count;
      w.apart += (weight_of(n.op()) + accesses_alone(n)) * count;
    }
  });
  return w;
}

KernelWork KernelWork::of(const Work& work, double size, double item_bytes) {
  KernelWork out;
  const double written = size * item_bytes;
  out.demand = {.operations = size * work.operations,
                .bytes = size * work.bytes + written,
                .among = sum_of(work.distinct) + written,
                .parallel = size};
  out.distinct = work.distinct;
  out.work = size * (work.operations + work.accesses + 1);
  out.apart = size * (work.apart + (work.statements == 0 ? 2 : 0));  // a copy
  return out;
}

KernelWork KernelWork::with(const Work& value, double times, UOp memory) const {
  KernelWork out = *this;
  const double written = demand.among - sum_of(distinct);
  std::erase_if(out.distinct, [&](const auto& each) { return each.first == memory; });
  for (const auto& [other, bytes] : value.distinct) add_distinct(out.distinct, other, bytes);
  out.demand.operations += times * value.operations;
  out.demand.bytes += times * (value.bytes - memory.dtype().element().item_bytes());
  out.demand.among = written + sum_of(out.distinct);
  out.work += times * (value.operations + value.accesses - 1);
  return out;
}

}  // namespace weft
