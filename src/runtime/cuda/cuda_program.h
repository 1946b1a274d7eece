// Kernels that are ready to run on a GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/small_vector.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "runtime/cuda/cuda_compiler.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_functions.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/program.h"

namespace weft {

// Code of one function for one GPU. Loaded again when the context that had it was lost.
class CudaCode {
 public:
  CudaCode(CudaGpu& gpu, std::vector<std::byte> code, std::string_view name, size_t dynamic_bytes);
  CudaCode(const CudaCode&) = delete;
  CudaCode& operator=(const CudaCode&) = delete;
  ~CudaCode();

  // Throws CompileError when the driver refuses the code.
  CudaFunction function(CudaContext& context);

 private:
  struct Loaded {
    CudaContext* context;
    CudaModuleHandle module;
    CudaFunction function;
  };

  const Loaded& load(CudaContext& context);

  CudaGpu& gpu_;
  const std::vector<std::byte> code_;
  const std::string name_;
  const size_t dynamic_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Loaded>> all_;  // the last is in use
  std::atomic<const Loaded*> loaded_ = nullptr;
};

// What a launch takes: addresses, then variables, then arrays that boxes are copied of.
class CudaArguments {
 public:
  void** pointers();
  void add(uint64_t word) { words_.push_back(word); }
  void add_arrays(size_t count) { arrays_.resize(count); }
  std::span<uint64_t> words() { return {words_.data(), words_.size()}; }
  std::span<CudaTensorMap> arrays() { return arrays_; }

 private:
  SmallVector<uint64_t, 24> words_;
  std::vector<CudaTensorMap> arrays_;
  SmallVector<void*, 24> pointers_;
};

class CudaProgram : public Program {
 public:
  enum class Keep : bool { kNo, kYes };  // on disk

  // No opts: those that choose_opts chooses.
  CudaProgram(CudaGpu& gpu, const CudaCompiler& compiler, const Target& target, UOp ast,
              std::string_view name, const OptList* opts = nullptr, Keep keep = Keep::kYes);

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override;
  std::string source(UOp) const override { return kernel_.source; }

  const std::string& name() const { return name_; }
  // For launches by others. `taken` comes empty, and is filled with a place for the address of each
  // of taken_arguments() and then the variables. Once the addresses are there, or are others,
  // set_arrays makes of them what else the launch takes.
  CudaKernelNode launch(CudaContext& context, CudaArguments& taken,
                        std::span<const int64_t> variables) const;
  void set_arrays(CudaContext& context, CudaArguments& taken) const;
  std::span<const uint32_t> taken_arguments() const { return kernel_.launch.globals(); }

 private:
  CudaGpu& gpu_;
  const std::string& name_;  // lives for ever
  GpuKernel kernel_;
  std::shared_ptr<CudaCode> code_;
};

}  // namespace weft
