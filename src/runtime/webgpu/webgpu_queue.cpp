// Memory and commands of a WebGPU device.
#include "runtime/webgpu/webgpu_queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "render/render.h"
#include "runtime/webgpu/webgpu_pipeline.h"
#include "runtime/webgpu/wgpu_functions.h"
#include "runtime/webgpu/wgpu_library.h"

namespace weft {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kMostRecorded = 64;                // launches that are submitted together
constexpr size_t kMostUniforms = 1024;              // uniform buffers that are kept
constexpr size_t kMostPipelines = 4096;             // and pipelines
constexpr size_t kStagingBytes = size_t(16) << 20;  // read at a time
constexpr wgpu::Flags kBackends = wgpu::kVulkan | wgpu::kMetal | wgpu::kDx12;

size_t padded(size_t bytes) {
  return std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

// Discrete ones first, those that are software last.
int rank_of(uint32_t adapter_type) {
  switch (adapter_type) {
    case wgpu::kDiscrete: return 0;
    case wgpu::kIntegrated: return 1;
    case wgpu::kCpu: return 3;
    default: return 2;
  }
}

}  // namespace

// What goes wrong between its begin and its end, on this thread; the lock of the queue is held.
class WebGpuQueue::ErrorScope {
 public:
  explicit ErrorScope(WebGpuQueue& queue) : queue_(queue) {
    for (const uint32_t filter : {wgpu::kValidation, wgpu::kOutOfMemory}) {
      queue_.wgpu_.push_error_scope(queue_.device_, filter);
    }
  }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
  ~ErrorScope() { end(); }

  // The text of the first error; none: there was none.
  const std::string& end() {
    for (; open_ > 0; open_--) {
      queue_.wgpu_.pop_error_scope(
          queue_.device_, {.function = &ErrorScope::popped, .context = this, .other = nullptr});
    }
    return error_;
  }

 private:
  static void popped(uint32_t, uint32_t type, wgpu::Text text, void* self, void*) {
    auto& scope = *static_cast<ErrorScope*>(self);
    if (type != wgpu::kNoError && scope.error_.empty()) scope.error_ = text.string();
  }

