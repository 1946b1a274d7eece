// A kernel that is ready to run on its device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/node.h"

namespace weft {

class Buffer;

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  // arguments[i] is DEFINE_GLOBAL i; variables[i] the value of the kernel's i-th VARIABLE in order
  // of their names. When it throws it has written nothing. Thread-safe.
  virtual void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) = 0;

  // The text that was compiled, of the kernel that was: one that is long is made again. None where
  // there is none.
  virtual std::string source(UOp) const { return {}; }
};

// Calls of programs that run again and again, one after the other, on memory that is numbered.
struct RecordedCall {
  Program* program;
  std::span<const uint32_t> arguments;  // numbers of memory
  std::span<const int64_t> variables;
};

// Such calls as one piece of work for their device. It does not own the programs.
class RecordedCalls {
 public:
  RecordedCalls() = default;
  RecordedCalls(const RecordedCalls&) = delete;
  RecordedCalls& operator=(const RecordedCalls&) = delete;
  virtual ~RecordedCalls() = default;

  // memory[i] is the memory of number i, which may be another one in each run. By one thread at a
  // time. When it throws it has written nothing.
  virtual void run(std::span<Buffer* const> memory) = 0;
};

}  // namespace weft
