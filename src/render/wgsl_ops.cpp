// Elementwise ops in WGSL, total as ops.def has them.
#include "render/wgsl_ops.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/target.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "render/render.h"
#include "render/renderer.h"
#include "rewrite/pattern.h"

namespace weft {
namespace {

constexpr DTypeSet kFloat = set_of(Scalar::kFloat32);
constexpr DTypeSet kInt = set_of(Scalar::kInt32), kUInt = set_of(Scalar::kUInt32);
constexpr DTypeSet kWords = kInt | kUInt;
constexpr DTypeSet kHeld = kMachineInts & ~(set_of(Scalar::kInt64) | set_of(Scalar::kUInt64));
constexpr DTypeSet kLong = set_of(Scalar::kInt64), kULong = set_of(Scalar::kUInt64);
constexpr DTypeSet kLongs = kLong | kULong;

// $0 $1 $2 are the operands, $z zero in the type of the last one, $L its 64-bit letter.
struct Row {
  OpSet ops;
  DTypeSet dtypes;
  std::string_view text;
};
// clang-format off
constexpr Row kRows[] = {
  // bool
  {{Op::ADD, Op::MAX, Op::OR},  kBools, "$0 || $1"},
  {{Op::MUL, Op::MIN, Op::AND}, kBools, "$0 && $1"},
  {{Op::XOR, Op::CMPNE},        kBools, "$0 != $1"},
  {{Op::CMPEQ},                 kBools, "$0 == $1"},
  {{Op::CMPLT},                 kBools, "!$0 && $1"},
  {{Op::NOT},                   kBools, "!$0"},
  // float32; a != b is false with NaN in some compilers, !(a == b) is not
  {{Op::ADD},   kFloat, "$0 + $1"},
  {{Op::SUB},   kFloat, "$0 - $1"},
  {{Op::MUL},   kFloat, "$0 * $1"},
  {{Op::FDIV},  kFloat, "$0 / $1"},
  {{Op::RECIP}, kFloat, "1.0f / $0"},
  {{Op::NEG},   kFloat, "bitcast<f32>(bitcast<u32>($0) ^ 0x80000000u)"},
  {{Op::SQRT},  kFloat, "sqrt($0)"},
  {{Op::TRUNC}, kFloat, "trunc($0)"},
  {{Op::FLOOR}, kFloat, "floor($0)"},
  {{Op::CEIL},  kFloat, "ceil($0)"},
  {{Op::ROUND}, kFloat, "round($0)"},
  {{Op::MAX},   kFloat, "max_f32($0, $1)"},
  {{Op::MIN},   kFloat, "min_f32($0, $1)"},
  {{Op::CMPNE}, kFloat, "!($0 == $1)"},
  // integers in a word: + - * wrap, and shifts take the last five bits
  {{Op::ADD},    kWords, "$0 + $1"},
  {{Op::SUB},    kWords, "$0 - $1"},
  {{Op::MUL},    kWords, "$0 * $1"},
  {{Op::MULACC}, kWords, "$0 * $1 + $2"},
  {{Op::NEG},    kWords, "$z - $0"},
  {{Op::NOT},    kWords, "~$0"},
  {{Op::AND},    kHeld,  "$0 & $1"},
  {{Op::OR},     kHeld,  "$0 | $1"},
  {{Op::XOR},    kHeld,  "$0 ^ $1"},
  {{Op::MAX},    kHeld,  "max($0, $1)"},
  {{Op::MIN},    kHeld,  "min($0, $1)"},
  {{Op::CDIV},   kWords, "select($0 / $1, $z, $1 == $z)"},
  {{Op::CMOD},   kWords, "select($0 % $1, $0, $1 == $z)"},
  {{Op::SHL},    kInt,   "select($0 << (bitcast<u32>($1) & 31u), 0i, bitcast<u32>($1) >= 32u)"},
  {{Op::SHR},    kInt,   "select($0 >> (bitcast<u32>($1) & 31u), 0i, bitcast<u32>($1) >= 32u)"},
  {{Op::SHL},    kUInt,  "select($0 << ($1 & 31u), 0u, $1 >= 32u)"},
  {{Op::SHR},    kUInt,  "select($0 >> ($1 & 31u), 0u, $1 >= 32u)"},
  // 64-bit integers
  {{Op::ADD},    kLongs, "add_u64($0, $1)"},
  {{Op::SUB},    kLongs, "sub_u64($0, $1)"},
  {{Op::MUL},    kLongs, "mul_u64($0, $1)"},
  {{Op::MULACC}, kLongs, "add_u64(mul_u64($0, $1), $2)"},
  {{Op::NEG},    kLongs, "neg_u64($0)"},
  {{Op::NOT},    kLongs, "~$0"},
  {{Op::AND},    kLongs, "$0 & $1"},
  {{Op::OR},     kLongs, "$0 | $1"},
  {{Op::XOR},    kLongs, "$0 ^ $1"},
  {{Op::MAX},    kLongs, "max_$L64($0, $1)"},
  {{Op::MIN},    kLongs, "min_$L64($0, $1)"},
  {{Op::CDIV},   kLongs, "div_$L64($0, $1)"},
  {{Op::CMOD},   kLongs, "mod_$L64($0, $1)"},
  {{Op::SHL},    kLongs, "shl_u64($0, $1)"},
  {{Op::SHR},    kLongs, "shr_$L64($0, $1)"},
  {{Op::CMPLT},  kLongs, "lt_$L64($0, $1)"},
  {{Op::CMPEQ},  kLongs, "all($0 == $1)"},
  {{Op::CMPNE},  kLongs, "any($0 != $1)"},
  // all others
  {{Op::CMPLT},  kFloat | kHeld, "$0 < $1"},
  {{Op::CMPEQ},  kFloat | kHeld, "$0 == $1"},
  {{Op::CMPNE},  kHeld, "$0 != $1"},
  {{Op::WHERE},  kAnyDType, "select($2, $1, $0)"},
};
constexpr Row kConstantDivisorRows[] = {
  {{Op::CDIV}, kWords, "$0 / $1"},
  {{Op::CMOD}, kWords, "$0 % $1"},
};
constexpr Row kZeroDivisorRows[] = {
  {{Op::CDIV}, kWords, "$z"},
  {{Op::CMOD}, kWords, "$0"},
};
constexpr Row kConstantShiftRows[] = {
  {{Op::SHL}, kWords, "$0 << $cu"},
  {{Op::SHR}, kWords, "$0 >> $cu"},
  {{Op::SHL}, kLongs, "shl_word($0, $cu)"},
  {{Op::SHR}, kULong, "shr_word($0, $cu)"},
};
constexpr Row kLargeShiftRows[] = {{{Op::SHL, Op::SHR}, kWords | kLongs, "$z"}};
// clang-format on

// The row for a right operand that is a constant for which the short form is right.
const Row* constant_row(UOp n) {
  const UOp c = n.src(1);
  if (!c.is_const() || !c.dtype().is_int()) return nullptr;
  const int64_t value = c.const_int();
  if (n.is(Op::SHL) || n.is(Op::SHR)) {
    const bool is_short = value >= 0 && value < c.dtype().bits();
    return is_short ? find_row(kConstantShiftRows, n.op(), c.dtype())
                    : find_row(kLargeShiftRows, n.op(), c.dtype());
  }
  if (value == 0) return find_row(kZeroDivisorRows, n.op(), c.dtype());
  return value != -1 ? find_row(kConstantDivisorRows, n.op(), c.dtype()) : nullptr;
}

std::string fill(std::string_view pattern, UOp n, const std::vector<std::string>& operands) {
  const DType source = n.srcs().back().dtype().element();
  std::string out;
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'z': out += wgsl_constant(source, 0); break;
      case 'L': out += source.is_unsigned() ? 'u' : 'i'; break;
      case 'c': out += fmt::format("{}", n.src(1).const_int()); break;
      default: out += operands[size_t(pattern[i] - '0')];
    }
  }
  return out;
}

