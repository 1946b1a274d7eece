// Elementwise ops in Triton, total as ops.def has them, in its compiler and in its interpreter:
// what is undefined in LLVM (and something else in NumPy) is computed on other operands and not
// chosen.
#include "render/triton_ops.h"

#include <cstdint>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kFloat32s = set_of(Scalar::kFloat32);
constexpr DTypeSet kFloat64s = set_of(Scalar::kFloat64);
constexpr DTypeSet kReals = kFloat32s | kFloat64s;
constexpr DTypeSet kHalves = set_of(Scalar::kFloat16);

#define WEFT_BITS(x) x ".to($I, bitcast=True)"

// clang-format off
constexpr TritonRow kRows[] = {
  // bool
  {{Op::ADD, Op::MAX, Op::OR},  kBools, "$0 | $1"},
  {{Op::MUL, Op::MIN, Op::AND}, kBools, "$0 & $1"},
  {{Op::XOR, Op::CMPNE},        kBools, "$0 ^ $1"},
  {{Op::CMPEQ}, kBools, "$0 ^ $1 ^ $A"},
  {{Op::CMPLT}, kBools, "($0 ^ $A) & $1"},
  {{Op::NOT},   kBools, "$0 ^ $A"},
  // floats: - x is 0 - x in Triton, / is not exact on float32
  {{Op::ADD},   kReals, "$0 + $1"},
  {{Op::SUB},   kReals, "$0 - $1"},
  {{Op::MUL},   kReals, "$0 * $1"},
  {{Op::NEG},   kReals, "(" WEFT_BITS("$0") " ^ $s).to($T, bitcast=True)"},
  {{Op::FDIV},  kFloat32s, "tl.div_rn($0, $1)"},
  {{Op::FDIV},  kFloat64s, "$0 / $1"},
  {{Op::SQRT},  kFloat32s, "tl.sqrt_rn($0)"},
  {{Op::SQRT},  kFloat64s, "tl.sqrt($0)"},
  {{Op::FLOOR}, kFloat64s, "tl.floor($0)"},
  {{Op::CEIL},  kFloat64s, "tl.ceil($0)"},
  // Of equal numbers, which may be zeros of two signs, the bits that both have, or either.
  {{Op::MAX}, kReals,
   "tl.where($0 == $1, (" WEFT_BITS("$0") " & " WEFT_BITS("$1") ").to($T, bitcast=True), "
   "tl.where(($0 > $1) | ($0 != $0), $0, $1))"},
  {{Op::MIN}, kReals,
   "tl.where($0 == $1, (" WEFT_BITS("$0") " | " WEFT_BITS("$1") ").to($T, bitcast=True), "
   "tl.where(($0 < $1) | ($0 != $0), $0, $1))"},
  // integers
  {{Op::ADD}, kMachineInts, "$0 + $1"},
  {{Op::SUB}, kMachineInts, "$0 - $1"},
  {{Op::MUL}, kMachineInts, "$0 * $1"},
  {{Op::NEG}, kMachineInts, "0 - $0"},
  {{Op::NOT}, kMachineInts, "$0 ^ $A"},
  {{Op::AND}, kMachineInts, "$0 & $1"},
  {{Op::OR},  kMachineInts, "$0 | $1"},
  {{Op::XOR}, kMachineInts, "$0 ^ $1"},
  {{Op::MAX}, kMachineInts, "tl.maximum($0, $1)"},
  {{Op::MIN}, kMachineInts, "tl.minimum($0, $1)"},
  {{Op::CDIV}, kUnsignedInts, "tl.where($1 == 0, 0, $0 // tl.where($1 == 0, 1, $1))"},
  {{Op::CMOD}, kUnsignedInts, "tl.where($1 == 0, $0, $0 % tl.where($1 == 0, 1, $1))"},
  {{Op::CDIV}, kSignedInts,
   "tl.where($1 == 0, 0, tl.where($1 == -1, 0 - $0, $0 // tl.where(($1 == 0) | ($1 == -1), 1, $1)))"},
  {{Op::CMOD}, kSignedInts,
   "tl.where($1 == 0, $0, $0 % tl.where(($1 == 0) | ($1 == -1), 1, $1))"},
  {{Op::SHL}, kMachineInts, "tl.where(($1 >= 0) & ($1 < $W), $0 << ($1 & $M), 0)"},
  {{Op::SHR}, kMachineInts, "tl.where(($1 >= 0) & ($1 < $W), $0 >> ($1 & $M), 0)"},
  // comparisons, choice
  {{Op::CMPLT}, kReals | kMachineInts, "$0 < $1"},
  {{Op::CMPEQ}, kReals | kMachineInts, "$0 == $1"},
  {{Op::CMPNE}, kReals | kMachineInts, "$0 != $1"},
  {{Op::WHERE}, kReals | kMachineInts | kBools, "tl.where($0, $1, $2)"},
};

