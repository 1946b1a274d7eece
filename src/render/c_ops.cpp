// Elementwise ops in C, total as ops.def has them, without undefined behaviour under any flags.
#include "render/c_ops.h"

#include <cstdint>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/c_style.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kReals = set_of(Scalar::kFloat32) | set_of(Scalar::kFloat64);

// On vectors a comparison gives 0 or -1 in lanes of the operands' width; bool has 0 or 1 in bytes.
#define WEFT_MASK_TO_BOOL(text) "__builtin_convertvector(" text ", $T) & 1"

// clang-format off
constexpr CRow kRows[] = {
  // bool
  {{Op::ADD, Op::MAX, Op::OR},  kBools, "$0 | $1",  kBits, kShift, "="},
  {{Op::MUL, Op::MIN, Op::AND}, kBools, "$0 & $1",  kBits, kShift, "="},
  {{Op::XOR, Op::CMPNE},        kBools, "$0 ^ $1",  kBits, kShift, "="},
  {{Op::CMPEQ},                 kBools, "$0 == $1", kCompare, kShift, "$0 ^ $1 ^ 1"},
  {{Op::CMPLT},                 kBools, "$0 < $1",  kCompare, kShift, "($0 ^ 1) & $1"},
  {{Op::NOT},                   kBools, "!$0",      kPrefix, kPrefix, "$0 ^ 1"},
  // floats
  {{Op::ADD},  kReals, "$0 + $1", kSum, kSum, "="},
  {{Op::SUB},  kReals, "$0 - $1", kSum, kSum, "="},
  {{Op::MUL},  kReals, "$0 * $1", kProduct, kProduct, "="},
  {{Op::FDIV}, kReals, "$0 / $1", kProduct, kProduct, "="},
  {{Op::RECIP}, kReals, "1 / $0", kProduct, kPrefix, "="},
  {{Op::NEG},  kReals, "-$0", kPrefix, kPostfix, "="},
  {{Op::SQRT},  kReals, "__builtin_sqrt$f($0)", kPostfix},
  {{Op::TRUNC}, kReals, "__builtin_trunc$f($0)", kPostfix},
  {{Op::FLOOR}, kReals, "__builtin_floor$f($0)", kPostfix},
  {{Op::CEIL},  kReals, "__builtin_ceil$f($0)", kPostfix},
  {{Op::ROUND}, kReals, "__builtin_rint$f($0)", kPostfix},
  // Clang does not make a vector of its lanes' functions.
  {{Op::MULACC}, kReals, "__builtin_fma$f($0, $1, $2)", kPostfix, kAny, "mulacc_$s($0, $1, $2)", {},
   "\n#if defined(__clang__) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))\n#pragma clang fp contract(on)\n  return a * b + c;\n"
   "#else\n  $T r;\n  for (int k = 0; k < (int)(sizeof(a) / sizeof(a[0])); k++) r[k] = __builtin_fma$f(a[k], b[k], c[k]);\n  return r;\n#endif\n"},
  // NaN of either operand; of equal numbers, which may be zeros of two signs, the one by sign.
  {{Op::MAX}, kReals, "max_$s($0, $1)", kPostfix, kAny, "max_$s($0, $1)",
   "return a > b || a != a ? a : a == b && !__builtin_signbit(a) ? a : b;",
   "$M x = ($M)a, y = ($M)b, e = a == b, l = (a > b) | (a != a); return ($T)((l & x) | (e & x & y) | (~(l | e) & y));"},
  {{Op::MIN}, kReals, "min_$s($0, $1)", kPostfix, kAny, "min_$s($0, $1)",
   "return a < b || a != a ? a : a == b && __builtin_signbit(a) ? a : b;",
   "$M x = ($M)a, y = ($M)b, e = a == b, l = (a < b) | (a != a); return ($T)((l & x) | (e & (x | y)) | (~(l | e) & y));"},
  // integers
  {{Op::ADD}, kMachineInts, "($T)(($U)$0 + ($U)$1)", kPrefix, kPrefix, "="},
  {{Op::SUB}, kMachineInts, "($T)(($U)$0 - ($U)$1)", kPrefix, kPrefix, "="},
  {{Op::MUL}, kMachineInts, "($T)(($U)$0 * ($U)$1)", kPrefix, kPrefix, "="},
  {{Op::MULACC}, kMachineInts, "($T)(($U)$0 * ($U)$1 + ($U)$2)", kPrefix, kPrefix, "="},
  {{Op::NEG}, kMachineInts, "($T)-($U)$0", kPrefix, kPrefix, "="},
  {{Op::NOT}, kMachineInts, "($T)~$0", kPrefix, kPrefix, "~$0"},
  {{Op::AND}, kMachineInts, "$0 & $1", kBits, kShift, "="},
  {{Op::OR},  kMachineInts, "$0 | $1", kBits, kShift, "="},
  {{Op::XOR}, kMachineInts, "$0 ^ $1", kBits, kShift, "="},
  {{Op::CDIV}, kUnsignedInts, "$1 == 0 ? 0 : $0 / $1", kChoice, kPrefix},
  {{Op::CMOD}, kUnsignedInts, "$1 == 0 ? $0 : $0 % $1", kChoice, kPrefix},
  {{Op::CDIV}, kSignedInts, "$1 == 0 ? 0 : $1 == -1 ? ($T)-($U)$0 : $0 / $1", kChoice, kPrefix},
  {{Op::CMOD}, kSignedInts, "$1 == 0 ? $0 : $1 == -1 ? 0 : $0 % $1", kChoice, kPrefix},
  {{Op::MAX}, kMachineInts, "$0 < $1 ? $1 : $0", kChoice, kShift, "max_$s($0, $1)", {},
   "$M m = a < b; return ($T)((m & ($M)b) | (~m & ($M)a));"},
  {{Op::MIN}, kMachineInts, "$1 < $0 ? $1 : $0", kChoice, kShift, "min_$s($0, $1)", {},
   "$M m = b < a; return ($T)((m & ($M)b) | (~m & ($M)a));"},
  {{Op::SHL}, kMachineInts, "($U)$1 < $W ? ($T)(($U)$0 << $1) : 0", kChoice, kPrefix, "shl_$s($0, $1)", {},
   "$U n = ($U)b; return ($T)((($U)a << (n & ($W - 1))) & ($U)(n < $W));"},
  {{Op::SHR}, kMachineInts, "($U)$1 < $W ? $0 >> $1 : 0", kChoice, kPrefix, "shr_$s($0, $1)", {},
   "$U n = ($U)b; return (a >> ($T)(n & ($W - 1))) & ($T)(n < $W);"},
  // comparisons, choice
  {{Op::CMPLT}, kReals | kMachineInts, "$0 < $1",  kCompare, kShift, WEFT_MASK_TO_BOOL("$0 < $1"), {}, {}, true},
  {{Op::CMPEQ}, kReals | kMachineInts, "$0 == $1", kCompare, kShift, WEFT_MASK_TO_BOOL("$0 == $1"), {}, {}, true},
  {{Op::CMPNE}, kReals | kMachineInts, "$0 != $1", kCompare, kShift, WEFT_MASK_TO_BOOL("$0 != $1"), {}, {}, true},
  {{Op::WHERE}, kReals | kMachineInts | kBools, "$0 ? $1 : $2", kChoice, kBits, "where_$s($0, $1, $2)", {},
   "$M m = -__builtin_convertvector(a, $M); return ($T)((m & ($M)b) | (~m & ($M)c));"},
};