// ------------------------------------------------------------------------------------------- casts

bool is_narrow_float(DType t) { return held_as(t) != t; }

std::string_view narrow_name(DType t) {
  switch (t.scalar) {
    case Scalar::kFloat16: return "f16";
    case Scalar::kBFloat16: return "bf16";
    case Scalar::kFloat8E5M2: return "e5m2";
    default: return "e4m3";
  }
}

// The low bits of `x`, of the word type that holds t, as a value of t.
std::string wrapped(DType t, const std::string& x) {
  const int bits = t.bits();
  if (bits >= 32) return x;
  return t.is_signed() ? fmt::format("extractBits({}, 0u, {}u)", x, bits)
                       : fmt::format("{} & {:#x}u", x, (1U << bits) - 1);
}

std::string to_bool(DType from, const std::string& x) {
  if (from.bits() == 64) return fmt::format("any({} != vec2<u32>(0u, 0u))", x);
  if (is_narrow_float(from)) {
    return fmt::format("({} & {:#x}u) != 0u", x, (1U << (from.bits() - 1)) - 1);
  }
  return from.is_float() ? fmt::format("!({} == 0.0f)", x)
                         : fmt::format("{} != {}", x, wgsl_constant(from, 0));
}

std::string int_to_int(DType from, DType to, const std::string& x) {
  if (to.bits() == 64) {
    if (from.bits() == 64) return x;
    if (from.is_unsigned()) return fmt::format("vec2<u32>({}, 0u)", x);
    return fmt::format("vec2<u32>(bitcast<u32>({0}), bitcast<u32>({0} >> 31u))", x);
  }
  const bool is_same = from.bits() != 64 && from.is_signed() == to.is_signed();
  std::string word = from.bits() == 64 ? x + ".x" : x;
  if (from.bits() == 64 ? to.is_signed() : !is_same) {
    word = fmt::format("bitcast<{}>({})", to.is_signed() ? "i32" : "u32", word);
  }
  const bool fits = from.bits() < to.bits() && (from.is_unsigned() || to.is_signed());
  return fits || (from.bits() == to.bits() && is_same) ? word : wrapped(to, word);
}

