// Memory of an OpenCL device, kept when it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/opencl/opencl_functions.h"
#include "runtime/opencl/opencl_library.h"

namespace weft::cl {

// Commands of the device run in order: memory that a later command gets is not in use any more.
class MemoryPool {
 public:
  MemoryPool(std::string name, const Functions& call, const Facts& facts, Context context,
             Queue queue)
      : name_(std::move(name)), call_(call), facts_(facts), context_(context), queue_(queue) {}

  // What is kept goes back to the device before an allocation fails: then DeviceError. Thread-safe.
  Memory allocate(size_t bytes);
  void free(Memory memory, size_t bytes) noexcept;  // `bytes` as allocated
  // Back to the device with all that is not in use.
  void release_kept() noexcept;

  // The error of a command that found no memory for its buffers.
  [[noreturn]] void throw_out_of_memory(size_t bytes, const std::string& why) const;

 private:
  static size_t size_class(size_t bytes);
  Memory try_allocate(size_t bytes, int32_t& code);

  const std::string name_;
  const Functions& call_;
  const Facts& facts_;
  const Context context_;
  const Queue queue_;
  mutable std::mutex mutex_;
  uint64_t used_bytes_ = 0, kept_bytes_ = 0;
  std::unordered_map<size_t, std::vector<Memory>> kept_;
};

}  // namespace weft::cl
