// Elementwise ops in LLVM IR, total as ops.def has them: what would be poison is not selected.
#include "render/llvm_ops.h"

#include <cstdint>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kReals = set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);

// clang-format off
constexpr LlvmRow kRows[] = {
  // bool
  {{Op::ADD, Op::MAX, Op::OR},  kBools, "or $T $0, $1"},
  {{Op::MUL, Op::MIN, Op::AND}, kBools, "and $T $0, $1"},
  {{Op::XOR, Op::CMPNE},        kBools, "xor $T $0, $1"},
  // floats
  {{Op::ADD},   kReals, "fadd $T $0, $1"},
  {{Op::SUB},   kReals, "fsub $T $0, $1"},
  {{Op::MUL},   kReals, "fmul $T $0, $1"},
  {{Op::FDIV},  kReals, "fdiv $T $0, $1"},
  {{Op::RECIP}, kReals, "fdiv $T $o, $0"},
  {{Op::NEG},   kReals, "fneg $T $0"},
  {{Op::SQRT},  kReals, "call sqrt"},
  {{Op::TRUNC}, kReals, "call trunc"},
  {{Op::FLOOR}, kReals, "call floor"},
  {{Op::CEIL},  kReals, "call ceil"},
  {{Op::ROUND}, kReals, "call roundeven"},
  {{Op::MULACC}, kReals, "call fma"},
  // x86's max gives its second operand when both are zeros or one is NaN. Of the two orders, bits that both
  // have make the larger zero, and bits that either has make the smaller one, and keep a NaN.
  {{Op::MAX}, kReals,
   "f = fcmp ogt $T $0, $1\n"
   "g = select $B %f, $T $0, $T $1\n"
   "h = fcmp ogt $T $1, $0\n"
   "i = select $B %h, $T $1, $T $0\n"
   "j = bitcast $T %g to $I\n"
   "k = bitcast $T %i to $I\n"
   "l = and $I %j, %k\n"
   "m = or $I %j, %k\n"
   "u = fcmp uno $T $0, $1\n"
   "r = select $B %u, $I %m, $I %l\n"
   "bitcast $I %r to $T"},
  {{Op::MIN}, kReals,
   "f = fcmp olt $T $0, $1\n"
   "g = select $B %f, $T $0, $T $1\n"
   "h = fcmp olt $T $1, $0\n"
   "i = select $B %h, $T $1, $T $0\n"
   "j = bitcast $T %g to $I\n"
   "k = bitcast $T %i to $I\n"
   "l = or $I %j, %k\n"
   "bitcast $I %l to $T"},
  {{Op::CMPLT}, kReals, "fcmp olt $T $0, $1"},
  {{Op::CMPEQ}, kReals, "fcmp oeq $T $0, $1"},
  {{Op::CMPNE}, kReals, "fcmp une $T $0, $1"},
  // integers
  {{Op::ADD}, kMachineInts, "add$w $T $0, $1"},
  {{Op::SUB}, kMachineInts, "sub$w $T $0, $1"},
  {{Op::MUL}, kMachineInts, "mul$w $T $0, $1"},
  {{Op::MULACC}, kMachineInts, "p = mul $T $0, $1\nadd $T %p, $2"},
  {{Op::NEG}, kMachineInts, "sub $T $z, $0"},
  {{Op::NOT}, kMachineInts | kBools, "xor $T $0, $n"},
  {{Op::AND}, kMachineInts, "and $T $0, $1"},
  {{Op::OR},  kMachineInts, "or $T $0, $1"},
  {{Op::XOR}, kMachineInts, "xor $T $0, $1"},
  {{Op::MAX}, kSignedInts, "call smax"},
  {{Op::MIN}, kSignedInts, "call smin"},
  {{Op::MAX}, kUnsignedInts, "call umax"},
  {{Op::MIN}, kUnsignedInts, "call umin"},
  {{Op::CDIV}, kUnsignedInts,
   "e = icmp eq $T $1, $z\nd = select $B %e, $T $o, $T $1\nq = udiv $T $0, %d\nselect $B %e, $T $z, $T %q"},
  {{Op::CMOD}, kUnsignedInts,
   "e = icmp eq $T $1, $z\nd = select $B %e, $T $o, $T $1\nq = urem $T $0, %d\nselect $B %e, $T $0, $T %q"},
  {{Op::CDIV}, kSignedInts,
   "e = icmp eq $T $1, $z\n"
   "f = icmp eq $T $1, $n\n"
   "g = or $B %e, %f\n"
   "d = select $B %g, $T $o, $T $1\n"
   "q = sdiv $T $0, %d\n"
   "m = sub $T $z, $0\n"
   "r = select $B %f, $T %m, $T %q\n"
   "select $B %e, $T $z, $T %r"},
  {{Op::CMOD}, kSignedInts,
   "e = icmp eq $T $1, $z\n"
   "f = icmp eq $T $1, $n\n"
   "g = or $B %e, %f\n"
   "d = select $B %g, $T $o, $T $1\n"
   "q = srem $T $0, %d\n"
   "select $B %e, $T $0, $T %q"},
  {{Op::SHL}, kMachineInts,  "i = icmp ult $T $1, $W\ns = shl $T $0, $1\nselect $B %i, $T %s, $T $z"},
  {{Op::SHR}, kSignedInts,   "i = icmp ult $T $1, $W\ns = ashr $T $0, $1\nselect $B %i, $T %s, $T $z"},
  {{Op::SHR}, kUnsignedInts, "i = icmp ult $T $1, $W\ns = lshr $T $0, $1\nselect $B %i, $T %s, $T $z"},
  {{Op::CMPLT}, kSignedInts, "icmp slt $T $0, $1"},
  {{Op::CMPLT}, kUnsignedInts | kBools, "icmp ult $T $0, $1"},
  {{Op::CMPEQ}, kMachineInts | kBools, "icmp eq $T $0, $1"},
  {{Op::CMPNE}, kMachineInts, "icmp ne $T $0, $1"},
  // choice
  {{Op::WHERE}, kReals | kMachineInts | kBools, "select $B $0, $T $1, $T $2"},
};

