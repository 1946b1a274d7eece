// Object code in memory that runs: what an ELF64 file of a compiler holds, placed and relocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

class ObjectCode {
 public:
  // `object` is a relocatable file for this machine. What it calls outside of itself is a few
  // functions of the C library (memcpy, fma, ...) and no other. Throws CompileError for a file that
  // is damaged or asks for more, and DeviceError when there is no memory for it. No page of it is
  // ever writable and executable at once.
  explicit ObjectCode(std::span<const std::byte> object);
  ObjectCode(const ObjectCode&) = delete;
  ObjectCode& operator=(const ObjectCode&) = delete;
  ~ObjectCode();

  // The address of a function that it defines; null when there is none of this name.
  void* function(std::string_view name) const;
  size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<std::pair<std::string, void*>> functions_;
};

}  // namespace weft
