// The part of OpenCL 1.2's C interface that weft calls, declared here: its headers are not needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::cl {

using Platform = struct PlatformObject*;
using DeviceId = struct DeviceObject*;
using Context = struct ContextObject*;
using Queue = struct QueueObject*;
using Memory = struct MemoryObject*;
using Program = struct ProgramObject*;
using Kernel = struct KernelObject*;
using Event = struct EventObject*;

inline constexpr int32_t kSuccess = 0;
inline constexpr int32_t kMemoryAllocationFailure = -4;
inline constexpr int32_t kOutOfResources = -5;
inline constexpr int32_t kOutOfHostMemory = -6;
inline constexpr uint32_t kBlocking = 1;

inline constexpr uint64_t kDeviceTypeCpu = 1 << 1, kDeviceTypeGpu = 1 << 2;
inline constexpr uint64_t kDeviceTypeAll = 0xffffffff;
inline constexpr uint64_t kReadWrite = 1 << 0;

inline constexpr uint32_t kPlatformVersion = 0x0901, kPlatformName = 0x0902;
inline constexpr uint32_t kDeviceType = 0x1000, kDeviceComputeUnits = 0x1002,
                          kDeviceGroupSize = 0x1004, kDeviceGroupSizes = 0x1005,
                          kDeviceMaxAllocation = 0x1010, kDeviceMaxParameterBytes = 0x1017,
                          kDeviceSingleConfig = 0x101b, kDeviceMemory = 0x101f,
                          kDeviceLocalMemory = 0x1023, kDeviceIsAvailable = 0x1027,
                          kDeviceHasCompiler = 0x1028, kDeviceName = 0x102b,
                          kDriverVersion = 0x102d, kDeviceProfile = 0x102e, kDeviceVersion = 0x102f,
                          kDeviceDoubleConfig = 0x1032, kDeviceIsLittleEndian = 0x1026;
// Of cl_nv_device_attribute_query and cl_amd_device_attribute_query.
inline constexpr uint32_t kDeviceWarpNv = 0x4003, kDeviceWavefrontAmd = 0x4043;

inline constexpr uint64_t kKeepsDenormals = 1 << 0, kRoundsDivisions = 1 << 7;

inline constexpr uint32_t kProgramBinarySizes = 0x1165, kProgramBinaries = 0x1166;
inline constexpr uint32_t kProgramBuildLog = 0x1183;
inline constexpr uint32_t kKernelGroupSize = 0x11b0;

using BuildCallback = void(Program, void*);
using ContextCallback = void(const char*, const void*, size_t, void*);

// name, result, parameters
#define WEFT_OPENCL_FUNCTIONS(X)                                                                   \
  X(clGetPlatformIDs, int32_t, (uint32_t, Platform*, uint32_t*))                                   \
  X(clGetPlatformInfo, int32_t, (Platform, uint32_t, size_t, void*, size_t*))                      \
  X(clGetDeviceIDs, int32_t, (Platform, uint64_t, uint32_t, DeviceId*, uint32_t*))                 \
  X(clGetDeviceInfo, int32_t, (DeviceId, uint32_t, size_t, void*, size_t*))                        \
  X(clCreateContext, Context,                                                                      \
    (const intptr_t*, uint32_t, const DeviceId*, ContextCallback*, void*, int32_t*))               \
  X(clCreateCommandQueue, Queue, (Context, DeviceId, uint64_t, int32_t*))                          \
  X(clFlush, int32_t, (Queue))                                                                     \
  X(clFinish, int32_t, (Queue))                                                                    \
  X(clCreateBuffer, Memory, (Context, uint64_t, size_t, void*, int32_t*))                          \
  X(clReleaseMemObject, int32_t, (Memory))                                                         \
  X(clEnqueueReadBuffer, int32_t,                                                                  \
    (Queue, Memory, uint32_t, size_t, size_t, void*, uint32_t, const Event*, Event*))              \
  X(clEnqueueWriteBuffer, int32_t,                                                                 \
    (Queue, Memory, uint32_t, size_t, size_t, const void*, uint32_t, const Event*, Event*))        \
  X(clEnqueueCopyBuffer, int32_t,                                                                  \
    (Queue, Memory, Memory, size_t, size_t, size_t, uint32_t, const Event*, Event*))               \
  X(clCreateProgramWithSource, Program,                                                            \
    (Context, uint32_t, const char**, const size_t*, int32_t*))                                    \
  X(clCreateProgramWithBinary, Program,                                                            \
    (Context, uint32_t, const DeviceId*, const size_t*, const unsigned char**, int32_t*,           \
     int32_t*))                                                                                    \
  X(clBuildProgram, int32_t,                                                                       \
    (Program, uint32_t, const DeviceId*, const char*, BuildCallback*, void*))                      \
  X(clGetProgramInfo, int32_t, (Program, uint32_t, size_t, void*, size_t*))                        \
  X(clGetProgramBuildInfo, int32_t, (Program, DeviceId, uint32_t, size_t, void*, size_t*))         \
  X(clReleaseProgram, int32_t, (Program))                                                          \
  X(clCreateKernel, Kernel, (Program, const char*, int32_t*))                                      \
  X(clSetKernelArg, int32_t, (Kernel, uint32_t, size_t, const void*))                              \
  X(clGetKernelWorkGroupInfo, int32_t, (Kernel, DeviceId, uint32_t, size_t, void*, size_t*))       \
  X(clReleaseKernel, int32_t, (Kernel))                                                            \
  X(clEnqueueNDRangeKernel, int32_t,                                                               \
    (Queue, Kernel, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t, const Event*, \
     Event*))

// The functions of the library, all of them there.
struct Functions {
#define WEFT_MEMBER(name, result, parameters) \
  result(*name) parameters = nullptr; /* NOLINT(readability-identifier-naming): the C names */
  WEFT_OPENCL_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
};

}  // namespace weft::cl
