// The functions of CUDA's driver that weft uses, declared as libcuda.so.1 exports them since CUDA
// 11.4, and the numbers that they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/dynamic_library.h"

namespace weft {

using CudaResult = int;  // 0: it succeeded
using CudaOrdinal = int;
using CudaAddress = uint64_t;  // of memory of a device
// Each is a pointer to an opaque object of the driver's.
using CudaContextHandle = struct CudaContextObject*;
using CudaStream = struct CudaStreamObject*;
using CudaEvent = struct CudaEventObject*;
using CudaModuleHandle = struct CudaModuleObject*;
using CudaFunction = struct CudaFunctionObject*;
using CudaGraph = struct CudaGraphObject*;
using CudaGraphNode = struct CudaGraphNodeObject*;
using CudaGraphExec = struct CudaGraphExecObject*;

// CUDA_KERNEL_NODE_PARAMS_v1
struct CudaKernelNode {
  CudaFunction function;
  std::array<unsigned, 3> groups, threads;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};

// CUtensorMap: an array in memory of a device, as the units know it that copy boxes.
struct alignas(64) CudaTensorMap {
  std::array<uint64_t, 16> opaque;
};

// CU_DEVICE_ATTRIBUTE_*
constexpr int kSharedBytesPerBlock = 8, kMultiprocessors = 16, kMajor = 75, kMinor = 76,
              kMostSharedBytes = 97;
// CU_FUNC_ATTRIBUTE_*
constexpr int kFunctionMostThreads = 0, kFunctionLocalBytes = 3, kFunctionRegisters = 4,
              kFunctionDynamicSharedBytes = 8;
// CU_JIT_*
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;
// CU_TENSOR_MAP_*
constexpr int kTensorMapWords16 = 1, kTensorMapExchange128 = 3, kTensorMapCacheLines256 = 3;
constexpr unsigned kStreamNonBlocking = 1, kEventWithoutTiming = 2;
constexpr CudaResult kCudaOutOfMemory = 2, kCudaNotReady = 600, kCudaPeerAlreadyEnabled = 704;

// CUDA_FUNCTION(member, exported name, parameters)
#define WEFT_CUDA_FUNCTIONS(CUDA_FUNCTION)                                                        \
  CUDA_FUNCTION(init, cuInit, (unsigned))                                                         \
  CUDA_FUNCTION(driver_version, cuDriverGetVersion, (int*))                                       \
  CUDA_FUNCTION(error_name, cuGetErrorName, (CudaResult, const char**))                           \
  CUDA_FUNCTION(error_text, cuGetErrorString, (CudaResult, const char**))                         \
  CUDA_FUNCTION(device_count, cuDeviceGetCount, (int*))                                           \
  CUDA_FUNCTION(device_get, cuDeviceGet, (CudaOrdinal*, int))                                     \
  CUDA_FUNCTION(device_name, cuDeviceGetName, (char*, int, CudaOrdinal))                          \
  CUDA_FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t*, CudaOrdinal))                       \
  CUDA_FUNCTION(device_attribute, cuDeviceGetAttribute, (int*, int, CudaOrdinal))                 \
  CUDA_FUNCTION(can_access_peer, cuDeviceCanAccessPeer, (int*, CudaOrdinal, CudaOrdinal))         \
  CUDA_FUNCTION(enable_peer, cuCtxEnablePeerAccess, (CudaContextHandle, unsigned))                \
  CUDA_FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (CudaContextHandle*, CudaOrdinal))      \
  CUDA_FUNCTION(context_reset, cuDevicePrimaryCtxReset_v2, (CudaOrdinal))                         \
  CUDA_FUNCTION(context_current, cuCtxGetCurrent, (CudaContextHandle*))                           \
  CUDA_FUNCTION(context_push, cuCtxPushCurrent_v2, (CudaContextHandle))                           \
  CUDA_FUNCTION(context_pop, cuCtxPopCurrent_v2, (CudaContextHandle*))                            \
  CUDA_FUNCTION(memory_info, cuMemGetInfo_v2, (size_t*, size_t*))                                 \
  CUDA_FUNCTION(memory_allocate, cuMemAlloc_v2, (CudaAddress*, size_t))                           \
  CUDA_FUNCTION(memory_free, cuMemFree_v2, (CudaAddress))                                         \
  CUDA_FUNCTION(host_allocate, cuMemHostAlloc, (void**, size_t, unsigned))                        \
  CUDA_FUNCTION(host_free, cuMemFreeHost, (void*))                                                \
  CUDA_FUNCTION(copy_to_device, cuMemcpyHtoDAsync_v2,                                             \
                (CudaAddress, const void*, size_t, CudaStream))                                   \
  CUDA_FUNCTION(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, CudaAddress, size_t, CudaStream))     \
  CUDA_FUNCTION(copy_on_device, cuMemcpyDtoDAsync_v2,                                             \
                (CudaAddress, CudaAddress, size_t, CudaStream))                                   \
  CUDA_FUNCTION(                                                                                  \
      copy_to_peer, cuMemcpyPeerAsync,                                                            \
      (CudaAddress, CudaContextHandle, CudaAddress, CudaContextHandle, size_t, CudaStream))       \
  CUDA_FUNCTION(stream_create, cuStreamCreate, (CudaStream*, unsigned))                           \
  CUDA_FUNCTION(stream_synchronize, cuStreamSynchronize, (CudaStream))                            \
  CUDA_FUNCTION(stream_wait, cuStreamWaitEvent, (CudaStream, CudaEvent, unsigned))                \
  CUDA_FUNCTION(event_create, cuEventCreate, (CudaEvent*, unsigned))                              \
  CUDA_FUNCTION(event_record, cuEventRecord, (CudaEvent, CudaStream))                             \
  CUDA_FUNCTION(event_synchronize, cuEventSynchronize, (CudaEvent))                               \
  CUDA_FUNCTION(module_load, cuModuleLoadDataEx,                                                  \
                (CudaModuleHandle*, const void*, unsigned, int*, void**))                         \
  CUDA_FUNCTION(module_unload, cuModuleUnload, (CudaModuleHandle))                                \
  CUDA_FUNCTION(module_function, cuModuleGetFunction,                                             \
                (CudaFunction*, CudaModuleHandle, const char*))                                   \
  CUDA_FUNCTION(function_get, cuFuncGetAttribute, (int*, int, CudaFunction))                      \
  CUDA_FUNCTION(function_set, cuFuncSetAttribute, (CudaFunction, int, int))                       \
  CUDA_FUNCTION(launch, cuLaunchKernel,                                                           \
                (CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,        \
                 unsigned, CudaStream, void**, void**))                                           \
  CUDA_FUNCTION(graph_create, cuGraphCreate, (CudaGraph*, unsigned))                              \
  CUDA_FUNCTION(graph_destroy, cuGraphDestroy, (CudaGraph))                                       \
  CUDA_FUNCTION(graph_add, cuGraphAddKernelNode,                                                  \
                (CudaGraphNode*, CudaGraph, const CudaGraphNode*, size_t, const CudaKernelNode*)) \
  CUDA_FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags,                                   \
                (CudaGraphExec*, CudaGraph, unsigned long long))                                  \
  CUDA_FUNCTION(graph_set, cuGraphExecKernelNodeSetParams,                                        \
                (CudaGraphExec, CudaGraphNode, const CudaKernelNode*))                            \
  CUDA_FUNCTION(graph_launch, cuGraphLaunch, (CudaGraphExec, CudaStream))                         \
  CUDA_FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (CudaGraphExec))

// Since CUDA 12; null in older drivers.
using CudaEncodeTiled = CudaResult (*)(CudaTensorMap*, int type, uint32_t axes, void* address,
                                       const uint64_t* sizes, const uint64_t* steps,
                                       const uint32_t* box, const uint32_t* every, int interleave,
                                       int exchange, int promotion, int fill);

struct CudaFunctions {
#define WEFT_DECLARE(member, name, parameters) CudaResult(*member) parameters = nullptr;
  WEFT_CUDA_FUNCTIONS(WEFT_DECLARE)
#undef WEFT_DECLARE

  CudaEncodeTiled encode_tiled = nullptr;

  // The name of one that is not there; null when all are.
  const char* load(const DynamicLibrary& library) {
#define WEFT_LOAD(member, name, parameters)                \
  member = library.function<CudaResult parameters>(#name); \
  if (member == nullptr) return #name;
    WEFT_CUDA_FUNCTIONS(WEFT_LOAD)
#undef WEFT_LOAD
    encode_tiled =
        library.function<std::remove_pointer_t<CudaEncodeTiled>>("cuTensorMapEncodeTiled");
    return nullptr;
  }
};

}  // namespace weft
