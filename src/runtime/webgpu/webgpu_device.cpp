// Lower and render to WGSL; then a launch on the one queue of the process.
#include "runtime/webgpu/webgpu_device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/small_vector.h"
#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "render/render.h"
#include "rewrite/pattern.h"
#include "runtime/buffer.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/gpu/gpu_kernel.h"
#include "runtime/gpu/gpu_machine.h"
#include "runtime/program.h"
#include "runtime/webgpu/webgpu_pipeline.h"
#include "runtime/webgpu/webgpu_queue.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

using Memory = WebGpuQueue::Memory;

class WebGpuProgram : public Program {
 public:
  WebGpuProgram(WebGpuQueue& queue, UOp ast, std::string_view name, const Target& target)
      : queue_(queue), kernel_(make_gpu_kernel(ast, name, target, render_for(queue))) {
    compile(name);
  }
  WebGpuProgram(WebGpuQueue& queue, UOp linear, std::string_view name)
      : queue_(queue), kernel_(make_gpu_kernel_of_list(linear, name, render_for(queue))) {
    compile(name);
  }

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
    const LaunchSize size = kernel_.launch.size(variables);
    std::array<uint32_t, 3> groups{};
    for (size_t d = 0; d < groups.size(); d++) {
      if (size.groups[d] == 0) return;
      groups[d] = uint32_t(size.groups[d]);
    }
    SmallVector<Memory*, 8> buffers;
    for (const uint32_t i : kernel_.launch.globals()) {
      buffers.push_back(static_cast<Memory*>(arguments[i]->memory()));
    }
    SmallVector<uint32_t, 32> words;
    for (size_t i = 0; i < 4 * kWgslZeros; i++) words.push_back(0);
    for (const Launch::Variable& variable : kernel_.launch.variables()) {
      const auto value = uint64_t(variables[variable.place]);
      for (const uint64_t word : {value & 0xffffffff, value >> 32, uint64_t(0), uint64_t(0)}) {
        words.push_back(uint32_t(word));
      }
    }
    queue_.run(*pipeline_, {buffers.data(), buffers.size()}, {words.data(), words.size()}, groups);
  }

  std::string source(UOp) const override { return kernel_.source; }

 private:
  static std::function<RenderFunction> render_for(const WebGpuQueue& queue) {
    return [&](UOp linear, std::string_view name) {
      return render_wgsl(linear, name, queue.driver());
    };
  }
  void compile(std::string_view name) {
    const uint64_t start = now_ns();
    pipeline_ = queue_.compile(kernel_.source, name);
    if (shows(2)) show_loaded(name, "wgpu", now_ns() - start);
  }

  WebGpuQueue& queue_;
  GpuKernel kernel_;
  std::shared_ptr<WebGpuQueue::PipelineHandle> pipeline_;
};

// Not said by any driver.
constexpr size_t kUnits = 16;

Target target_for(const WgslDriver& driver) {
  Target target = wgsl_target(driver);
  target.limits.machine = gpu_machine(kUnits);
  return target;
}

class WebGpuDevice : public Device {
 public:
  WebGpuDevice() : Device("WEBGPU"), target_(target_for(queue_.driver())) {}

  DTypeSet missing_dtypes() const override { return set_of(Scalar::kFloat64); }
  const KernelLimits& limits() const override { return target_.limits; }

  void* allocate(size_t bytes) override { return queue_.allocate(bytes); }
  void free(void* memory, size_t) noexcept override { queue_.free(static_cast<Memory*>(memory)); }
  void copy_in(void* to, std::span<const std::byte> from) override {
    queue_.write(*static_cast<Memory*>(to), from);
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    queue_.read(to, *static_cast<const Memory*>(from));
  }
  void synchronize() override { queue_.synchronize(); }
  std::string description() const override { return queue_.description(); }

  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    return std::make_shared<WebGpuProgram>(queue_, ast, name, target_);
  }
  const Target* target() const override { return &target_; }
  std::shared_ptr<Program> compile_list(UOp linear, std::string_view name) override {
    return std::make_shared<WebGpuProgram>(queue_, linear, name);
  }

 private:
  WebGpuQueue queue_;
  const Target target_;
};

struct Opened {
  std::unique_ptr<WebGpuDevice> device;
  std::string missing;
};

const Opened& opened() {
  static const Opened& instance = *[] {
    auto* made = new Opened;
    try {
      made->device = std::make_unique<WebGpuDevice>();
    } catch (const Error& error) {
      made->missing = error.what();
    }
    return made;
  }();
  return instance;
}

}  // namespace

std::vector<Device*> webgpu_devices() {
  return opened().device ? std::vector<Device*>{opened().device.get()} : std::vector<Device*>();
}

std::string webgpu_missing() { return opened().missing; }

}  // namespace weft
