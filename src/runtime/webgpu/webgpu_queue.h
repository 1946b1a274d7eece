// One WebGPU device of this process: its memory, its pipelines, and the commands that it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "render/render.h"
#include "runtime/webgpu/wgpu_functions.h"

namespace weft {

class WebGpuQueue {
 public:
  // Memory of the device, a multiple of 16 bytes.
  struct Memory {
    wgpu::Buffer buffer;
    size_t bytes;
  };
  class PipelineHandle;

  // Chooses an adapter and opens it. Throws DeviceError.
  WebGpuQueue();
  WebGpuQueue(const WebGpuQueue&) = delete;
  WebGpuQueue& operator=(const WebGpuQueue&) = delete;

  // All are thread-safe, and throw DeviceError when the device is lost, when something that was
  // started before failed, and in a child of the process that opened it.
  Memory* allocate(size_t bytes);
  void free(Memory* memory) noexcept;
  void write(Memory& to, std::span<const std::byte> from);
  void read(std::span<std::byte> to, const Memory& from);
  // Throws CompileError with what wgpu says.
  std::shared_ptr<PipelineHandle> compile(std::string_view source, std::string_view name);
  // Bindings: `variables` are the words of the uniform buffer, then the buffers in order.
  void run(const PipelineHandle& pipeline, std::span<Memory* const> buffers,
           std::span<const uint32_t> variables, std::array<uint32_t, 3> groups);
  // Returns when all that was started has been done.
  void synchronize();

  const std::string& description() const { return description_; }
  const WgslDriver& driver() const { return driver_; }

 private:
  class ErrorScope;
  struct Layout {
    wgpu::BindGroupLayout group = nullptr;
    wgpu::PipelineLayout pipeline = nullptr;
  };

  void open_adapter();
  WgslDriver find_driver();
  void check_usable() const;
  void check_errors();
  void flush();
  void wait(const bool& is_done);
  void release_kept() noexcept;
  bool keep(Memory* memory) noexcept;
  Memory* take_kept(size_t bytes);
  Memory* make_memory(size_t bytes);
  const Layout& layout(size_t buffers);
  wgpu::Buffer uniform(std::span<const uint32_t> words);
  wgpu::Buffer staging(size_t bytes);

  static void lost(const wgpu::Device*, uint32_t, wgpu::Text, void*, void*);
  static void failed(const wgpu::Device*, uint32_t, wgpu::Text, void*, void*);

  const wgpu::Functions& wgpu_;
  const int process_;
  wgpu::Device device_ = nullptr;
  wgpu::Queue queue_ = nullptr;
  wgpu::Limits limits_{};
  std::string description_;
  WgslDriver driver_;

  mutable std::mutex mutex_;
  wgpu::Encoder encoder_ = nullptr;  // of the commands that are not submitted yet
  wgpu::Pass pass_ = nullptr;
  size_t recorded_ = 0;
  size_t used_bytes_ = 0, kept_bytes_ = 0;
  std::map<size_t, std::vector<Memory*>> kept_;  // freed, by size
  std::unordered_map<size_t, Layout> layouts_;
  std::map<std::vector<uint32_t>, wgpu::Buffer> uniforms_;
  std::unordered_map<std::string, std::shared_ptr<PipelineHandle>> pipelines_;
  wgpu::Buffer staging_ = nullptr;
  size_t staging_bytes_ = 0;

  mutable std::mutex error_mutex_;  // taken by callbacks
  std::string lost_, error_;
};

}  // namespace weft
