// What each renderer has text for.
#include <array>
#include <cstddef>

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
// clang-format on

Target cpu_target(const char* name, HalfCasts half) {
  Target out;
  out.name = name;
  for (const NativeRow& row : kNative) {
    for (size_t i = 0; i < kOpCount; i++) {
      if (row.ops.has(Op(i))) out.native[i] |= row.dtypes;
    }
  }
  if (half == HalfCasts::kNative) out.native[size_t(Op::CAST)] |= set_of(Scalar::kFloat16);
  return out;
}

}  // namespace

Target c_target(HalfCasts half) { return cpu_target("C", half); }
Target llvm_target(HalfCasts half) { return cpu_target("LLVM", half); }

}  // namespace weft
