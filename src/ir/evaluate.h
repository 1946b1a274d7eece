// The reference evaluator: runs any graph of any stage, one element at a time. Slow; what every
// test, pass and renderer is held against.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/array.h"
#include "ir/node.h"

namespace weft {

// What a graph runs on.
struct Bindings {
  std::map<int64_t, Array> buffers;          // of BUFFER and DEFINE_GLOBAL, by id
  std::map<std::string, int64_t> variables;  // of VARIABLE; those under a BIND need none
};

// The value of every source of a SINK, else of the root itself; an effect gives Array::nothing(), a
// pointer the whole of its memory.
//
// Tensor graphs change no binding. Reductions are left folds in row-major order that start from
// identity_bits(). AFTER(old, STORE(view of old, value), ...) is old with the regions replaced,
// store after store, each in row-major order: the last write to an element stays.
//
// Every other graph runs as loops over its RANGEs. A node runs once for every value of the ranges
// in its scope (ranges_of), sources first; REDUCE folds with its last range fastest. In one
// iteration, what only reads runs as early as its sources allow, before all effects that it does
// not depend on; effects run in the order in which the graph lists them. ENDs of one RANGE are one
// loop unless one waits for another. An AFTER of a register, or of an element, reads it when the
// effects are done. SPECIALs are the outermost loops, in the order of their names; those named l...
// are the threads of a workgroup, which meet at every BARRIER and share DEFINE_LOCAL memory. A
// KERNEL runs its ast on its arguments. A LINEAR list runs in its order; an AFTER
// that it leaves out is read where it is used. Writes to global memory change bindings.buffers; a
// buffer that has no binding gets one.
//
// An element read out of bounds or before it is written, or an index past 64 bits, is an error when
// its value is used: not in the arm that a WHERE leaves, nor behind a gate that is off.
// Throws IndexError on accesses out of bounds, Error on the other two, InternalError on graphs that
// have no meaning; all name the node and the values of the loops around it.
std::vector<Array> evaluate(UOp root, Bindings& bindings);

}  // namespace weft