// A right operand that is a constant for which the short form is right.
constexpr LlvmRow kConstantRows[] = {
  {{Op::SHL}, kMachineInts, "shl $T $0, $1"},
  {{Op::SHR}, kSignedInts, "ashr $T $0, $1"},
  {{Op::SHR}, kUnsignedInts, "lshr $T $0, $1"},
  {{Op::CDIV}, kSignedInts, "sdiv $T $0, $1"},
  {{Op::CDIV}, kUnsignedInts, "udiv $T $0, $1"},
  {{Op::CMOD}, kSignedInts, "srem $T $0, $1"},
  {{Op::CMOD}, kUnsignedInts, "urem $T $0, $1"},
};

constexpr LlvmRow kSame = {{Op::CAST, Op::BITCAST}, kAnyDType, ""};
constexpr LlvmRow kBitcast = {{Op::BITCAST}, kAnyDType, "bitcast $T $0 to $R"};

struct CastRow {
  DTypeSet from, to;
  LlvmRow row;
};
// Those between integers depend on their widths: see integer_cast.
constexpr CastRow kCastRows[] = {
  {kMachineInts, kBools, {{Op::CAST}, kAnyDType, "icmp ne $T $0, $z"}},
  {kReals, kBools, {{Op::CAST}, kAnyDType, "fcmp une $T $0, $z"}},
  {kBools, kMachineInts, {{Op::CAST}, kAnyDType, "zext $T $0 to $R"}},
  {kBools | kUnsignedInts, kReals, {{Op::CAST}, kAnyDType, "uitofp $T $0 to $R"}},
  {kSignedInts, kReals, {{Op::CAST}, kAnyDType, "sitofp $T $0 to $R"}},
  {set_of(Scalar::kFloat32), set_of(Scalar::kFloat64), {{Op::CAST}, kAnyDType, "fpext $T $0 to $R"}},
  {set_of(Scalar::kFloat64), set_of(Scalar::kFloat32), {{Op::CAST}, kAnyDType, "fptrunc $T $0 to $R"}},
  // The intrinsics fptosi.sat and fptoui.sat go lane by lane on x86. A NaN passes the first choice as the
  // least value.
  {kReals, kSignedInts, {{Op::CAST}, kAnyDType,
   "f = fcmp ogt $T $0, $l\n"
   "g = select $B %f, $T $0, $T $l\n"
   "c = fptosi $T %g to $R\n"
   "p = fcmp oge $T $0, $h\n"
   "s = select $B %p, $R $g, $R %c\n"
   "u = fcmp uno $T $0, $0\n"
   "select $B %u, $R zeroinitializer, $R %s"}},
  {kReals, kUnsignedInts, {{Op::CAST}, kAnyDType,
   "f = fcmp ogt $T $0, $z\n"
   "g = select $B %f, $T $0, $T $z\n"
   "c = fptoui $T %g to $R\n"
   "p = fcmp oge $T $0, $h\n"
   "select $B %p, $R $g, $R %c"}},
};
constexpr LlvmRow kTruncate = {{Op::CAST}, kAnyDType, "trunc $T $0 to $R"};
constexpr LlvmRow kExtendSign = {{Op::CAST}, kAnyDType, "sext $T $0 to $R"};
constexpr LlvmRow kExtendZero = {{Op::CAST}, kAnyDType, "zext $T $0 to $R"};
// clang-format on

const LlvmRow* integer_cast(DType from, DType to) {
  if (from.bits() == to.bits()) return &kSame;
  if (from.bits() > to.bits()) return &kTruncate;
  return from.is_signed() ? &kExtendSign : &kExtendZero;
}

const LlvmRow* cast_row(DType from, DType to) {
  if (from.scalar == to.scalar) return &kSame;
  if (from.is_int() && to.is_int()) return integer_cast(from, to);
  for (const CastRow& c : kCastRows) {
    if ((c.from & set_of(from.scalar)) != 0 && (c.to & set_of(to.scalar)) != 0) return &c.row;
  }
  return nullptr;
}

const LlvmRow* bitcast_row(DType from, DType to) {
  const bool is_float = from.is_float() != to.is_float();
  return is_float ? &kBitcast : &kSame;
}

bool has_short_form(Op op, UOp c) {
  if (!c.is_const() || !c.dtype().is_int()) return false;
  const int64_t value = c.const_int();
  if (op == Op::SHL || op == Op::SHR) return value >= 0 && value < c.dtype().bits();
  return value != 0 && (value != -1 || c.dtype().is_unsigned());
}

}  // namespace

const LlvmRow* llvm_row(Op op, DType from, DType to) {
  if (op == Op::CAST) return cast_row(from, to);
  if (is_cast_of_bool(op, from, to)) return cast_row(held_as(from), held_as(to));
  if (op == Op::BITCAST) return bitcast_row(held_as(from), held_as(to));
  return find_row(kRows, op, op == Op::WHERE ? held_as(from) : from);
}

const LlvmRow* llvm_row(UOp n) {
  const DType type = n.srcs().back().dtype();
  if (n.src_count() == 2 && has_short_form(n.op(), n.src(1))) {
    if (const LlvmRow* row = find_row(kConstantRows, n.op(), type)) return row;
  }
  return llvm_row(n.op(), type, n.dtype());
}

}  // namespace weft