  WebGpuQueue& queue_;
  int open_ = 2;
  std::string error_;
};

// ---------------------------------------------------------------------------------------- opening

WebGpuQueue::WebGpuQueue() : wgpu_(wgpu_library()), process_(getpid()) {
  open_adapter();
  queue_ = wgpu_.device_get_queue(device_);
  driver_ = find_driver();
}

void WebGpuQueue::open_adapter() {
  // Drivers look for a display, and complain where there can be none.
  const EnvironmentDefault folder("XDG_RUNTIME_DIR", config().temp_dir.c_str(), "WAYLAND_DISPLAY");
  wgpu::InstanceExtras extras;
  extras.backends = kBackends;
  wgpu::InstanceDescriptor descriptor;
  descriptor.next = &extras.chain;
  const wgpu::Instance instance = wgpu_.create_instance(&descriptor);
  wgpu::EnumerateOptions options;
  options.backends = kBackends;
  std::vector<wgpu::Adapter> adapters(wgpu_.enumerate_adapters(instance, &options, nullptr));
  wgpu_.enumerate_adapters(instance, &options, adapters.data());
  const auto info_of = [&](wgpu::Adapter adapter) {
    wgpu::AdapterInfo info;
    wgpu_.adapter_get_info(adapter, &info);
    return info;
  };
  std::ranges::stable_sort(adapters, {}, [&](wgpu::Adapter a) { return rank_of(info_of(a).type); });
  if (adapters.empty()) {
    throw DeviceError(
        "there is no graphics driver that wgpu can use; install one for Vulkan (apt "
        "install mesa-vulkan-drivers has one in software)");
  }
  const wgpu::Adapter adapter = adapters[0];
  const wgpu::AdapterInfo info = info_of(adapter);
  wgpu_.adapter_get_limits(adapter, &limits_);
  wgpu::DeviceDescriptor wanted;
  wanted.limits = &limits_;
  wanted.lost.function = &WebGpuQueue::lost;
  wanted.lost.context = this;
  wanted.error.function = &WebGpuQueue::failed;
  wanted.error.context = this;
  struct Answer {
    wgpu::Device device = nullptr;
    std::string text;
  } answer;
  const auto take = [](uint32_t status, wgpu::Device device, wgpu::Text text, void* to, void*) {
    static_cast<Answer*>(to)->device = status == wgpu::kSuccess ? device : nullptr;
    static_cast<Answer*>(to)->text = text.string();
  };
  wgpu_.adapter_request_device(adapter, &wanted,
                               {.function = take, .context = &answer, .other = nullptr});
  device_ = answer.device;
  const std::string name = info.device.string();
  for (wgpu::Adapter a : adapters) wgpu_.adapter_release(a);
  if (device_ == nullptr) {
    throw DeviceError(fmt::format("cannot open {}: {}", name, answer.text));
  }
  description_ = fmt::format(
      "{}, {}, buffers of at most {} MiB, {}", name, info.description.string(),
      std::min(limits_.buffer_bytes, limits_.storage_binding_bytes) >> 20, wgpu_identity());
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 with one rounding and 0 with two. 1 + 2^-12 plus and minus
// 2^23 is 1, unless the two are left out. Mesa's software Vulkan ends loops after 65535 iterations,
// without a word.
WgslDriver WebGpuQueue::find_driver() {
  constexpr std::string_view source =
      "@group(0) @binding(1) var<storage, read_write> data: array<f32>;\n"
      "@compute @workgroup_size(1) fn main() {\n"
      "  data[2] = fma(data[0], data[0], data[1]);\n"
      "  data[3] = data[0] * data[0] + data[1];\n"
      "  data[4] = (data[0] + 8388608.0f) - 8388608.0f;\n"
      "  var count = 0u;\n"
      "  for (var i = 0u; i < 100000u; i++) { count += select(0u, 1u, data[i & 1u] != 0.0f); }\n"
      "  data[5] = f32(count);\n"
      "}\n";
  const auto pipeline = compile(source, "probe");
  std::array<float, 6> values{1 + 0x1p-12F, -1 - 0x1p-11F, 0, 0, 0, 0};
  Memory* memory = allocate(sizeof values);
  write(*memory, std::as_bytes(std::span(values)));
  run(*pipeline, std::span(&memory, 1), {}, {1, 1, 1});
  read(std::as_writable_bytes(std::span(values)), *memory);
  free(memory);
  return {.fused = values[2] != 0,
          .contracts = values[3] != 0,
          .simplifies = values[4] != 1,
          .iterations = values[5] == 100000 ? 0 : int64_t(values[5])};
}

// ----------------------------------------------------------------------------------------- errors

void WebGpuQueue::lost(const wgpu::Device*, uint32_t, wgpu::Text text, void* self, void*) {
  auto& queue = *static_cast<WebGpuQueue*>(self);
  const std::lock_guard lock(queue.error_mutex_);
  queue.lost_ = fmt::format("[WEBGPU] the device is lost: {}", text.string());
}

void WebGpuQueue::failed(const wgpu::Device*, uint32_t, wgpu::Text text, void* self, void*) {
  auto& queue = *static_cast<WebGpuQueue*>(self);
  const std::lock_guard lock(queue.error_mutex_);
  if (queue.error_.empty()) queue.error_ = fmt::format("[WEBGPU] {}", text.string());
}

void WebGpuQueue::check_usable() const {
  if (getpid() != process_) {
    throw DeviceError(
        "[WEBGPU] the device was opened before this process was forked, and cannot be used in it; "
        "use another device there, or start processes by spawn");
  }
  const std::lock_guard lock(error_mutex_);
  if (!lost_.empty()) throw DeviceError(lost_);
}

void WebGpuQueue::check_errors() {
  const std::lock_guard lock(error_mutex_);
  if (!lost_.empty()) throw DeviceError(lost_);
  if (!error_.empty()) throw DeviceError(std::exchange(error_, {}));
}

// ----------------------------------------------------------------------------------------- memory

WebGpuQueue::Memory* WebGpuQueue::allocate(size_t bytes) {
  check_usable();
  const size_t size = padded(bytes);
  const size_t most = std::min(limits_.buffer_bytes, limits_.storage_binding_bytes);
  if (size > most) {
    throw DeviceError(fmt::format(
        "[WEBGPU] a buffer of {} bytes is asked for; the device has buffers of at most {} bytes",
        bytes, most));
  }
  const std::lock_guard lock(mutex_);
  Memory* memory = take_kept(size);
  if (memory == nullptr) memory = make_memory(size);
  if (memory == nullptr && !kept_.empty()) {
    flush();
    release_kept();
    wgpu_.poll(device_, 1, nullptr);
    memory = make_memory(size);
  }
  if (memory == nullptr) {
    throw DeviceError(fmt::format("[WEBGPU] there is no memory for {} bytes; {} bytes are in use",
                                  bytes, used_bytes_));
  }
  used_bytes_ += size;
  return memory;
}

WebGpuQueue::Memory* WebGpuQueue::take_kept(size_t bytes) {
  const auto found = kept_.find(bytes);
  if (found == kept_.end()) return nullptr;
  Memory* memory = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) kept_.erase(found);
  kept_bytes_ -= bytes;
  return memory;
}

// Null when there is none.
WebGpuQueue::Memory* WebGpuQueue::make_memory(size_t bytes) {
  ErrorScope scope(*this);
  wgpu::BufferDescriptor wanted;
  wanted.usage = wgpu::kStorage | wgpu::kCopySource | wgpu::kCopyTarget;
  wanted.size = bytes;
  const wgpu::Buffer buffer = wgpu_.create_buffer(device_, &wanted);
  if (scope.end().empty() && buffer != nullptr) return new Memory{buffer, bytes};
  if (buffer != nullptr) wgpu_.buffer_release(buffer);
  return nullptr;
}

void WebGpuQueue::free(Memory* memory) noexcept {
  if (memory == nullptr || getpid() != process_) return;
  const std::lock_guard lock(mutex_);
  used_bytes_ -= memory->bytes;
  if (keep(memory)) return;
  wgpu_.buffer_release(memory->buffer);
  delete memory;
}

bool WebGpuQueue::keep(Memory* memory) noexcept {
  if (kept_bytes_ + memory->bytes > size_t(memory_of_machine() / 8)) return false;
  try {
    kept_[memory->bytes].push_back(memory);
  } catch (const std::bad_alloc&) {
    return false;
  }
  kept_bytes_ += memory->bytes;
  return true;
}

void WebGpuQueue::release_kept() noexcept {
  for (const auto& [bytes, all] : kept_) {
    for (Memory* memory : all) {
      wgpu_.buffer_release(memory->buffer);
      delete memory;
    }
  }
  kept_.clear();
  kept_bytes_ = 0;
}

// Words are written whole: the rest of the last one is padding.
void WebGpuQueue::write(Memory& to, std::span<const std::byte> from) {
  check_usable();
  if (from.empty()) return;
  const std::lock_guard lock(mutex_);
  flush();
  const size_t whole = from.size() / 4 * 4;
  if (whole > 0) wgpu_.write_buffer(queue_, to.buffer, 0, from.data(), whole);
  if (whole < from.size()) {
    uint32_t last = 0;
    std::memcpy(&last, from.data() + whole, from.size() - whole);
    wgpu_.write_buffer(queue_, to.buffer, whole, &last, sizeof last);
  }
  check_errors();
}

void WebGpuQueue::read(std::span<std::byte> to, const Memory& from) {
  check_usable();
  const std::lock_guard lock(mutex_);
  flush();
  for (size_t at = 0; at < to.size();) {
    const size_t bytes = std::min(to.size() - at, kStagingBytes), words = (bytes + 3) / 4 * 4;
    const wgpu::Buffer middle = staging(words);
    const wgpu::Encoder encoder = wgpu_.create_encoder(device_, nullptr);
    wgpu_.copy_buffer(encoder, from.buffer, at, middle, 0, words);
    const wgpu::Commands commands = wgpu_.finish(encoder, nullptr);
    wgpu_.submit(queue_, 1, &commands);
    wgpu_.commands_release(commands);
    wgpu_.encoder_release(encoder);
    struct Answer {
      bool is_done = false;
      uint32_t status = 0;
      std::string text;
    } answer;
    const auto take = [](uint32_t status, wgpu::Text text, void* into, void*) {
      auto& a = *static_cast<Answer*>(into);
      a.is_done = true;
      a.status = status;
      a.text = text.string();
    };
    wgpu_.buffer_map(middle, wgpu::kMapModeRead, 0, words,
                     {.function = take, .context = &answer, .other = nullptr});
    wait(answer.is_done);
    check_errors();
    if (answer.status != wgpu::kSuccess) {
      throw DeviceError(fmt::format("[WEBGPU] cannot read {} bytes: {}", bytes, answer.text));
    }
    std::memcpy(to.data() + at, wgpu_.buffer_get_const_mapped(middle, 0, words), bytes);
    wgpu_.buffer_unmap(middle);
    at += bytes;
  }
  check_errors();
}

wgpu::Buffer WebGpuQueue::staging(size_t bytes) {
  if (bytes <= staging_bytes_) return staging_;
  if (staging_ != nullptr) wgpu_.buffer_release(staging_);
  staging_bytes_ = std::max(std::bit_ceil(bytes), size_t(4096));
  wgpu::BufferDescriptor wanted;
  wanted.usage = wgpu::kMapRead | wgpu::kCopyTarget;
  wanted.size = staging_bytes_;
  staging_ = wgpu_.create_buffer(device_, &wanted);
  return staging_;
}

// --------------------------------------------------------------------------------------- commands

std::shared_ptr<WebGpuQueue::PipelineHandle> WebGpuQueue::compile(std::string_view source,
                                                                  std::string_view name) {
  check_usable();
  const std::lock_guard lock(mutex_);
  std::string key(source);
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  ErrorScope scope(*this);
  wgpu::ShaderSource text;
  text.code = source;
  wgpu::ShaderDescriptor shader;
  shader.next = &text.chain;
  shader.label = name;
  const wgpu::ShaderModule module = wgpu_.create_trusted_shader(device_, &shader, 0);
  size_t buffers = 0;  // bindings but that of variables
  for (size_t at = 0; (at = source.find("var<storage", at)) != source.npos; at++) buffers++;
  wgpu::PipelineDescriptor wanted;
  wanted.label = name;
  wanted.layout = layout(buffers).pipeline;
  wanted.compute.module = module;
  wanted.compute.entry = std::string_view("main");
  const wgpu::Pipeline pipeline =
      module == nullptr ? nullptr : wgpu_.create_pipeline(device_, &wanted);
  if (module != nullptr) wgpu_.shader_release(module);
  auto handle = std::make_shared<PipelineHandle>(wgpu_, process_, pipeline);
  if (const std::string error = scope.end(); !error.empty() || pipeline == nullptr) {
    throw CompileError(fmt::format("[WEBGPU] {}: {}", name, error));
  }
  if (pipelines_.size() >= kMostPipelines) pipelines_.clear();
  pipelines_.emplace(std::move(key), handle);
  return handle;
}

const WebGpuQueue::Layout& WebGpuQueue::layout(size_t buffers) {
  Layout& out = layouts_[buffers];
  if (out.group != nullptr) return out;
  std::vector<wgpu::LayoutEntry> entries(buffers + 1);
  for (size_t i = 0; i <= buffers; i++) {
    entries[i].binding = uint32_t(i);
    entries[i].buffer.type = i == 0 ? wgpu::kUniformBinding : wgpu::kStorageBinding;
  }
  wgpu::LayoutDescriptor group;
  group.count = entries.size();
  group.entries = entries.data();
  out.group = wgpu_.create_layout(device_, &group);
  wgpu::PipelineLayoutDescriptor pipeline;
  pipeline.count = 1;
  pipeline.layouts = &out.group;
  out.pipeline = wgpu_.create_pipeline_layout(device_, &pipeline);
  return out;
}

// One buffer for each content: nothing that is in use is ever written.
wgpu::Buffer WebGpuQueue::uniform(std::span<const uint32_t> words) {
  std::vector<uint32_t> key(words.begin(), words.end());
  key.resize(std::max<size_t>((key.size() + 3) / 4 * 4, 4));
  const auto found = uniforms_.find(key);
  if (found != uniforms_.end()) return found->second;
  if (uniforms_.size() >= kMostUniforms) {
    for (const auto& [content, buffer] : uniforms_) wgpu_.buffer_release(buffer);
    uniforms_.clear();
  }
  wgpu::BufferDescriptor wanted;
  wanted.usage = wgpu::kUniform;
  wanted.size = key.size() * sizeof(uint32_t);
  wanted.is_mapped = 1;
  const wgpu::Buffer buffer = wgpu_.create_buffer(device_, &wanted);
  std::memcpy(wgpu_.buffer_get_mapped(buffer, 0, wanted.size), key.data(), wanted.size);
  wgpu_.buffer_unmap(buffer);
  uniforms_.emplace(std::move(key), buffer);
  return buffer;
}

void WebGpuQueue::run(const PipelineHandle& pipeline, std::span<Memory* const> buffers,
                      std::span<const uint32_t> variables, std::array<uint32_t, 3> groups) {
  check_usable();
  const std::lock_guard lock(mutex_);
  check_errors();
  std::vector<wgpu::GroupEntry> entries(buffers.size() + 1);
  entries[0].buffer = uniform(variables);
  entries[0].size = std::max<size_t>((variables.size() + 3) / 4 * 16, 16);
  for (size_t i = 0; i < buffers.size(); i++) {
    entries[i + 1].binding = uint32_t(i + 1);
    entries[i + 1].buffer = buffers[i]->buffer;
    entries[i + 1].size = buffers[i]->bytes;
  }
  wgpu::GroupDescriptor wanted;
  wanted.layout = layout(buffers.size()).group;
  wanted.count = entries.size();
  wanted.entries = entries.data();
  const wgpu::BindGroup group = wgpu_.create_group(device_, &wanted);
  if (pass_ == nullptr) {
    encoder_ = wgpu_.create_encoder(device_, nullptr);
    pass_ = wgpu_.begin_pass(encoder_, nullptr);
  }
  wgpu_.set_pipeline(pass_, pipeline.get());
  wgpu_.set_group(pass_, 0, group, 0, nullptr);
  wgpu_.dispatch(pass_, groups[0], groups[1], groups[2]);
  wgpu_.group_release(group);
  if (++recorded_ >= kMostRecorded) flush();
}

// The lock is held. The library ends the process where wrong commands are submitted.
void WebGpuQueue::flush() {
  if (pass_ == nullptr) return;
  ErrorScope scope(*this);
  wgpu_.end_pass(pass_);
  wgpu_.pass_release(pass_);
  const wgpu::Commands commands = wgpu_.finish(encoder_, nullptr);
  wgpu_.encoder_release(encoder_);
  pass_ = nullptr;
  encoder_ = nullptr;
  recorded_ = 0;
  const std::string error = scope.end();
  if (error.empty()) wgpu_.submit(queue_, 1, &commands);
  if (commands != nullptr) wgpu_.commands_release(commands);
  if (!error.empty()) throw DeviceError(fmt::format("[WEBGPU] {}", error));
  wgpu_.poll(device_, 0, nullptr);  // lets go of what is done
  check_errors();
}

void WebGpuQueue::wait(const bool& is_done) {
  while (!is_done) {
    wgpu_.poll(device_, 1, nullptr);
    const std::lock_guard lock(error_mutex_);
    if (!lost_.empty()) return;
  }
}

void WebGpuQueue::synchronize() {
  check_usable();
  const std::lock_guard lock(mutex_);
  flush();
  wgpu_.poll(device_, 1, nullptr);
  check_errors();
}

}  // namespace weft
