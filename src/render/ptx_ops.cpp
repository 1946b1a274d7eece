// Elementwise ops in PTX, total as ops.def has them. Division by zero gives some value and no
// fault; shifts clamp the amount at the width of the register; rounding is said everywhere, which
// keeps ptxas from contracting.
#include "render/ptx_ops.h"

#include <cstdint>
#include <vector>

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
constexpr DTypeSet kBrains = set_of(Scalar::kBFloat16);
constexpr DTypeSet kWideInts = set_of(Scalar::kInt64) | set_of(Scalar::kUInt64);
constexpr DTypeSet kWordInts = kMachineInts & ~kWideInts;  // held in 32 bits
constexpr DTypeSet kSmallInts = kWordInts & ~set_of(Scalar::kInt32) & ~set_of(Scalar::kUInt32);

// clang-format off
constexpr PtxRow kRows[] = {
  // bool
  {{Op::ADD, Op::MAX, Op::OR},  kBools, "or.pred $d, $0, $1"},
  {{Op::MUL, Op::MIN, Op::AND}, kBools, "and.pred $d, $0, $1"},
  {{Op::XOR, Op::CMPNE},        kBools, "xor.pred $d, $0, $1"},
  {{Op::CMPEQ}, kBools, "xor.pred %p, $0, $1\nnot.pred $d, %p"},
  {{Op::CMPLT}, kBools, "not.pred %p, $0\nand.pred $d, %p, $1"},
  {{Op::NOT},   kBools, "not.pred $d, $0"},
  {{Op::WHERE}, kBools,
   "and.pred %p, $0, $1\n"
   "not.pred %q, $0\n"
   "and.pred %q, %q, $2\n"
   "or.pred $d, %p, %q"},
  // floats
  {{Op::ADD},   kReals, "add.rn.$t $d, $0, $1"},
  {{Op::SUB},   kReals, "sub.rn.$t $d, $0, $1"},
  {{Op::MUL},   kReals, "mul.rn.$t $d, $0, $1"},
  {{Op::FDIV},  kReals, "div.rn.$t $d, $0, $1"},
  {{Op::RECIP}, kReals, "rcp.rn.$t $d, $0"},
  {{Op::SQRT},  kReals, "sqrt.rn.$t $d, $0"},
  {{Op::MULACC}, kReals, "fma.rn.$t $d, $0, $1, $2"},
  {{Op::NEG},   kReals, "xor.$b $d, $0, $s"},  // neg makes another NaN of a NaN
  {{Op::TRUNC}, kReals, "cvt.rzi.$t.$t $d, $0"},
  {{Op::FLOOR}, kReals, "cvt.rmi.$t.$t $d, $0"},
  {{Op::CEIL},  kReals, "cvt.rpi.$t.$t $d, $0"},
  {{Op::ROUND}, kReals, "cvt.rni.$t.$t $d, $0"},
  // Which of two zeros min and max give is not said: bits that both have make the larger one, bits
  // that either has the smaller one. float64 has no .NaN.
  {{Op::MAX}, kFloat32s,
   "max.NaN.f32 %x, $0, $1\nsetp.eq.f32 %p, $0, $1\nand.b32 %y, $0, $1\nselp.b32 $d, %y, %x, %p"},
  {{Op::MIN}, kFloat32s,
   "min.NaN.f32 %x, $0, $1\nsetp.eq.f32 %p, $0, $1\nor.b32 %y, $0, $1\nselp.b32 $d, %y, %x, %p"},
  {{Op::MAX}, kFloat64s,
   "setp.gtu.f64 %p, $0, $1\n"
   "selp.f64 %x, $0, $1, %p\n"
   "setp.nan.f64 %p, $1, $1\n"
   "selp.f64 %x, $1, %x, %p\n"
   "setp.eq.f64 %p, $0, $1\n"
   "and.b64 %y, $0, $1\n"
   "selp.b64 $d, %y, %x, %p"},
  {{Op::MIN}, kFloat64s,
   "setp.ltu.f64 %p, $0, $1\n"
   "selp.f64 %x, $0, $1, %p\n"
   "setp.nan.f64 %p, $1, $1\n"
   "selp.f64 %x, $1, %x, %p\n"
   "setp.eq.f64 %p, $0, $1\n"
   "or.b64 %y, $0, $1\n"
   "selp.b64 $d, %y, %x, %p"},
  {{Op::CMPNE}, kReals, "setp.neu.$t $d, $0, $1"},
  // integers
  {{Op::ADD}, kMachineInts, "add.$t $d, $0, $1", true},
  {{Op::SUB}, kMachineInts, "sub.$t $d, $0, $1", true},
  {{Op::MUL}, kMachineInts, "mul.lo.$t $d, $0, $1", true},
  {{Op::MULACC}, kMachineInts, "mad.lo.$t $d, $0, $1, $2", true},
  {{Op::NEG}, kMachineInts, "sub.$t $d, 0, $0", true},
  {{Op::NOT}, kMachineInts, "not.$b $d, $0", true},
  {{Op::AND}, kMachineInts, "and.$b $d, $0, $1"},
  {{Op::OR},  kMachineInts, "or.$b $d, $0, $1"},
  {{Op::XOR}, kMachineInts, "xor.$b $d, $0, $1"},
  {{Op::MAX}, kMachineInts, "max.$t $d, $0, $1"},
  {{Op::MIN}, kMachineInts, "min.$t $d, $0, $1"},
  {{Op::CDIV}, kUnsignedInts, "setp.eq.$t %p, $1, 0\ndiv.$t %x, $0, $1\nselp.$b $d, 0, %x, %p"},
  {{Op::CMOD}, kUnsignedInts, "setp.eq.$t %p, $1, 0\nrem.$t %x, $0, $1\nselp.$b $d, $0, %x, %p"},
  {{Op::CDIV}, kSignedInts,
   "setp.eq.$t %p, $1, 0\n"
   "setp.eq.$t %q, $1, -1\n"
   "div.$t %x, $0, $1\n"
   "sub.$t %y, 0, $0\n"
   "selp.$b %x, %y, %x, %q\n"
   "selp.$b $d, 0, %x, %p", true},
  {{Op::CMOD}, kSignedInts,
   "setp.eq.$t %p, $1, 0\n"
   "setp.eq.$t %q, $1, -1\n"
   "rem.$t %x, $0, $1\n"
   "selp.$b %x, 0, %x, %q\n"
   "selp.$b $d, $0, %x, %p"},
  // A negative amount is a large one.
  {{Op::SHL}, kWordInts, "shl.b32 $d, $0, $1", true},
  {{Op::SHR}, kWordInts & kUnsignedInts, "shr.u32 $d, $0, $1"},
  {{Op::SHR}, kWordInts & kSignedInts,
   "setp.lt.u32 %p, $1, $W\nshr.s32 %x, $0, $1\nselp.b32 $d, %x, 0, %p"},
  {{Op::SHL}, kWideInts,
   "setp.lt.u64 %p, $1, 64\ncvt.u32.u64 %n, $1\nshl.b64 %x, $0, %n\nselp.b64 $d, %x, 0, %p"},
  {{Op::SHR}, kWideInts,
   "setp.lt.u64 %p, $1, 64\ncvt.u32.u64 %n, $1\nshr.$t %x, $0, %n\nselp.b64 $d, %x, 0, %p"},
  {{Op::CMPNE}, kMachineInts, "setp.ne.$t $d, $0, $1"},
  // comparisons, choice
  {{Op::CMPLT}, kReals | kMachineInts, "setp.lt.$t $d, $0, $1"},
  {{Op::CMPEQ}, kReals | kMachineInts, "setp.eq.$t $d, $0, $1"},
  {{Op::WHERE}, kReals | kMachineInts, "selp.$b $d, $1, $2, $0"},
};

