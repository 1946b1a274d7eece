// Finds what kind of graph it is, and hands it to the evaluator of that kind.
#include "ir/evaluate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate_machine.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/reads.h"
#include "ir/scalar.h"
#include "ir/walk.h"

namespace weft {
namespace evaluator {
namespace {

// Ops whose meaning needs loops or memory.
constexpr OpSet kRunsOnMachine = {
    Op::RANGE,  Op::SPECIAL,   Op::DEFINE_GLOBAL, Op::DEFINE_LOCAL, Op::DEFINE_REG,
    Op::REDUCE, Op::BUFFERIZE, Op::KERNEL,        Op::INDEX,        Op::LOAD,
    Op::END,    Op::BARRIER,   Op::VECTORIZE,     Op::GEP,          Op::LANE,
    Op::WMMA,   Op::FETCH,     Op::FETCH_BOX,     Op::COMMIT,       Op::WAIT,
};

bool runs_on_machine(UOp n) {
  return (kRunsOnMachine.has(n.op()) && !is_gather(n)) || n.dtype().is_vector();
}

void check_arity(UOp n) {
  const OpInfo& op = info(n.op());
  if (n.src_count() < op.least_sources || n.src_count() > op.most_sources) {
    fail(n, fmt::format("it has {} sources", n.src_count()));
  }
}

// The bindings, and what the BINDs of the graph say.
Variables variables_of(std::span<const UOp> order, const Bindings& bindings) {
  Variables all = bindings.variables;
  for (UOp n : order) {
    if (!n.is(Op::BIND) || !n.src(0).is(Op::VARIABLE) || !n.src(1).is_const()) continue;
    const std::string name(n.src(0).name());
    const auto [at, fresh] = all.emplace(name, n.src(1).const_int());
    if (!fresh && at->second != n.src(1).const_int()) {
      fail(n, fmt::format("{} is already bound to {}", name, at->second));
    }
  }
  return all;
}

}  // namespace

void fail(UOp n, std::string_view what) {
  throw InternalError(
      fmt::format("[evaluate] {}: {}\n{}", name_of(n.op()), what, neighbourhood(n)));
}

int64_t value_of_variable(UOp variable, const Variables& variables) {
  const std::string name(variable.name());
  const auto at = variables.find(name);
  if (at == variables.end()) throw Error(fmt::format("[evaluate] {} has no value", name));
  const int64_t lo = variable.src(0).const_int(), hi = variable.src(1).const_int();
  if (at->second < lo || at->second > hi) {
    throw IndexError(fmt::format("[evaluate] {} is {}, outside of its bounds {} to {}", name,
                                 at->second, lo, hi));
  }
  return at->second;
}

int64_t evaluate_size(UOp size, const Variables& variables) {
  if (size.is_const()) return size.const_int();
  const Array value = std::move(evaluate_tensors(std::span(&size, 1), {}, variables)[0]);
  if (value.data.size() != 1) fail(size, "it is no number");
  return int64_t(value.data[0]);
}

void fail_without_result(UOp n) {
  if (!operand_type(n).is_index()) {
    fail(n, fmt::format("it is not defined on {}", operand_type(n).name()));
  }
  throw Error(fmt::format("[evaluate] {}: the index does not fit into 64 bits\n{}", name_of(n.op()),
                          neighbourhood(n)));
}

std::optional<uint64_t> identity_of(UOp reduction) {
  if (reduction.dtype().is_void()) return std::nullopt;
  return identity_bits(reduction.arg_op(), reduction.dtype());
}

DType operand_type(UOp n) { return n.src(n.is(Op::WHERE) ? 1 : 0).dtype(); }

}  // namespace evaluator

std::vector<Array> evaluate(UOp root, Bindings& bindings) {
  using namespace evaluator;
  const std::vector<UOp> order = toposort(root);
  for (UOp n : order) check_arity(n);
  const Variables variables = variables_of(order, bindings);
  const std::span<const UOp> roots = root.is(Op::SINK) ? root.srcs() : std::span(&root, 1);
  if (root.is(Op::LINEAR)) {
    Heap heap(bindings.buffers);
    run(plan_list(root), heap, variables);
    return {Array::nothing()};
  }
  if (std::any_of(order.begin(), order.end(), runs_on_machine)) {
    Heap heap(bindings.buffers);
    return run(plan_graph(roots), heap, variables);
  }
  return evaluate_tensors(roots, bindings.buffers, variables);
}

}  // namespace weft
