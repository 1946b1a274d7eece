// A GPU with a compiler.
#include "runtime/cuda/cuda_device.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/node.h"
#include "runtime/cpu/host_cpu.h"
#include "runtime/cuda/cuda_chip.h"
#include "runtime/cuda/cuda_compiler.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/cuda_program.h"
#include "runtime/cuda/cuda_recording.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/program.h"
#include "runtime/search_kernel.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

constexpr size_t kMostCompileThreads = 16;

class CudaDevice : public Device {
 public:
  CudaDevice(CudaGpu& gpu, const CudaCompiler& compiler)
      : Device(compiler.name.empty() ? gpu.name()
                                     : fmt::format("{}:{}", gpu.name(), compiler.name)),
        gpu_(gpu),
        compiler_(compiler),
        target_(
            target_of_chip(compiler.target(),
                           {.architecture = size_t(gpu.architecture()),
                            .multiprocessors = size_t(gpu.multiprocessors()),
                            .most_shared_bytes = gpu.most_shared_bytes(),
                            .has_boxes = CudaDriver::get().functions().encode_tiled != nullptr})) {}

  void* allocate(size_t bytes) override { return gpu_.context().allocator().allocate(bytes); }
  void free(void* memory, size_t bytes) noexcept override { gpu_.free(memory, bytes); }
  void copy_in(void* to, std::span<const std::byte> from) override {
    const CudaMemory& memory = gpu_.memory(to);
    memory.context->copy_in(memory.address, from);
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    const CudaMemory& memory = gpu_.memory(from);
    memory.context->copy_out(to, memory.address);
  }
  bool copy_out_part(std::span<std::byte> to, const void* from, size_t first) override {
    const CudaMemory& memory = gpu_.memory(from);
    memory.context->copy_out(to, memory.address + first);
    return true;
  }
  bool copy_part(void* to, const void* from, size_t first, size_t bytes) override {
    CudaMemory part = gpu_.memory(from);
    part.address += first;
    const CudaMemory& memory = gpu_.memory(to);
    memory.context->copy(memory.address, part, bytes);
    return true;
  }
  bool copy_from(void* to, Device& other, const void* from, size_t bytes) override {
    auto* const source = dynamic_cast<CudaDevice*>(&other);
    if (source == nullptr) return false;
    const CudaMemory& memory = gpu_.memory(to);
    memory.context->copy(memory.address, source->gpu_.memory(from), bytes);
    return true;
  }
  bool keeps_schedules() const override { return true; }
  const KernelLimits& limits() const override { return target_.limits; }
  void synchronize() override { gpu_.context().synchronize(); }
  std::string missing() const override { return compiler_.missing(); }
  // A kernel that is timed has the machine to itself.
  size_t compile_threads() const override {
    return config().beam > 0 ? 1 : std::min(host_cores(), kMostCompileThreads);
  }
  std::string description() const override {
    return fmt::format(
        "{}, {:.1f} GiB, {} multiprocessors of architecture {}, driver of CUDA {}, {}",
        gpu_.product(), double(gpu_.bytes()) / double(1 << 30), gpu_.multiprocessors(),
        gpu_.architecture(), cuda_version_text(CudaDriver::get().version()),
        compiler_.description());
  }

  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    if (const std::string& missing = compiler_.missing(); !missing.empty()) {
      throw DeviceError(fmt::format("[{}] {}", this->name(), missing));
    }
    if (config().beam == 0) {
      return std::make_shared<CudaProgram>(gpu_, compiler_, target_, ast, name);
    }
    const OptList opts = search(ast, name);
    return std::make_shared<CudaProgram>(gpu_, compiler_, target_, ast, name, &opts);
  }
  std::unique_ptr<RecordedCalls> record(std::span<const RecordedCall> calls) override {
    return record_cuda(gpu_, calls);
  }

 private:
  OptList search(UOp ast, std::string_view name) {
    const auto compile = [&](UOp kernel, const OptList& opts) {
      return std::make_shared<CudaProgram>(gpu_, compiler_, target_, kernel, name, &opts,
                                           CudaProgram::Keep::kNo);
    };
    const KernelSearch settings{
        .device = *this,
        .target = target_,
        .machine = mix(hash_bytes_128(gpu_.product()), hash_bytes_128(compiler_.identity())),
        .width = size_t(config().beam),
        .compile_threads = std::min(host_cores(), kMostCompileThreads),
        .compile = compile,
    };
    return searched_opts(ast, name, settings, *kernel_cache());
  }

  CudaGpu& gpu_;
  const CudaCompiler& compiler_;
  Target target_;
};

}  // namespace

std::vector<Device*> cuda_devices() {
  static const auto* const kDevices = [] {  // they live until the process ends
    auto* const made = new std::vector<Device*>;
    for (const CudaCompiler& compiler : cuda_compilers()) {
      for (CudaGpu* gpu : CudaGpu::all()) made->push_back(new CudaDevice(*gpu, compiler));
    }
    return made;
  }();
  return *kDevices;
}

std::string cuda_missing() { return CudaDriver::get().missing(); }

}  // namespace weft
