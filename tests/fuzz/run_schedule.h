// Runs schedules on the reference evaluator, memory slot by memory slot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/print.h"
#include "ir/scalar.h"
#include "ir/walk.h"
#include "schedule/schedule.h"

namespace weft::test {

// The kernel with arguments of one slot as one: so a kernel that reads what it overwrites shows.
inline UOp with_shared_memory(Arena& arena, const Schedule& s, const KernelCall& call) {
  const UOp ast = import_graph(arena, call.ast);
  std::vector<std::pair<UOp, UOp>> pairs;
  for (UOp n : toposort(ast)) {
    if (!n.is(Op::DEFINE_GLOBAL)) continue;
    const ScheduledBuffer& b = s.buffers[call.arguments[size_t(n.number())]];
    for (size_t i = 0; i < size_t(n.number()); i++) {
      const ScheduledBuffer& first = s.buffers[call.arguments[i]];
      if (first.slot != b.slot || first.dtype != b.dtype || first.size != b.size) continue;
      pairs.emplace_back(n, define_global(arena, b.dtype, n.src(0), int64_t(i)));
      break;
    }
  }
  return pairs.empty() ? ast : substitute(ast, pairs);
}

using Slots = std::vector<std::vector<uint64_t>>;  // the memory of each

// Buffers of one slot share their memory, so a wrong plan shows.
inline Slots memory_of(const Schedule& s, const std::map<int64_t, Array>& inputs) {
  Slots slots(s.slot_count);
  for (const ScheduledBuffer& b : s.buffers) {
    std::vector<uint64_t>& memory = slots.at(b.slot);
    if (b.kind == ScheduledBuffer::Kind::kInput) memory = inputs.at(b.id).data;
    if (b.kind == ScheduledBuffer::Kind::kTable) memory = b.data;
    // What nobody has written is recognisable, and a value of every dtype.
    if (memory.size() < size_t(b.size)) memory.resize(size_t(b.size), 1);
  }
  return slots;
}

// What a call runs on.
inline Bindings bindings_of(const Schedule& s, const KernelCall& call, const Slots& slots) {
  Bindings bindings;
  for (const BoundVariable& v : call.variables) bindings.variables[v.name] = v.value;
  for (size_t i = 0; i < call.arguments.size(); i++) {
    const ScheduledBuffer& b = s.buffers[call.arguments[i]];
    std::vector<uint64_t> data(slots[b.slot].begin(), slots[b.slot].begin() + b.size);
    bindings.buffers[int64_t(i)] = Array::of_bits(b.dtype, {b.size}, std::move(data));
  }
  return bindings;
}

// What it has written. Arguments that share a slot: the first of them is the one that is written.
inline void keep_written(const Schedule& s, const KernelCall& call, const Bindings& bindings,
                         Slots& slots) {
  for (size_t i = call.written; i-- > 0;) {
    const ScheduledBuffer& b = s.buffers[call.arguments[i]];
    const std::vector<uint64_t>& data = bindings.buffers.at(int64_t(i)).data;
    std::copy(data.begin(), data.end(), slots[b.slot].begin());
  }
}

// The outputs after all calls. What runs is what `prepare` makes of each kernel.
inline std::vector<Array> run_schedule(
    const Schedule& s, const std::map<int64_t, Array>& inputs,
    const std::function<UOp(UOp)>& prepare = [](UOp ast) { return ast; }) {
  Slots slots = memory_of(s, inputs);
  for (const KernelCall& call : s.calls) {
    Arena arena;
    const UOp ast = with_shared_memory(arena, s, call);
    Bindings bindings = bindings_of(s, call, slots);
    evaluate(prepare(ast), bindings);
    keep_written(s, call, bindings, slots);
  }
  std::vector<Array> outputs;
  for (const uint32_t o : s.outputs) {
    const ScheduledBuffer& b = s.buffers[o];
    std::vector<uint64_t> data(slots[b.slot].begin(), slots[b.slot].begin() + b.size);
    outputs.push_back(Array::of_bits(b.dtype, {b.size}, std::move(data)));
  }
  return outputs;
}

// Bit by bit, but a NaN is a NaN: its sign and payload are promised by nobody.
inline bool is_same(const Array& a, const Array& b) {
  const auto is_nan = [](const Array& of, size_t k) {
    return of.dtype.is_float() && std::isnan(double_of_bits(of.dtype.element(), of.data[k]));
  };
  if (a.data.size() != b.data.size()) return false;
  for (size_t k = 0; k < a.data.size(); k++) {
    if (a.data[k] != b.data[k] && !(is_nan(a, k) && is_nan(b, k))) return false;
  }
  return true;
}

// Throws when an output is another than expected, with what was run.
inline void expect_outputs(const std::vector<Array>& expected, const std::vector<Array>& got,
                           UOp sink, const std::string& text) {
  for (size_t i = 0; i < expected.size(); i++) {
    if (is_same(expected[i], got[i])) continue;
    throw std::runtime_error(fmt::format("output {} is\n  {}\nand not\n  {}\n{}\n{}", i,
                                         got[i].text(), expected[i].text(), print(sink), text));
  }
}

// The buffers and kernels, for people.
inline std::string describe(const Schedule& s) {
  static constexpr const char* kKinds[] = {"input", "output", "temp", "table"};
  std::string out;
  for (size_t i = 0; i < s.buffers.size(); i++) {
    const ScheduledBuffer& b = s.buffers[i];
    out += fmt::format("buffer {}: {} {} {} (id {}) in slot {}\n", i, kKinds[size_t(b.kind)],
                       b.dtype.name(), b.size, b.id, b.slot);
  }
  for (const KernelCall& c : s.calls) {
    out += fmt::format("{} on", c.name);
    for (const uint32_t a : c.arguments) out += fmt::format(" {}", a);
    out += "\n" + print(c.ast) + "\n";
  }
  return out;
}

}  // namespace weft::test
