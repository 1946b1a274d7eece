// Memory of the evaluator's machine, and values that may turn out to be errors. Private to
// ir/evaluate*.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/node.h"

namespace weft::evaluator {

// Why a value does not exist. It travels with the value, and is an error once the value is used.
struct Fault {
  enum Kind : uint8_t { kNone, kOutOfBounds, kUnwritten, kOverflow } kind = kNone;
  UOp node;             // where it arose
  int64_t element = 0;  // that was accessed, of `limit`
  int64_t limit = 0;

  explicit operator bool() const { return kind != kNone; }
};

struct Lane {
  uint64_t bits = 0;  // canonical
  Fault fault = {};
};

// An array that knows which of its lanes were written.
struct Memory {
  Array* array = nullptr;
  std::vector<bool> unwritten;  // by lane; empty when all are written
  Array own;                    // what `array` points to, unless it is a binding
};

// A memory of its own, unwritten.
void make_own(Memory& memory, DType dtype, std::vector<int64_t> shape);

// One lane of a memory, and how many lanes of it may be accessed.
struct Place {
  Memory* memory = nullptr;
  int64_t offset = 0;  // in lanes
  int64_t limit = 0;   // in lanes
  Fault fault = {};    // of the address
};

// What the lane `lane` after a place holds; node is what reads it.
Lane read(const Place& place, int64_t lane, UOp node);
// Writes; the fault when it cannot.
Fault write(const Place& place, int64_t lane, uint64_t bits, UOp node);

// Global memory by id, from the bindings; a buffer without a binding gets one, unwritten.
class Heap {
 public:
  explicit Heap(std::map<int64_t, Array>& buffers) : buffers_(buffers) {}

  // The memory of a BUFFER or DEFINE_GLOBAL; throws Error when its binding has another dtype or
  // fewer elements.
  Memory& memory_of(UOp definition, DType element, int64_t size);

 private:
  std::map<int64_t, Array>& buffers_;
  std::map<int64_t, Memory> memories_;
};

// Throws Error unless the memory holds at least `size` elements of the dtype.
void check_memory(const Memory& memory, UOp definition, DType element, int64_t size);

}  // namespace weft::evaluator
