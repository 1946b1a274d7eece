// Targets and kernels for the tests of decompose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "rewrite/pattern.h"

namespace weft::test {

inline constexpr DTypeSet kPlainDTypes =
    kMachineInts | kBools | set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);

// Only what everything else is made of.
inline Target bare_target() {
  Target t;
  t.name = "BARE";
  for (const Op op :
       {Op::ADD, Op::SUB, Op::MUL, Op::FDIV, Op::AND, Op::OR, Op::XOR, Op::SHL, Op::SHR, Op::CMPLT,
        Op::CMPEQ, Op::CMPNE, Op::WHERE, Op::CDIV, Op::CMOD, Op::SQRT, Op::CAST, Op::BITCAST}) {
    t.native[size_t(op)] = kPlainDTypes;
  }
  return t;
}

inline Target with_fused_multiply_add(Target t) {
  t.name += "+FMA";
  t.native[size_t(Op::MULACC)] = kPlainDTypes;
  return t;
}

inline Target without_float64(Target t) {
  t.name += "-FLOAT64";
  for (DTypeSet& set : t.native) set &= ~set_of(Scalar::kFloat64);
  return t;
}

// All but the functions, and float16.
inline Target rich_target() {
  Target t = with_fused_multiply_add(bare_target());
  t.name = "RICH";
  for (const Op op : {Op::NEG, Op::NOT, Op::RECIP, Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND,
                      Op::IDIV, Op::MOD, Op::MAX, Op::MIN, Op::THREEFRY}) {
    t.native[size_t(op)] = kPlainDTypes;
  }
  for (DTypeSet& set : t.native) set |= set == 0 ? 0 : set_of(Scalar::kFloat16);
  return t;
}

// No arithmetic below 32 bits, no ops on bool but the bitwise ones.
inline Target wide_target() {
  Target t = bare_target();
  t.name = "WIDE";
  constexpr DTypeSet small = set_of(Scalar::kInt8) | set_of(Scalar::kInt16) |
                             set_of(Scalar::kUInt8) | set_of(Scalar::kUInt16);
  for (size_t i = 0; i < kOpCount; i++) {
    const Op op = Op(i);
    if (op == Op::WHERE || op == Op::CAST || op == Op::BITCAST) continue;
    t.native[i] &= ~small;
    if (op != Op::AND && op != Op::OR && op != Op::XOR) t.native[i] &= ~kBools;
  }
  return t;
}

}  // namespace weft::test
