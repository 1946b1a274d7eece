// What a rangeified graph stores: its BUFFERIZEs and its writes, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/reads.h"

namespace weft {

// One BUFFERIZE, or one write: a STORE to memory, END around it if it has loops.
struct StoredValue {
  UOp node;
  bool is_write = false;
  bool must_store = false;  // a write, or BUFFERIZE(CONTIGUOUS(value), ...)
  UOp version{};            // of a write: the AFTER that it makes, which has it with others

  // The loops: constant indices of axes of size 1 included for a BUFFERIZE.
  std::span<const UOp> ranges() const {
    return is_write && node.is(Op::STORE) ? std::span<const UOp>() : node.srcs().subspan(1);
  }
  UOp store() const { return node.is(Op::END) ? node.src(0) : node; }  // of a write
  // A write whose places are known only when it runs, or that combines: its iterations may meet.
  // Or a transfer between devices, which shares its kernel with nobody.
  bool is_serial() const;
  // All that is computed: of a write the gate, too, and indices that read memory.
  std::vector<UOp> roots() const;
  // What is computed: without the CONTIGUOUS that says that it must be stored.
  UOp value() const {
    if (is_write) return store().src(1);
    return must_store ? node.src(0).src(0) : node.src(0);
  }
};

// Sources before users.
std::vector<StoredValue> stored_values(UOp sink);

// The memory that an AFTER or INDEX names: AFTER(m, ...) is m.
UOp memory_of(UOp n);

// AFTER, and not of a register, nor of local memory, which a kernel fills for itself.
bool is_memory_after(UOp n);

// An INDEX of memory that kernels share: a read of a stored value.
bool is_read(UOp n);

// Calls visit(n) for every node under the roots down to reads of memory, whose memory is not
// entered, each once, users first. Of index arithmetic only what reads memory is visited.
template <class Visit>
void visit_computation(std::span<const UOp> roots, Visit&& visit) {
  if (roots.empty()) return;
  NodeMap seen(roots[0].arena());
  std::vector<UOp> todo;
  const auto push = [&](UOp n) {
    if (seen.has(n) || (n.dtype().is_index() && !reads_memory(n))) return;
    seen.put_number(n, 1);
    todo.push_back(n);
    for (UOp s : n.srcs()) __builtin_prefetch(s.node());
  };
  for (UOp n : roots) push(n);
  while (!todo.empty()) {
    const UOp n = todo.back();
    todo.pop_back();
    visit(n);
    for (UOp s : n.srcs().subspan(is_read(n) ? 1 : 0)) push(s);
  }
}

// A register lives through the loops that it waits for beside its start: of the ranges that store
// the value, those come last, which is innermost.
void put_carried_last(UOp value, std::vector<UOp>& ranges);

// The sizes of ranges, multiplied. A symbolic size counts as its largest, or as a usual one where
// that is much more.
double places(std::span<const UOp> ranges);

}  // namespace weft
