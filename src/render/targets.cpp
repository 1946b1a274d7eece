// What each renderer has text for.
#include <array>
#include <cstddef>
#include <span>

#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "render/render.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kReals = set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);
constexpr DTypeSet kNumbers = kReals | kMachineInts;

struct NativeRow {
  OpSet ops;
  DTypeSet dtypes;
};
// clang-format off
constexpr NativeRow kNative[] = {
    {{Op::ADD, Op::MUL, Op::MAX, Op::MIN, Op::CMPLT, Op::CMPEQ, Op::CMPNE}, kNumbers | kBools},
    {{Op::CAST}, kNumbers | kBools},
    {{Op::BITCAST, Op::WHERE}, kAnyDType & ~kIndexes},
    {{Op::SUB, Op::NEG, Op::MULACC}, kNumbers},
    {{Op::AND, Op::OR, Op::XOR, Op::NOT}, kMachineInts | kBools},
    {{Op::CDIV, Op::CMOD, Op::SHL, Op::SHR}, kMachineInts},
    {{Op::FDIV, Op::RECIP, Op::SQRT, Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND}, kReals},
};

constexpr DTypeSet kFloat32 = set_of(Scalar::kFloat32);
constexpr DTypeSet kWholeInts = set_of(Scalar::kInt32) | set_of(Scalar::kUInt32) | set_of(Scalar::kInt64) | set_of(Scalar::kUInt64);
constexpr NativeRow kWgslNative[] = {
    {{Op::ADD, Op::MUL, Op::MAX, Op::MIN, Op::CMPLT, Op::CMPEQ, Op::CMPNE}, kFloat32 | kWholeInts | kBools},
    {{Op::CAST}, (kFloats & ~set_of(Scalar::kFloat64)) | kMachineInts | kBools},
    {{Op::BITCAST, Op::WHERE}, kAnyDType & ~kIndexes},
    {{Op::SUB, Op::NEG}, kFloat32 | kWholeInts},
    {{Op::MULACC}, kWholeInts},
    {{Op::AND, Op::OR, Op::XOR, Op::NOT}, kWholeInts | kBools},
    {{Op::CDIV, Op::CMOD, Op::SHL, Op::SHR}, kWholeInts},
    {{Op::FDIV, Op::RECIP, Op::SQRT, Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND}, kFloat32},
};
// clang-format on

void set_native(Target& target, std::span<const NativeRow> rows) {
  for (const NativeRow& row : rows) {
    for (size_t i = 0; i < kOpCount; i++) {
      if (row.ops.has(Op(i))) target.native[i] |= row.dtypes;
    }
  }
}

Target cpu_target(const char* name, HalfCasts half) {
  Target out;
  out.name = name;
  set_native(out, kNative);
  if (half == HalfCasts::kNative) out.native[size_t(Op::CAST)] |= set_of(Scalar::kFloat16);
  return out;
}

}  // namespace

Target c_target(HalfCasts half) { return cpu_target("C", half); }
Target llvm_target(HalfCasts half) { return cpu_target("LLVM", half); }

// The limits that every WebGPU device has.
Target wgsl_target(WgslFloats floats) {
  Target out;
  out.name = "WGSL";
  set_native(out, kWgslNative);
  if (floats.fused) out.native[size_t(Op::MULACC)] |= kFloat32;
  out.vector_bytes = 16;
  out.vector_arithmetic = false;
  out.limits.buffers = 8;
  out.groups = {.threads = 256,
                .most_threads = {256, 256, 64},
                .most_groups = {65535, 65535, 65535},
                .local_bytes = 16 << 10};
  return out;
}

}  // namespace weft
