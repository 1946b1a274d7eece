// Programs built by hand, and run on the reference evaluator and as compiled functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/render.h"
#include "runtime/array_bytes.h"
#include "tests/run_program.h"

namespace weft::test {

// Appends to a list as it makes nodes.
class ProgramBuilder {
 public:
  UOp add(Op op, DType type, std::span<const UOp> srcs, const Arg& arg = {}) {
    const UOp n = arena_.make(op, type, srcs, arg);
    for (UOp listed : list_) {
      if (listed == n) return n;
    }
    list_.push_back(n);
    return n;
  }
  UOp add(Op op, DType type, std::initializer_list<UOp> srcs, const Arg& arg = {}) {
    return add(op, type, std::span(srcs.begin(), srcs.size()), arg);
  }
  UOp constant(DType type, uint64_t bits) { return add(Op::CONST, type, {}, Arg::bits(bits)); }
  UOp integer(int64_t value, DType type = dtypes::int32) { return constant(type, uint64_t(value)); }
  UOp global(DType element, int64_t size, int64_t id) {
    return add(Op::DEFINE_GLOBAL, element.ptr(AddrSpace::kGlobal), {integer(size)},
               Arg::integer(id));
  }
  UOp range(UOp size, int64_t id, AxisType axis = AxisType::kLoop) {
    return add(Op::RANGE, size.dtype(), {size}, Arg::range(id, axis));
  }
  UOp reg(DType type, int64_t id) { return add(Op::DEFINE_REG, type, {}, Arg::integer(id)); }
  UOp binary(Op op, UOp a, UOp b) {
    return add(op, yields_bool(op) ? dtypes::bool_.vec(a.dtype().lanes) : a.dtype(), {a, b});
  }
  // The address of `lanes` elements.
  UOp at(UOp pointer, UOp index, uint16_t lanes = 1) {
    const UOp a = add(Op::INDEX, pointer.dtype(), {pointer, index});
    return lanes == 1 ? a : add(Op::CAST, pointer.dtype().vec(lanes), {a});
  }
  UOp load(UOp address) { return add(Op::LOAD, address.dtype().pointee(), {address}); }
  UOp store(UOp address, UOp value) { return add(Op::STORE, dtypes::void_, {address, value}); }
  UOp write(UOp target, UOp value) { return add(Op::STORE, target.dtype(), {target, value}); }
  UOp after(UOp x, std::initializer_list<UOp> effects) {
    std::vector<UOp> srcs{x};
    srcs.insert(srcs.end(), effects.begin(), effects.end());
    return add(Op::AFTER, x.dtype(), srcs);
  }
  UOp end(UOp effect, UOp range) { return add(Op::END, dtypes::void_, {effect, range}); }
  UOp linear() { return arena_.make(Op::LINEAR, dtypes::void_, list_); }
  Arena& arena() { return arena_; }

 private:
  Arena arena_;
  std::vector<UOp> list_;
};

using Buffers = std::map<int64_t, Array>;

// The buffers after the program has run on the evaluator, or as a function.
inline Buffers evaluated(UOp linear, Buffers buffers,
                         std::map<std::string, int64_t> variables = {}) {
  Bindings bindings{std::move(buffers), std::move(variables)};
  evaluate(linear, bindings);
  return bindings.buffers;
}

struct Call {
  std::vector<int64_t> variables{};  // by name order
  int64_t first = 0, last = 0;
};
inline Buffers called(ProgramFunction function, UOp linear, Buffers buffers,
                      const Call& call = {}) {
  std::map<int64_t, std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  for (auto& [id, array] : buffers) {
    memory[id].resize(array.data.size() * size_t(array.dtype.item_bytes()));
    bytes_of_bits(array.dtype.element(), array.data, memory[id]);
    pointers.resize(size_t(id) + 1);
    pointers[size_t(id)] = memory[id].data();
  }
  std::vector<std::byte> scratch(scratch_bytes(linear) + 64);
  std::byte* start = scratch.data() + (64 - uintptr_t(scratch.data()) % 64);
  function(pointers.data(), call.variables.data(), start, call.first, call.last);
  for (auto& [id, array] : buffers) array.data = bits_of_bytes(array.dtype.element(), memory[id]);
  return buffers;
}

}  // namespace weft::test