// A right operand that is a constant for which the short form is right.
constexpr PtxRow kConstantRows[] = {
  {{Op::SHL}, kMachineInts, "shl.$b $d, $0, $1", true},
  {{Op::SHR}, kMachineInts, "shr.$t $d, $0, $1"},
  {{Op::CDIV}, kMachineInts, "div.$t $d, $0, $1"},
  {{Op::CMOD}, kMachineInts, "rem.$t $d, $0, $1"},
};

constexpr PtxRow kSame = {{Op::CAST, Op::BITCAST}, kAnyDType, ""};
constexpr PtxRow kExtended = {{Op::CAST, Op::BITCAST}, kAnyDType, "cvt.$r.$w $d, $0"};
constexpr PtxRow kMoved = {{Op::BITCAST}, kAnyDType, "mov.$b $d, $0"};
constexpr PtxRow kWidened = {{Op::CAST}, kAnyDType, "cvt.$r.$t $d, $0"};
constexpr PtxRow kCut = {{Op::CAST}, kAnyDType, "cvt.u32.u64 $d, $0", true};

struct CastRow {
  DTypeSet from, to;
  PtxRow row;
};
// float32 with the last digit set where any was lost: rounding it again rounds the number itself.
#define WEFT_PTX_ODD_TO_BRAIN \
  "mov.b32 %n, %f\n"                 \
  "@%p or.b32 %n, %n, 1\n"           \
  "mov.b32 %f, %n\n"                 \
  "cvt.rn.bf16.f32 %h, %f\n"         \
  "cvt.u32.u16 $d, %h"
