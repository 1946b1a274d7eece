// One step at a time on the values of one thread.
#include "ir/evaluate_thread.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"

namespace weft::evaluator {

UOp Thread::run_to_barrier() {
  const std::vector<Step>& steps = group_.plan.steps;
  while (next_ < steps.size()) {
    const Step& step = steps[next_];
    const bool is_held = step.kind == StepKind::kNode && step.node.is(Op::WMMA) &&
                         !step.node.src(1).dtype().is_pointer();
    if (is_held && !has_met_) {
      held_[held_count_++ % 2] = operand(step, 1).lanes;
      has_met_ = true;
      return step.node;
    }
    has_met_ = false;
    next_++;
    run_step(step);
    if (step.kind == StepKind::kNode && step.node.is(Op::BARRIER)) return step.node;
  }
  return {};
}

void Thread::run_step(const Step& step) {
  switch (step.kind) {
    case StepKind::kNode: run_node(step); return;
    case StepKind::kBegin: begin(step); return;
    case StepKind::kBody: add_to_body(step); return;
    case StepKind::kOpen: {
      const int64_t limit = size(step, 0);
      if (limit <= 0) {
        next_ = step.jump;
        return;
      }
      loops_.push_back({step.node, 0, limit});
      values_[step.slot] = plain(step.node.dtype(), 0);
      return;
    }
    case StepKind::kClose: {
      Loop& loop = loops_.back();
      if (++loop.at == loop.size) {
        values_[step.slot] = {};
        loops_.pop_back();
        return;
      }
      values_[step.slot].lanes[0].bits = uint64_t(loop.at);
      next_ = step.jump;
      return;
    }
    case StepKind::kIf:
      if (size(step, 0) == 0) next_ = step.jump;
      return;
  }
}

void Thread::run_node(const Step& step) {
  const UOp n = step.node;
  auto compute = [&]() -> Value {
    if (is_elementwise(n.op()) && !n.dtype().is_pointer()) return elementwise(step);
    switch (n.op()) {
      case Op::CONST: return plain(n.dtype(), n.bits());
      case Op::VARIABLE:
        return plain(n.dtype(), bits_of_int(n.dtype(), value_of_variable(n, group_.variables)));
      case Op::BIND: return operand(step, 1);
      case Op::BUFFER:
      case Op::DEFINE_GLOBAL:
      case Op::DEFINE_LOCAL:
      case Op::DEFINE_REG:
      case Op::SPECIAL: return define(n);
      case Op::CAST:
      case Op::INDEX: return index(step);
      case Op::LOAD: return load(step);
      case Op::STORE: return store(step);
      case Op::AFTER: return after(step);
      case Op::CONTIGUOUS:
      case Op::COPY: return copy(step);
      case Op::VECTORIZE:
      case Op::GEP: return select_lanes(step);
      case Op::KERNEL: {
        std::vector<const Value*> sources{nullptr};
        for (size_t i = 1; i < n.src_count(); i++) sources.push_back(&source(step, i));
        group_.run_kernel(n, sources);
        return {};
      }
      case Op::LANE: return lane(step);
      case Op::WMMA: return product(step);
      case Op::FETCH: fetch(step); return {};
      case Op::FETCH_BOX: fetch_box(step); return {};
      case Op::COMMIT: commit(); return {};
      case Op::WAIT: wait(size_t(n.number())); return {};
      case Op::BARRIER: return {};
      default: fail(n, "it is no op of a kernel");
    }
  };
  Value& value = values_[step.slot] = compute();
  const std::vector<uint32_t>& roots = group_.plan.roots;
  if (value.kind >= Value::kPointer && std::count(roots.begin(), roots.end(), step.slot) > 0) {
    snapshots_[step.slot] = to_array(value, n);
  }
}

// ---- REDUCE and BUFFERIZE

void Thread::begin(const Step& step) {
  const UOp n = step.node;
  if (n.is(Op::REDUCE)) {
    const std::optional<uint64_t> identity = identity_of(n);
    if (!identity) fail(n, "there is no reduction by this op");
    values_[step.slot] = plain(n.dtype(), *identity);
    return;
  }
  std::vector<int64_t> shape;
  shape.reserve(step.sources.size());
  for (size_t i = 0; i < step.sources.size(); i++) {
    shape.push_back(step.sources[i] == Step::kNoSlot ? 1 : size(step, i));
  }
  auto& memory = memories_[n] = std::make_unique<Memory>();
  make_own(*memory, n.dtype().pointee(), std::move(shape));
  values_[step.slot] = {Value::kArray, {}, {memory.get(), 0, int64_t(memory->own.data.size())}};
}

void Thread::add_to_body(const Step& step) {
  const UOp n = step.node;
  const Value& taken = operand(step, 0);
  Value& result = values_[step.slot];
  if (taken.lanes.size() != n.dtype().lanes) fail(n, "its source has other lanes");
  if (n.is(Op::REDUCE)) {
    for (size_t l = 0; l < taken.lanes.size(); l++) {
      Lane& to = result.lanes[l];
      if (to.fault) continue;
      const std::array operands = {to.bits, taken.lanes[l].bits};
      const auto bits = evaluate_scalar(n.arg_op(), n.dtype(), n.dtype(), operands);
      if (!bits && !n.dtype().is_index()) fail_without_result(n);
      to = {bits.value_or(0), taken.lanes[l].fault};
      if (!bits && !to.fault) to.fault = {Fault::kOverflow, n};
    }
    return;
  }
  Place place = result.place;
  const std::vector<int64_t> strides = row_major_strides(place.memory->own.shape);
  for (size_t i = 1; i < step.sources.size(); i++) {
    if (step.sources[i] == Step::kNoSlot) continue;
    place.offset += int64_t(number(step, i).bits) * strides[i - 1] * n.dtype().lanes;
  }
  for (size_t l = 0; l < taken.lanes.size(); l++) {
    if (taken.lanes[l].fault) raise(taken.lanes[l].fault);
    if (const Fault fault = write(place, int64_t(l), taken.lanes[l].bits, n)) raise(fault);
  }
}

// ---- values

Value Thread::elementwise(const Step& step) {
  const UOp n = step.node;
  std::array<const Value*, 3> sources{};
  for (size_t i = 0; i < n.src_count(); i++) sources[i] = &operand(step, i);
  Value result{Value::kPlain, {}, {}};
  for (size_t l = 0; l < n.dtype().lanes; l++) {
    std::array<uint64_t, 3> bits{};
    Lane lane;
    for (size_t i = 0; i < n.src_count(); i++) {
      const Lane& from = lane_of(*sources[i], l);
      bits[i] = from.bits;
      if (!lane.fault) lane.fault = from.fault;
    }
    if (const Lane& condition = lane_of(*sources[0], l); n.is(Op::WHERE) && !condition.fault) {
      lane = lane_of(*sources[condition.bits != 0 ? 1 : 2], l);
    } else if (!lane.fault) {
      const auto r = evaluate_scalar(n.op(), operand_type(n), n.dtype(),
                                     std::span(bits.data(), n.src_count()));
      if (!r && !operand_type(n).is_index()) fail_without_result(n);
      lane = r ? Lane{*r} : Lane{0, {Fault::kOverflow, n}};
    }
    result.lanes.push_back(lane);
  }
  return result;
}

Value Thread::select_lanes(const Step& step) {
  Value result{Value::kPlain, {}, {}};
  if (step.node.is(Op::GEP)) {
    const Value& from = operand(step, 0);
    for (const int64_t l : step.node.ints()) {
      if (l < 0 || size_t(l) >= from.lanes.size()) fail(step.node, "no such lane");
      result.lanes.push_back(from.lanes[size_t(l)]);
    }
  } else {
    for (size_t i = 0; i < step.sources.size(); i++) {
      const Value& from = operand(step, i);
      result.lanes.insert(result.lanes.end(), from.lanes.begin(), from.lanes.end());
    }
  }
  if (result.lanes.size() != step.node.dtype().lanes) fail(step.node, "its dtype has other lanes");
  return result;
}

// ---- helpers

const Value& Thread::source(const Step& step, size_t i) const {
  const Value& value = values_[step.sources[i]];
  if (value.kind == Value::kUnset) fail(step.node, fmt::format("source {} has no value here", i));
  return value;
}

const Value& Thread::operand(const Step& step, size_t i) {
  const Value& value = values_[step.sources[i]];
  if (value.lanes.empty()) fail(step.node, fmt::format("source {} has no value here", i));
  return value;
}

Value Thread::all_lanes(const Step& step, size_t i) {
  const Value& from = source(step, i);
  if (from.kind != Value::kArray) return operand(step, i);
  Value value{Value::kPlain, {}, {}};
  for (int64_t l = 0; l < from.place.limit; l++) {
    value.lanes.push_back(read(from.place, l, step.node));
  }
  return value;
}

const Lane& Thread::number(const Step& step, size_t i) {
  const Value& value = operand(step, i);
  if (value.lanes.size() != 1) fail(step.node, fmt::format("source {} is no scalar", i));
  return value.lanes[0];
}

int64_t Thread::size(const Step& step, size_t i) {
  const Lane& lane = number(step, i);
  if (lane.fault) raise(lane.fault);
  return int64_t(lane.bits);
}

Value Thread::cell(const Place& place, UOp node) const {
  Value value{Value::kCell, std::vector<Lane>(node.dtype().lanes), place};
  reread(value, node);
  return value;
}

void Thread::reread(Value& value, UOp node) const {
  if (value.kind != Value::kCell) return;
  int64_t l = 0;
  for (Lane& lane : value.lanes) lane = read(value.place, l++, node);
}

Array Thread::result(size_t i) const {
  const uint32_t slot = group_.plan.roots[i];
  const UOp root = group_.plan.root_nodes[i];
  if (root.dtype().is_void()) return Array::nothing();
  if (const auto at = snapshots_.find(slot); at != snapshots_.end()) return at->second;
  return to_array(values_[slot], root);
}

Array Thread::to_array(const Value& value, UOp node) const {
  if (value.kind == Value::kUnset) fail(node, "it has no value");
  const bool is_memory = value.kind == Value::kArray || value.kind == Value::kPointer;
  Array array{node.dtype().pointee(), {}, {}};
  if (is_memory) {
    const Memory& memory = *value.place.memory;
    array.dtype = memory.array->dtype;
    array.shape = memory.array == &memory.own ? memory.own.shape
                                              : std::vector{value.place.limit / array.dtype.lanes};
  }
  const Place first{value.place.memory, 0, value.place.limit};
  const size_t lanes = is_memory ? size_t(value.place.limit) : value.lanes.size();
  for (size_t l = 0; l < lanes; l++) {
    const Lane lane = is_memory ? read(first, int64_t(l), node) : value.lanes[l];
    if (lane.fault) raise(lane.fault);
    array.data.push_back(lane.bits);
  }
  return array;
}

std::string Thread::where() const {
  std::string out;
  auto add = [&](UOp n, int64_t at) {
    out += fmt::format("{} {} = {}", out.empty() ? ", at" : ",", short_form(n), at);
  };
  for (const auto& [special, at] : specials_) add(special, at);
  for (const Loop& loop : loops_) add(loop.range, loop.at);
  return out;
}

void Thread::raise(const Fault& fault) const {
  const std::string_view name = name_of(fault.node.op());
  const std::string rest = where() + "\n" + neighbourhood(fault.node);
  switch (fault.kind) {
    case Fault::kOutOfBounds:
      throw IndexError(
          fmt::format("[evaluate] {}: element {} of {}{}", name, fault.element, fault.limit, rest));
    case Fault::kUnwritten:
      throw Error(fmt::format("[evaluate] {}: element {} of {} is read before it is written{}",
                              name, fault.element, fault.limit, rest));
    default:
      throw Error(fmt::format("[evaluate] {}: the index does not fit into 64 bits{}", name, rest));
  }
}

}  // namespace weft::evaluator
