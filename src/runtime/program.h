// A kernel that is ready to run on its device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

  // The text that was compiled; none where there is none.
  virtual std::string_view source() const { return {}; }
};

}  // namespace weft
