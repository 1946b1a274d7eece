// What one thread does to memory: definitions, addresses, reads and writes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate_memory.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_plan.h"
#include "ir/evaluate_thread.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace weft::evaluator {
namespace {

// From `first` to `second` - 1.
using Bounds = std::pair<int64_t, int64_t>;

Place moved(Place place, const Lane& by, Bounds bounds, int64_t stride, UOp n) {
  const auto at = int64_t(by.bits);
  if (place.fault) return place;
  if (by.fault) {
    place.fault = by.fault;
  } else if (at < bounds.first || at >= bounds.second) {
    place.fault = {Fault::kOutOfBounds, n, at, bounds.second};
  } else {
    place.offset += at * stride;
  }
  return place;
}

}  // namespace

Value Thread::define(UOp n) {
  if (n.is(Op::SPECIAL)) {
    for (const auto& [special, at] : specials_) {
      if (special == n) return plain(n.dtype(), uint64_t(at));
    }
    fail(n, "it has no value");
  }
  const DType element = n.dtype().pointee();
  const int64_t elements = n.src_count() > 0 ? evaluate_size(n.src(0), group_.variables) : 1;
  Memory* memory = nullptr;
  if (n.is(Op::DEFINE_REG) || n.is(Op::DEFINE_LOCAL)) {
    if (n.is(Op::DEFINE_LOCAL)) {
      memory = &group_.locals[n];
    } else {
      auto& own = memories_[n];
      if (own == nullptr) own = std::make_unique<Memory>();
      memory = own.get();
    }
    if (memory->array == nullptr) make_own(*memory, element, {elements});
  } else if (n.is(Op::DEFINE_GLOBAL) && group_.arguments != nullptr) {
    const auto bound = group_.arguments->find(n.number());
    if (bound == group_.arguments->end()) fail(n, "the KERNEL has no such argument");
    memory = bound->second;
    check_memory(*memory, n, element, elements);
  } else {
    memory = &group_.heap.memory_of(n, element, elements);
  }
  const Place place{memory, 0, elements * element.lanes};
  if (n.is(Op::BUFFER)) return {Value::kArray, {}, place};
  if (n.dtype().is_pointer()) return {Value::kPointer, {}, place};
  return cell(place, n);
}

// INDEX, and CAST of a pointer, which is an INDEX by nothing to other lanes.
Value Thread::index(const Step& step) {
  const UOp n = step.node;
  const Value& base = source(step, 0);
  if (base.kind != Value::kPointer && base.kind != Value::kArray) fail(n, "it is into no memory");
  const Memory& memory = *base.place.memory;
  const DType element = memory.array->dtype;
  if (n.dtype().element() != element.element()) fail(n, "the memory has another dtype");
  Place place = base.place;
  if (base.kind == Value::kArray && n.src_count() != 2) {
    const std::vector<int64_t>& shape = memory.own.shape;
    if (memory.array != &memory.own || n.src_count() - 1 != shape.size()) {
      fail(n, "the array has other dimensions");
    }
    const std::vector<int64_t> strides = row_major_strides(shape);
    for (size_t i = 0; i < shape.size(); i++) {
      place = moved(place, number(step, i + 1), {0, shape[i]}, strides[i] * element.lanes, n);
    }
  } else if (n.src_count() == 2) {  // its bounds are those of the access
    constexpr int64_t far = int64_t(1) << 40;
    place = moved(place, number(step, 1), {-far, far}, n.src(0).dtype().lanes, n);
  }
  return n.dtype().is_pointer() ? Value{Value::kPointer, {}, place} : cell(place, n);
}

Value Thread::load(const Step& step) {
  const UOp n = step.node;
  const Value& pointer = source(step, 0);
  if (pointer.kind != Value::kPointer) fail(n, "it reads through no pointer");
  Value result{Value::kPlain, {}, {}};
  for (size_t l = 0; l < n.dtype().lanes; l++) {
    const Lane gate = n.src_count() > 1 ? lane_of(operand(step, 1), l) : Lane{1};
    Lane lane{0, gate.fault};
    if (!gate.fault) {
      lane = gate.bits != 0 ? read(pointer.place, int64_t(l), n) : lane_of(operand(step, 2), l);
    }
    result.lanes.push_back(lane);
  }
  return result;
}

Value Thread::store(const Step& step) {
  const UOp n = step.node;
  const Value& target = source(step, 0);
  if (target.place.memory == nullptr) fail(n, "its target is no memory");
  if (n.src(1).dtype().element() != target.place.memory->array->dtype.element()) {
    fail(n, "the memory has another dtype");
  }
  const bool is_whole = target.kind == Value::kArray;
  const size_t lanes = is_whole ? size_t(target.place.limit) : n.src(0).dtype().lanes;
  const Value value = all_lanes(step, 1);
  if (value.lanes.size() != 1 && value.lanes.size() != lanes) fail(n, "the value has other lanes");
  for (size_t l = 0; l < lanes; l++) {
    const Lane gate = n.src_count() > 2 ? lane_of(operand(step, 2), l) : Lane{1};
    if (gate.fault) raise(gate.fault);
    if (gate.bits == 0) continue;
    const Lane& lane = lane_of(value, l);
    if (lane.fault) raise(lane.fault);
    uint64_t bits = lane.bits;
    if (n.accumulates()) {
      const Lane before = read(target.place, int64_t(l), n);
      if (before.fault) raise(before.fault);
      const uint64_t both[] = {before.bits, bits};
      const DType type = n.src(1).dtype().element();
      const auto combined = evaluate_scalar(n.arg_op(), type, type, both);
      if (!combined) fail_without_result(n);
      bits = *combined;
    }
    if (const Fault fault = write(target.place, int64_t(l), bits, n)) raise(fault);
  }
  return n.dtype().is_void() ? Value{} : Value{Value::kPlain, value.lanes, {}};
}

Value Thread::after(const Step& step) {
  Value value = source(step, 0);
  reread(value, step.node);
  return value;
}

Value Thread::copy(const Step& step) {
  Value value = source(step, 0);
  if (value.kind == Value::kCell) value.kind = Value::kPlain;
  if (value.kind != Value::kArray) return value;
  auto& memory = memories_[step.node] = std::make_unique<Memory>();
  memory->own = to_array(value, step.node);
  memory->array = &memory->own;
  value.place.memory = memory.get();
  return value;
}

}  // namespace weft::evaluator