// A right operand that is a constant for which the short form is right.
constexpr TritonRow kConstantRows[] = {
  {{Op::SHL}, kMachineInts, "$0 << $1"},
  {{Op::SHR}, kMachineInts, "$0 >> $1"},
  {{Op::CDIV}, kMachineInts, "$0 // $1"},
  {{Op::CMOD}, kMachineInts, "$0 % $1"},
};

constexpr TritonRow kSame = {{Op::CAST, Op::BITCAST}, kAnyDType, ""};
constexpr TritonRow kBitcast = {{Op::BITCAST}, kAnyDType, "$0.to($T, bitcast=True)"};

struct CastRow {
  DTypeSet from, to;
  TritonRow row;
};
#define WEFT_IN_RANGE "($0 >= $l) & ($0 < $h)"
#define WEFT_SATURATED(past) \
  "tl.where(" WEFT_IN_RANGE ", tl.where(" WEFT_IN_RANGE ", $0, 0.0).to($T), " past ")"
// float16 is held as its bits.
constexpr CastRow kCastRows[] = {
  {kReals | kMachineInts, kBools, {{Op::CAST}, kAnyDType, "$0 != 0"}},
  {kBools | kMachineInts, kReals | kMachineInts, {{Op::CAST}, kAnyDType, "$0.to($T)"}},
  {kReals, kReals, {{Op::CAST}, kAnyDType, "$0.to($T)"}},
  {kReals, kSignedInts, {{Op::CAST}, kAnyDType, 
   WEFT_SATURATED("tl.where($0 != $0, 0, tl.where($0 < 0.0, $m, $g))")}},
  {kReals, kUnsignedInts, {{Op::CAST}, kAnyDType, WEFT_SATURATED("tl.where($0 > 0.0, $g, 0)")}},
  {kHalves, kFloat32s, {{Op::CAST}, kAnyDType, "$0.to(tl.float16, bitcast=True).to(tl.float32)"}},
  {kReals, kHalves, {{Op::CAST}, kAnyDType, "$0.to(tl.float16).to(tl.uint16, bitcast=True)"}},
};
// clang-format on

}  // namespace

const TritonRow* triton_cast(DType from, DType to) {
  if (from.scalar == to.scalar) return &kSame;
  for (const CastRow& c : kCastRows) {
    if ((c.from & set_of(from.scalar)) != 0 && (c.to & set_of(to.scalar)) != 0) return &c.row;
  }
  return nullptr;
}

namespace {

bool has_short_form(Op op, UOp c) {
  if (!c.is_const() || !c.dtype().is_int()) return false;
  const int64_t value = c.const_int();
  if (op == Op::SHL || op == Op::SHR) return value >= 0 && value < c.dtype().bits();
  return value != 0 && (value != -1 || c.dtype().is_unsigned());
}

}  // namespace

const TritonRow* triton_row(UOp n) {
  const DType type = n.srcs().back().dtype();
  if (n.is(Op::CAST)) return triton_cast(type, n.dtype());
  if (is_cast_of_bool(n.op(), type, n.dtype())) {
    return triton_cast(held_as(type), held_as(n.dtype()));
  }
  if (n.is(Op::BITCAST)) return held_as(type) == held_as(n.dtype()) ? &kSame : &kBitcast;
  if (n.is(Op::WHERE)) return find_row(kRows, n.op(), held_as(type));
  if (n.src_count() == 2 && has_short_form(n.op(), n.src(1))) {
    if (const TritonRow* row = find_row(kConstantRows, n.op(), type)) return row;
  }
  return find_row(kRows, n.op(), type);
}

}  // namespace weft
