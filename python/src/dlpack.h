// The structures of DLPack, in both versions of the protocol.
#pragma once

#include <cstdint>

namespace weft::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCudaHost = 3 };
struct Device {
  int32_t type;
  int32_t number;
};

enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12,
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // null: row-major
  uint64_t byte_offset;
};

struct Managed {
  static constexpr const char* kCapsule = "dltensor";
  static constexpr const char* kUsedCapsule = "used_dltensor";

  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
struct Versioned {
  static constexpr const char* kCapsule = "dltensor_versioned";
  static constexpr const char* kUsedCapsule = "used_dltensor_versioned";

  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace weft::python::dlpack
