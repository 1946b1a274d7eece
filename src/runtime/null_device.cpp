// Devices that schedule and count as any other, and run nothing: NULL, and those that also choose
// and write kernels for a GPU that need not be there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "codegen/target.h"
#include "ir/node.h"
#include "render/render.h"
#include "runtime/buffer.h"
#include "runtime/cuda/cuda_chip.h"
#include "runtime/device.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/program.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

class NullProgram : public Program {
 public:
  explicit NullProgram(std::string source = {}) : source_(std::move(source)) {}

  void run(std::span<Buffer* const>, std::span<const int64_t>) override {}
  std::string source(UOp) const override { return source_; }

 private:
  std::string source_;
};

class NullDevice : public Device {
 public:
  explicit NullDevice(std::string name) : Device(std::move(name)) {}

  void* allocate(size_t) override { return nullptr; }
  void free(void*, size_t) noexcept override {}
  void copy_in(void*, std::span<const std::byte>) override {}
  void copy_out(std::span<std::byte> to, const void*) override {
    std::fill(to.begin(), to.end(), std::byte(0));
  }
  std::shared_ptr<Program> compile(UOp, std::string_view) override {
    return std::make_shared<NullProgram>();
  }
};

class NullCudaDevice : public NullDevice {
 public:
  NullCudaDevice() : NullDevice("NULL:CUDA"), target_(target_of_chip(cuda_target(), kH200)) {}

  const KernelLimits& limits() const override { return target_.limits; }
  std::string description() const override { return "kernels as for an H200, which are not run"; }
  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    return std::make_shared<NullProgram>(make_gpu_kernel(ast, name, target_, render_cuda).source);
  }

 private:
  Target target_;
};

}  // namespace

Device& null_device() {
  static auto* device = new NullDevice("NULL");
  return *device;
}

Device& null_cuda_device() {
  static auto* device = new NullCudaDevice;
  return *device;
}

}  // namespace weft
