// Memory of the process that a GPU reads and writes by itself, through which transfers pass.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "runtime/cuda/cuda_functions.h"

namespace weft {

class CudaContext;

// A few chunks in turn: one is filled or emptied by the CPU while the others are under way. Its
// memory is made at the first use.
class CudaStaging {
 public:
  explicit CudaStaging(CudaContext& context) : context_(context) {}
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  void copy_in(CudaAddress to, std::span<const std::byte> from);
  void copy_out(std::span<std::byte> to, CudaAddress from);

 private:
  struct Chunk {
    std::byte* memory = nullptr;
    CudaEvent event = nullptr;
  };

  Chunk& next();
  void wait(const Chunk& chunk);

  CudaContext& context_;
  std::mutex mutex_;
  std::array<Chunk, 4> chunks_;
  size_t at_ = 0;
};

}  // namespace weft