std::string float_to_int(DType to, const std::string& x) {
  const char letter = to.is_signed() ? 'i' : 'u';
  if (to.bits() >= 32) return fmt::format("f32_to_{}{}({})", letter, to.bits(), x);
  const std::string word = fmt::format("f32_to_{}32({})", letter, x);
  if (to.is_unsigned())
    return fmt::format("min({}, {})", word, wgsl_constant(to, greatest_bits(to)));
  return fmt::format("clamp({}, {}, {})", word, wgsl_constant(to, least_bits(to)),
                     wgsl_constant(to, greatest_bits(to)));
}

std::string to_float(DType from, const std::string& x) {
  if (from.bits() < 64) return fmt::format("f32({})", x);
  return fmt::format("{}64_to_f32({})", from.is_signed() ? 'i' : 'u', x);
}

std::string to_narrow(DType from, DType to, const std::string& x) {
  std::string number = x;
  if (is_narrow_float(from)) {
    number = fmt::format("{}_to_f32({})", narrow_name(from), x);
  } else if (from.is_int()) {
    number = from.bits() < 32
                 ? to_float(from, x)
                 : fmt::format("{}{}_to_odd_f32({})", from.is_signed() ? 'i' : 'u', from.bits(), x);
  }
  return fmt::format("f32_to_{}({})", narrow_name(to), number);
}

std::string cast_text(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (to.is_bool()) return to_bool(from, x);
  if (from.is_bool()) {
    const uint64_t one = to.is_float() ? bits_of_double(to, 1) : 1;
    return fmt::format("select({}, {}, {})", wgsl_constant(to, 0), wgsl_constant(to, one), x);
  }
  if (is_narrow_float(to)) return to_narrow(from, to, x);
  if (is_narrow_float(from)) {
    const std::string number = fmt::format("{}_to_f32({})", narrow_name(from), x);
    return to.is_float() ? number : float_to_int(to, number);
  }
  if (from.is_float()) return float_to_int(to, x);
  return to.is_float() ? to_float(from, x) : int_to_int(from, to, x);
}

std::string bitcast_text(DType from, DType to, const std::string& x) {
  if (from.is_bool() || to.is_bool()) return cast_text(held_as(from), held_as(to), x);
  const std::string held = wgsl_type(to);
  return held == wgsl_type(from) ? x
                                 : wrapped(held_as(to), fmt::format("bitcast<{}>({})", held, x));
}

// -------------------------------------------------------------------------------- what is native

struct NativeRow {
  OpSet ops;
  DTypeSet dtypes;
};
// clang-format off
constexpr NativeRow kNative[] = {
    {{Op::ADD, Op::MUL}, kFloat | kWords | kLongs | kBools},
    {{Op::MAX, Op::MIN, Op::CMPLT, Op::CMPEQ, Op::CMPNE}, kFloat | kMachineInts | kBools},
    {{Op::CAST}, (kFloats & ~set_of(Scalar::kFloat64)) | kMachineInts | kBools},
    {{Op::BITCAST, Op::WHERE}, kAnyDType & ~(kIndexes | set_of(Scalar::kFloat64))},
    {{Op::SUB, Op::NEG}, kFloat | kWords | kLongs},
    {{Op::MULACC}, kWords | kLongs},
    {{Op::AND, Op::OR, Op::XOR}, kMachineInts | kBools},
    {{Op::NOT}, kWords | kLongs | kBools},
    {{Op::CDIV, Op::CMOD, Op::SHL, Op::SHR}, kWords | kLongs},
    {{Op::FDIV, Op::RECIP, Op::SQRT, Op::TRUNC, Op::FLOOR, Op::CEIL, Op::ROUND}, kFloat},
};
// clang-format on

}  // namespace