// Integers that are proved not to wrap: indices, mostly.
constexpr CRow kExactRows[] = {
  {{Op::ADD}, kMachineInts, "$0 + $1", kSum, kSum, {}, {}, {}, true},
  {{Op::SUB}, kMachineInts, "$0 - $1", kSum, kSum, {}, {}, {}, true},
  {{Op::MUL}, kMachineInts, "$0 * $1", kProduct, kProduct, {}, {}, {}, true},
};
constexpr CRow kConstantShiftRows[] = {
  {{Op::SHL}, kMachineInts, "($T)(($U)$0 << $c)", kPrefix, kPrefix, "="},
  {{Op::SHR}, kMachineInts, "$0 >> $c", kShift, kSum, "="},
};
constexpr CRow kConstantDivisorRows[] = {
  {{Op::CDIV}, kMachineInts, "$0 / $1", kProduct, kProduct, "="},
  {{Op::CMOD}, kMachineInts, "$0 % $1", kProduct, kProduct, "="},
};

// Casts: the dtypes are those of the result.
constexpr CRow kCastRows[] = {
  {{Op::CAST}, kBools, "$0 != 0", kCompare, kShift, WEFT_MASK_TO_BOOL("$0 != 0")},
  {{Op::CAST}, kReals | kMachineInts, "($T)$0", kPrefix, kPrefix, "__builtin_convertvector($0, $T)"},
};
// Floats past the ends of an integer dtype.
constexpr CRow kSaturatingRows[] = {
  {{Op::CAST}, kSignedInts, "$s_to_$T($0)", kPostfix, kAny, {},
   "return a >= $l && a < $h ? ($T)a : a != a ? 0 : a < 0 ? $m : $g;"},
  {{Op::CAST}, kUnsignedInts, "$s_to_$T($0)", kPostfix, kAny, {},
   "return a >= 0 && a < $h ? ($T)a : a > 0 ? $g : 0;"},
};
// float16 is held as its bits, on which zero and NaN are found: gcc calls a function to compare floats that
// were halves. Integers pass through float32: those that it rounds are infinite in float16 anyway. A float64
// is cut to float32's digits, the last one set where any was lost, so that only the second rounding counts.
#define WEFT_HALF_AS_X "_Float16 h; __builtin_memcpy(&h, &a, sizeof h); float x = h; "
#define WEFT_RETURN_HALF "u16 r; __builtin_memcpy(&r, &h, sizeof r); return r;"
constexpr CRow kFromHalfRows[] = {
  {{Op::CAST}, kBools, "half_to_$T($0)", kPostfix, kAny, {}, "return (a & 0x7fff) != 0;"},
  {{Op::CAST}, kReals, "half_to_$T($0)", kPostfix, kAny, {}, WEFT_HALF_AS_X "return x;"},
  {{Op::CAST}, kSignedInts, "half_to_$T($0)", kPostfix, kAny, {}, WEFT_HALF_AS_X
   "return x >= $l && x < $h ? ($T)x : (a & 0x7fff) > 0x7c00 ? 0 : x < 0 ? $m : $g;"},
  {{Op::CAST}, kUnsignedInts, "half_to_$T($0)", kPostfix, kAny, {}, WEFT_HALF_AS_X
   "return x >= 0 && x < $h ? ($T)x : x > 0 ? $g : 0;"},
};
constexpr CRow kToHalfRows[] = {
  {{Op::CAST}, set_of(Scalar::kFloat64), "half_of_$s($0)", kPostfix, kAny, {},
   "unsigned long long n; __builtin_memcpy(&n, &a, sizeof n); "
   "n = (n & ~0x1fffffffull) | (n & 0x1fffffff ? 0x20000000 : 0); __builtin_memcpy(&a, &n, sizeof n); "
   "_Float16 h = (_Float16)(float)a; " WEFT_RETURN_HALF},
  {{Op::CAST}, kReals | kMachineInts | kBools, "half_of_$s($0)", kPostfix, kAny, {},
   "_Float16 h = (_Float16)(float)a; " WEFT_RETURN_HALF},
};
constexpr CRow kSameBits = {{Op::BITCAST}, kAnyDType, "$0", kAtom, kAtom, "="};
constexpr CRow kBitcast = {{Op::BITCAST}, kAnyDType, "$s_as_$T($0)", kPrefix, kAny, "($T)($0)",
                           "$T r; __builtin_memcpy(&r, &a, sizeof r); return r;"};
