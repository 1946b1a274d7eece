// Ranges, memory, order and vectors, checked; and the write.
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/place.h"
#include "ir/spec.h"

namespace weft {
namespace {

UOp make_checked(Op op, DType dtype, UOp first, std::span<const UOp> rest, const Arg& arg = {}) {
  std::vector<UOp> srcs{first};
  srcs.insert(srcs.end(), rest.begin(), rest.end());
  const UOp n = first.arena().make(op, dtype, srcs, arg);
  check_node(n);
  return n;
}

UOp make_store(UOp target, std::span<const UOp> value_and_gate, const Arg& arg = {}) {
  const DType dtype = is_register(target) ? target.dtype() : dtypes::void_;
  return make_checked(Op::STORE, dtype, target, value_and_gate, arg);
}

}  // namespace

UOp UOp::assign(UOp value) const { return make_store(*this, {&value, 1}); }

UOp UOp::assign(UOp value, UOp gate) const {
  const UOp rest[] = {value, gate};
  return make_store(*this, rest);
}

UOp UOp::accumulate(Op op, UOp value) const { return make_store(*this, {&value, 1}, Arg::op(op)); }

UOp reduce(Op op, UOp x, std::span<const UOp> ranges) {
  return make_checked(Op::REDUCE, x.dtype(), x, ranges, Arg::op(op));
}

UOp bufferize(UOp x, std::span<const UOp> ranges, AddrSpace space) {
  return make_checked(Op::BUFFERIZE, x.dtype(), x, ranges, Arg::space(space));
}

// The dtype of an element, or of the pointer to it, is that of the whole.
UOp index(UOp x, std::span<const UOp> indices) {
  return make_checked(Op::INDEX, x.dtype(), x, indices);
}
UOp index(UOp x, UOp i) { return index(x, {&i, 1}); }

UOp load(UOp pointer) { return make_checked(Op::LOAD, pointer.dtype().pointee(), pointer, {}); }

UOp load(UOp pointer, UOp gate, UOp otherwise) {
  const UOp rest[] = {gate, otherwise};
  return make_checked(Op::LOAD, pointer.dtype().pointee(), pointer, rest);
}

UOp after(UOp x, std::span<const UOp> effects) {
  return make_checked(Op::AFTER, x.dtype(), x, effects);
}
UOp after(UOp x, UOp effect) { return after(x, {&effect, 1}); }

UOp end(UOp effect, std::span<const UOp> ranges) {
  return make_checked(Op::END, dtypes::void_, effect, ranges);
}
UOp end(UOp effect, UOp range) { return end(effect, {&range, 1}); }

UOp barrier(std::span<const UOp> effects) {
  if (effects.empty()) throw SpecError("[barrier] there is no effect to wait for");
  return make_checked(Op::BARRIER, dtypes::void_, effects[0], effects.subspan(1));
}

UOp sink(Arena& arena, std::span<const UOp> srcs) {
  const UOp n = arena.make(Op::SINK, dtypes::void_, srcs);
  check_node(n);
  return n;
}
UOp sink(UOp a) { return sink(a.arena(), {&a, 1}); }
UOp sink(UOp a, UOp b) {
  const UOp srcs[] = {a, b};
  return sink(a.arena(), srcs);
}

UOp vectorize(std::span<const UOp> lanes) {
  if (lanes.empty()) throw SpecError("[vectorize] there are no lanes");
  const DType dtype = lanes[0].dtype().element().vec(uint16_t(lanes.size()));
  return make_checked(Op::VECTORIZE, dtype, lanes[0], lanes.subspan(1));
}

UOp gep(UOp x, std::span<const int64_t> lanes) {
  return make_checked(Op::GEP, x.dtype().vec(uint16_t(lanes.size())), x, {}, Arg::ints(lanes));
}

}  // namespace weft