// The sizes are those that every WebGPU device has.
Target wgsl_target(WgslDriver driver) {
  Target out;
  out.name = "WGSL";
  for (const NativeRow& row : kNative) {
    for (size_t i = 0; i < kOpCount; i++) {
      if (row.ops.has(Op(i))) out.native[i] |= row.dtypes;
    }
  }
  if (driver.fused) out.native[size_t(Op::MULACC)] |= kFloat;
  out.vector_bytes = 16;
  out.vector_arithmetic = false;
  out.limits.buffers = 8;
  out.limits.sequences = false;
  out.groups = {.threads = 256,
                .most_threads = {256, 256, 64},
                .most_groups = {65535, 65535, 65535},
                .local_bytes = 16 << 10};
  return out;
}

std::string wgsl_type(DType type) {
  const DType t = held_as(type);
  if (t.is_bool()) return "bool";
  if (t.scalar == Scalar::kFloat32) return "f32";
  if (!t.is_int()) throw InternalError(fmt::format("render: WGSL has no type for {}", t.name()));
  if (t.bits() == 64) return "vec2<u32>";
  return t.is_signed() ? "i32" : "u32";
}

std::string wgsl_constant(DType type, uint64_t bits) {
  const DType t = held_as(type.element());
  if (t.is_bool()) return bits != 0 ? "true" : "false";
  if (t.bits() == 64) {
    return fmt::format("vec2<u32>({}u, {}u)", uint32_t(bits), uint32_t(bits >> 32));
  }
  if (t.is_unsigned()) return fmt::format("{}u", bits);
  if (t.is_int()) {
    const auto value = int64_t(bits);  // -2147483648i is no literal
    return value == INT32_MIN ? "i32(-2147483648)"
           : value < 0        ? fmt::format("({}i)", value)
                              : fmt::format("{}i", value);
  }
  const double value = double_of_bits(t, bits);
  const bool is_plain = value == 0 || std::fabs(value) >= 0x1p-126;
  if (!std::isfinite(value) || !is_plain || (value == 0 && std::signbit(value))) {
    return fmt::format("float_of({:#x}u)", bits);
  }
  std::string text;
  const double scaled = value * 64;
  if (std::fabs(value) < 1e6 && scaled == std::floor(scaled)) {
    text = fmt::format("{}", value);
    if (text.find('.') == std::string::npos) text += ".0";
  } else {
    text = fmt::format("{:a}", value);
  }
  return value < 0 ? fmt::format("({}f)", text) : text + "f";
}

std::string wgsl_expression(UOp n, const std::vector<std::string>& operands, Fused fused) {
  const DType type = n.srcs().back().dtype().element(), result = n.dtype().element();
  if (n.is(Op::CAST)) return cast_text(type, result, operands[0]);
  if (n.is(Op::BITCAST)) return bitcast_text(type, result, operands[0]);
  if (n.src_count() == 2) {
    const bool is_same = n.src(0) == n.src(1) && type.scalar == Scalar::kFloat32;
    if (is_same && n.is(Op::CMPNE)) return fmt::format("is_nan({})", operands[0]);
    if (is_same && n.is(Op::CMPEQ)) return fmt::format("!is_nan({})", operands[0]);
    if (const Row* row = constant_row(n)) return fill(row->text, n, operands);
  }
  if (n.is(Op::MULACC) && type.scalar == Scalar::kFloat32) {
    return fill(fused == Fused::kYes ? "fma($0, $1, $2)" : "mulacc_f32($0, $1, $2)", n, operands);
  }
  if (n.is(Op::MULACC) && is_narrow_float(type)) {  // rounded once
    std::vector<std::string> wide;
    wide.reserve(operands.size());
    for (const std::string& x : operands) {
      wide.push_back(fmt::format("{}_to_f32({})", narrow_name(type), x));
    }
    return fmt::format("f32_to_{}(mulacc_odd_f32({}, {}, {}))", narrow_name(type), wide[0], wide[1],
                       wide[2]);
  }
  const Row* row = find_row(kRows, n.op(), type);
  return row != nullptr ? fill(row->text, n, operands) : std::string();
}

}  // namespace weft