// Those between integers depend on their widths: see integer_cast. A cvt to integers saturates; a NaN
// gives 0 from float32 to 32 bits, and something else where 64 bits are on either side.
constexpr CastRow kCastRows[] = {
  {kMachineInts, kBools, {{Op::CAST}, kAnyDType, "setp.ne.$t $d, $0, 0"}},
  {kReals, kBools, {{Op::CAST}, kAnyDType, "setp.neu.$t $d, $0, $z"}},
  {kBools, kWordInts, {{Op::CAST}, kAnyDType, "selp.b32 $d, 1, 0, $0"}},
  {kBools, kWideInts, {{Op::CAST}, kAnyDType, "selp.b64 $d, 1, 0, $0"}},
  {kBools, kFloat32s, {{Op::CAST}, kAnyDType, "selp.f32 $d, 0f3F800000, 0f00000000, $0"}},
  {kBools, kFloat64s, {{Op::CAST}, kAnyDType, "selp.f64 $d, 0d3FF0000000000000, 0d0000000000000000, $0"}},
  {kMachineInts, kReals, {{Op::CAST}, kAnyDType, "cvt.rn.$r.$t $d, $0"}},
  {kFloat32s, kFloat64s, {{Op::CAST}, kAnyDType, "cvt.f64.f32 $d, $0"}},
  {kFloat64s, kFloat32s, {{Op::CAST}, kAnyDType, "cvt.rn.f32.f64 $d, $0"}},
  {kFloat32s, kSmallInts, {{Op::CAST}, kAnyDType,
   "cvt.rzi.$r.f32 %z, $0\nmin.$r %z, %z, $g\nmax.$r $d, %z, $m"}},
  {kFloat32s, kWordInts, {{Op::CAST}, kAnyDType, "cvt.rzi.$r.f32 $d, $0"}},
  {kFloat64s, kSmallInts, {{Op::CAST}, kAnyDType,
   "cvt.rzi.$r.f64 %z, $0\n"
   "min.$r %z, %z, $g\n"
   "max.$r %z, %z, $m\n"
   "setp.nan.f64 %p, $0, $0\n"
   "selp.b32 $d, 0, %z, %p"}},
  {kFloat64s, kWordInts, {{Op::CAST}, kAnyDType,
   "cvt.rzi.$r.f64 %z, $0\nsetp.nan.f64 %p, $0, $0\nselp.b32 $d, 0, %z, %p"}},
  {kReals, kWideInts, {{Op::CAST}, kAnyDType,
   "cvt.rzi.$r.$t %z, $0\nsetp.nan.$t %p, $0, $0\nselp.b64 $d, 0, %z, %p"}},
  // half floats, held as their bits
  {kHalves, kFloat32s, {{Op::CAST}, kAnyDType, "cvt.u16.u32 %h, $0\ncvt.f32.f16 $d, %h"}},
  {kReals, kHalves, {{Op::CAST}, kAnyDType, "cvt.rn.f16.$t %h, $0\ncvt.u32.u16 $d, %h"}},
  {kBrains, kFloat32s, {{Op::CAST}, kAnyDType, "shl.b32 %n, $0, 16\nmov.b32 $d, %n"}},
  {kFloat32s, kBrains, {{Op::CAST}, kAnyDType, "cvt.rn.bf16.f32 %h, $0\ncvt.u32.u16 $d, %h"}},
  {kFloat64s, kBrains, {{Op::CAST}, kAnyDType,
   "cvt.rz.f32.f64 %f, $0\n"
   "cvt.f64.f32 %e, %f\n"
   "setp.ne.f64 %p, %e, $0\n"
   WEFT_PTX_ODD_TO_BRAIN}},
  {kWideInts, kBrains, {{Op::CAST}, kAnyDType,
   "cvt.rz.f32.$t %f, $0\n"
   "cvt.rzi.$t.f32 %l, %f\n"
   "setp.ne.$t %p, %l, $0\n"
   WEFT_PTX_ODD_TO_BRAIN}},
};
#undef WEFT_PTX_ODD_TO_BRAIN
// clang-format on