// clang-format on

CRow found(const CRow* row) { return row != nullptr ? *row : CRow{}; }

CRow cast_row(DType from, DType to) {
  if (from == to) return kSameBits;
  if (from.scalar == Scalar::kFloat16) return found(find_row(kFromHalfRows, Op::CAST, to));
  if (to.scalar == Scalar::kFloat16) return found(find_row(kToHalfRows, Op::CAST, from));
  if (from.is_float() && to.is_int()) return found(find_row(kSaturatingRows, Op::CAST, to));
  const bool is_known = (set_of(from.scalar) & (kReals | kMachineInts | kBools)) != 0;
  return is_known ? found(find_row(kCastRows, Op::CAST, to)) : CRow{};
}

// The row for a right operand that is a constant for which the short form is right.
const CRow* constant_row(UOp n) {
  const UOp c = n.src(1);
  if (!c.is_const() || !c.dtype().is_int()) return nullptr;
  const int64_t value = c.const_int();
  if (n.is(Op::SHL) || n.is(Op::SHR)) {
    const bool is_short = value >= 0 && value < c.dtype().bits();
    return is_short ? find_row(kConstantShiftRows, n.op(), c.dtype()) : nullptr;
  }
  const bool is_short = value != 0 && (value != -1 || c.dtype().is_unsigned());
  return is_short ? find_row(kConstantDivisorRows, n.op(), c.dtype()) : nullptr;
}

}  // namespace

CRow c_row(UOp n) {
  const DType type = n.srcs().back().dtype();
  if (n.is(Op::CAST)) return cast_row(type, n.dtype());
  if (is_cast_of_bool(n.op(), type, n.dtype())) return cast_row(held_as(type), held_as(n.dtype()));
  if (n.is(Op::BITCAST)) return held_as(type) == held_as(n.dtype()) ? kSameBits : kBitcast;
  if (n.is(Op::WHERE)) return found(find_row(kRows, n.op(), held_as(type)));
  if (n.src_count() == 2) {
    if (const CRow* row = constant_row(n)) return *row;
    const bool is_literal = n.src(0).is_const() && n.src(1).is_const();
    if (!type.is_vector() && !is_literal && type.bits() >= 32 && never_wraps(n)) {
      if (const CRow* row = find_row(kExactRows, n.op(), type)) return *row;
    }
  }
  return found(find_row(kRows, n.op(), type));
}

}  // namespace weft
