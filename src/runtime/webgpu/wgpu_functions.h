// The part of webgpu.h and wgpu.h that weft uses, as wgpu-native 29 has it: structures by their
// layout, and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/dynamic_library.h"

namespace weft::wgpu {

constexpr uint32_t kVersion = 29;  // the first number of wgpuGetVersion

// Each is a pointer to an opaque object of the library's.
using Instance = struct InstanceObject*;
using Adapter = struct AdapterObject*;
using Device = struct DeviceObject*;
using Queue = struct QueueObject*;
using Buffer = struct BufferObject*;
using ShaderModule = struct ShaderModuleObject*;
using BindGroup = struct BindGroupObject*;
using BindGroupLayout = struct BindGroupLayoutObject*;
using PipelineLayout = struct PipelineLayoutObject*;
using Pipeline = struct PipelineObject*;
using Encoder = struct EncoderObject*;
using Pass = struct PassObject*;
using Commands = struct CommandsObject*;

using Flags = uint64_t;
using Bool = uint32_t;

struct Text {  // with a length of SIZE_MAX it ends at a zero
  const char* data = nullptr;
  size_t length = 0;

  Text() = default;
  Text(std::string_view text) : data(text.data()), length(text.size()) {}  // NOLINT
  std::string string() const {
    if (data == nullptr) return {};
    return length == SIZE_MAX ? std::string(data) : std::string(data, length);
  }
};

struct Chained {
  const Chained* next = nullptr;
  uint32_t type = 0;
};
constexpr uint32_t kShaderSourceWgsl = 2, kInstanceExtras = 0x00030004;

// -------------------------------------------------------------------------------------- callbacks

constexpr uint32_t kSpontaneous = 3;  // a mode of callbacks
constexpr uint32_t kSuccess = 1;      // of every status

template <class Function>
struct Callback {
  const Chained* next = nullptr;
  uint32_t mode = kSpontaneous;
  Function* function = nullptr;
  void* context = nullptr;
  void* other = nullptr;
};
using DeviceFunction = void(uint32_t status, Device, Text, void*, void*);
using LostFunction = void(const Device*, uint32_t reason, Text, void*, void*);
using ErrorFunction = void(const Device*, uint32_t type, Text, void*, void*);
using StatusFunction = void(uint32_t status, Text, void*, void*);
using ScopeFunction = void(uint32_t status, uint32_t type, Text, void*, void*);

struct ErrorCallback {
  const Chained* next = nullptr;
  ErrorFunction* function = nullptr;
  void* context = nullptr;
  void* other = nullptr;
};

struct Future {
  uint64_t id;
};

enum ErrorFilter : uint32_t { kValidation = 1, kOutOfMemory = 2, kInternal = 3 };
enum ErrorType : uint32_t { kNoError = 1, kValidationError = 2, kOutOfMemoryError = 3 };

// ------------------------------------------------------------------------------------- structures

constexpr Flags kVulkan = 1, kMetal = 4, kDx12 = 8;

struct InstanceExtras {
  Chained chain{nullptr, kInstanceExtras};
  Flags backends = 0, flags = 0;
  uint64_t rest[24] = {};  // compilers, budgets, a display: none
};
struct InstanceDescriptor {
  const Chained* next = nullptr;
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const void* limits = nullptr;
};
struct EnumerateOptions {
  const Chained* next = nullptr;
  Flags backends = 0;
};
enum AdapterType : uint32_t { kDiscrete = 1, kIntegrated = 2, kCpu = 3, kUnknown = 4 };
struct AdapterInfo {
  Chained* next = nullptr;
  Text vendor, architecture, device, description;
  uint32_t backend = 0, type = 0, vendor_id = 0, device_id = 0;
  uint32_t least_subgroup = 0, most_subgroup = 0;
};

struct Limits {
  Chained* next = nullptr;
  uint32_t textures[4], bind_groups[2], bindings_per_group, dynamic_uniform_buffers,
      dynamic_storage_buffers, sampled_textures, samplers, storage_buffers, storage_textures,
      uniform_buffers;
  uint64_t uniform_binding_bytes, storage_binding_bytes;
  uint32_t uniform_alignment, storage_alignment, vertex_buffers;
  uint64_t buffer_bytes;
  uint32_t vertex_attributes, vertex_stride, shader_variables, color_attachments, color_bytes;
  uint32_t workgroup_bytes, workgroup_threads, workgroup_size[3], workgroups, immediate_bytes;
};

struct DeviceDescriptor {
  const Chained* next = nullptr;
  Text label;
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  struct {
    const Chained* next = nullptr;
    Text label;
  } queue;
  Callback<LostFunction> lost;
  ErrorCallback error;
};

enum BufferUsage : Flags {
  kMapRead = 0x1,
  kCopySource = 0x4,
  kCopyTarget = 0x8,
  kUniform = 0x40,
  kStorage = 0x80
};
constexpr Flags kMapModeRead = 1;
struct BufferDescriptor {
  const Chained* next = nullptr;
  Text label;
  Flags usage = 0;
  uint64_t size = 0;
  Bool is_mapped = 0;
};

struct ShaderSource {
  Chained chain{nullptr, kShaderSourceWgsl};
  Text code;
};
struct ShaderDescriptor {
  const Chained* next = nullptr;
  Text label;
};

constexpr Flags kCompute = 4;  // a shader stage
enum BindingType : uint32_t { kUniformBinding = 2, kStorageBinding = 3 };
struct LayoutEntry {
  const Chained* next = nullptr;
  uint32_t binding = 0;
  Flags stages = kCompute;
  uint32_t array_size = 0;
  struct {
    const Chained* next = nullptr;
    uint32_t type = 0;
    Bool has_dynamic_offset = 0;
    uint64_t least_bytes = 0;
  } buffer;
  struct {
    const Chained* next = nullptr;
    uint32_t type = 0;
  } sampler;
  struct {
    const Chained* next = nullptr;
    uint32_t sample_type = 0, dimension = 0;
    Bool is_multisampled = 0;
  } texture;
  struct {
    const Chained* next = nullptr;
    uint32_t access = 0, format = 0, dimension = 0;
  } storage_texture;
};
struct LayoutDescriptor {
  const Chained* next = nullptr;
  Text label;
  size_t count = 0;
  const LayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  const Chained* next = nullptr;
  Text label;
  size_t count = 0;
  const BindGroupLayout* layouts = nullptr;
  uint32_t immediate_bytes = 0;
};
struct PipelineDescriptor {
  const Chained* next = nullptr;
  Text label;
  PipelineLayout layout = nullptr;
  struct {
    const Chained* next = nullptr;
    ShaderModule module = nullptr;
    Text entry;
    size_t constant_count = 0;
    const void* constants = nullptr;
  } compute;
};
struct GroupEntry {
  const Chained* next = nullptr;
  uint32_t binding = 0;
  Buffer buffer = nullptr;
  uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* texture = nullptr;
};
struct GroupDescriptor {
  const Chained* next = nullptr;
  Text label;
  BindGroupLayout layout = nullptr;
  size_t count = 0;
  const GroupEntry* entries = nullptr;
};

// -------------------------------------------------------------------------------------- functions

// WEFT_FUNCTION(result, member, name without wgpu, parameters)
#define WEFT_WGPU_FUNCTIONS(WEFT_FUNCTION)                                                        \
  WEFT_FUNCTION(Instance, create_instance, CreateInstance, (const InstanceDescriptor*))           \
  WEFT_FUNCTION(size_t, enumerate_adapters, InstanceEnumerateAdapters,                            \
                (Instance, const EnumerateOptions*, Adapter*))                                    \
  WEFT_FUNCTION(uint32_t, adapter_get_info, AdapterGetInfo, (Adapter, AdapterInfo*))              \
  WEFT_FUNCTION(uint32_t, adapter_get_limits, AdapterGetLimits, (Adapter, Limits*))               \
  WEFT_FUNCTION(Future, adapter_request_device, AdapterRequestDevice,                             \
                (Adapter, const DeviceDescriptor*, Callback<DeviceFunction>))                     \
  WEFT_FUNCTION(void, adapter_release, AdapterRelease, (Adapter))                                 \
  WEFT_FUNCTION(Queue, device_get_queue, DeviceGetQueue, (Device))                                \
  WEFT_FUNCTION(void, push_error_scope, DevicePushErrorScope, (Device, uint32_t))                 \
  WEFT_FUNCTION(Future, pop_error_scope, DevicePopErrorScope, (Device, Callback<ScopeFunction>))  \
  WEFT_FUNCTION(Bool, poll, DevicePoll, (Device, Bool, const void*))                              \
  WEFT_FUNCTION(Buffer, create_buffer, DeviceCreateBuffer, (Device, const BufferDescriptor*))     \
  WEFT_FUNCTION(void*, buffer_get_mapped, BufferGetMappedRange, (Buffer, size_t, size_t))         \
  WEFT_FUNCTION(const void*, buffer_get_const_mapped, BufferGetConstMappedRange,                  \
                (Buffer, size_t, size_t))                                                         \
  WEFT_FUNCTION(Future, buffer_map, BufferMapAsync,                                               \
                (Buffer, Flags, size_t, size_t, Callback<StatusFunction>))                        \
  WEFT_FUNCTION(void, buffer_unmap, BufferUnmap, (Buffer))                                        \
  WEFT_FUNCTION(void, buffer_destroy, BufferDestroy, (Buffer))                                    \
  WEFT_FUNCTION(void, buffer_release, BufferRelease, (Buffer))                                    \
  WEFT_FUNCTION(ShaderModule, create_trusted_shader, DeviceCreateShaderModuleTrusted,             \
                (Device, const ShaderDescriptor*, Flags))                                         \
  WEFT_FUNCTION(void, shader_release, ShaderModuleRelease, (ShaderModule))                        \
  WEFT_FUNCTION(BindGroupLayout, create_layout, DeviceCreateBindGroupLayout,                      \
                (Device, const LayoutDescriptor*))                                                \
  WEFT_FUNCTION(PipelineLayout, create_pipeline_layout, DeviceCreatePipelineLayout,               \
                (Device, const PipelineLayoutDescriptor*))                                        \
  WEFT_FUNCTION(Pipeline, create_pipeline, DeviceCreateComputePipeline,                           \
                (Device, const PipelineDescriptor*))                                              \
  WEFT_FUNCTION(void, pipeline_release, ComputePipelineRelease, (Pipeline))                       \
  WEFT_FUNCTION(BindGroup, create_group, DeviceCreateBindGroup, (Device, const GroupDescriptor*)) \
  WEFT_FUNCTION(void, group_release, BindGroupRelease, (BindGroup))                               \
  WEFT_FUNCTION(Encoder, create_encoder, DeviceCreateCommandEncoder, (Device, const void*))       \
  WEFT_FUNCTION(void, copy_buffer, CommandEncoderCopyBufferToBuffer,                              \
                (Encoder, Buffer, uint64_t, Buffer, uint64_t, uint64_t))                          \
  WEFT_FUNCTION(Pass, begin_pass, CommandEncoderBeginComputePass, (Encoder, const void*))         \
  WEFT_FUNCTION(Commands, finish, CommandEncoderFinish, (Encoder, const void*))                   \
  WEFT_FUNCTION(void, encoder_release, CommandEncoderRelease, (Encoder))                          \
  WEFT_FUNCTION(void, commands_release, CommandBufferRelease, (Commands))                         \
  WEFT_FUNCTION(void, set_pipeline, ComputePassEncoderSetPipeline, (Pass, Pipeline))              \
  WEFT_FUNCTION(void, set_group, ComputePassEncoderSetBindGroup,                                  \
                (Pass, uint32_t, BindGroup, size_t, const uint32_t*))                             \
  WEFT_FUNCTION(void, dispatch, ComputePassEncoderDispatchWorkgroups,                             \
                (Pass, uint32_t, uint32_t, uint32_t))                                             \
  WEFT_FUNCTION(void, end_pass, ComputePassEncoderEnd, (Pass))                                    \
  WEFT_FUNCTION(void, pass_release, ComputePassEncoderRelease, (Pass))                            \
  WEFT_FUNCTION(void, submit, QueueSubmit, (Queue, size_t, const Commands*))                      \
  WEFT_FUNCTION(void, write_buffer, QueueWriteBuffer,                                             \
                (Queue, Buffer, uint64_t, const void*, size_t))

struct Functions {
#define WEFT_DECLARE(result, member, name, parameters) result(*member) parameters = nullptr;
  WEFT_WGPU_FUNCTIONS(WEFT_DECLARE)
#undef WEFT_DECLARE

  // False when one is not there.
  bool load(const DynamicLibrary& library) {
#define WEFT_LOAD(result, member, name, parameters)           \
  member = library.function<result parameters>("wgpu" #name); \
  if (member == nullptr) return false;
    WEFT_WGPU_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
    return true;
  }
};

}  // namespace weft::wgpu