bool is_wide(DType t) { return held_as(t).bits() == 64; }
bool is_small(DType t) { return held_as(t).bits() < 32; }

const PtxRow* integer_cast(DType from, DType to) {
  if (is_wide(from) && is_wide(to)) return &kSame;
  if (is_wide(to)) return &kWidened;
  if (is_wide(from)) return &kCut;
  const bool holds = from.bits() < to.bits() && (from.is_unsigned() || to.is_signed());
  return holds || !is_small(to) ? &kSame : &kExtended;
}

bool has_short_form(Op op, UOp c) {
  if (!c.is_const() || !c.dtype().is_int()) return false;
  const int64_t value = c.const_int();
  if (op == Op::SHL || op == Op::SHR) return value >= 0 && value < c.dtype().bits();
  return value != 0 && (value != -1 || c.dtype().is_unsigned());
}

bool is_half(DType t) { return t.scalar == Scalar::kFloat16 || t.scalar == Scalar::kBFloat16; }

}  // namespace

const PtxRow* ptx_row(UOp n) {
  const DType type = n.srcs().back().dtype();
  if (n.src_count() == 2 && has_short_form(n.op(), n.src(1))) {
    if (const PtxRow* row = find_row(kConstantRows, n.op(), type)) return row;
  }
  return find_row(kRows, n.op(), n.is(Op::WHERE) ? held_as(type) : type);
}

const PtxRow* ptx_bitcast(DType from, DType to) {
  const DType a = held_as(from), b = held_as(to);
  if (a.is_float() != b.is_float()) return &kMoved;
  const bool same_extension = a.scalar == b.scalar || !is_small(b) || b.is_bool();
  return same_extension ? &kSame : &kExtended;
}

const PtxRow* ptx_cast(DType from, DType to) {
  if (from.scalar == to.scalar) return &kSame;
  if (from.is_int() && to.is_int()) return integer_cast(from, to);
  for (const CastRow& c : kCastRows) {
    if ((c.from & set_of(from.scalar)) != 0 && (c.to & set_of(to.scalar)) != 0) return &c.row;
  }
  return nullptr;
}

// float32 holds all of both halves; an integer that it rounds is infinite in float16 anyway;
// float64 holds all integers of 32 bits.
std::vector<DType> ptx_cast_path(DType from, DType to) {
  const DType single = dtypes::float32.vec(from.lanes), wide = dtypes::float64.vec(from.lanes);
  if (from.scalar == to.scalar || ptx_cast(from, to) != nullptr) return {to};
  if (is_half(from) || to.scalar == Scalar::kFloat16) return {single, to};
  if (from.is_bool()) return {single, to};
  return to.scalar == Scalar::kBFloat16 ? std::vector{wide, to} : std::vector{to};
}

}  // namespace weft
