// Types and constants of LLVM IR.
#include "render/llvm_text.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "ir/dtype.h"
#include "ir/scalar.h"
#include "render/renderer.h"

namespace weft::llvm_text {
namespace {

std::string scalar_type(DType t) {
  if (t.is_bool()) return "i1";
  if (t.scalar == Scalar::kFloat32) return "float";
  if (t.scalar == Scalar::kFloat64) return "double";
  return fmt::format("i{}", t.bits());
}

// A float32 is written as the float64 that it is; a NaN as its bits, which a conversion might
// change.
std::string float_text(DType t, uint64_t bits) {
  const double value = double_of_bits(t, bits);
  if (std::isnan(value)) {
    return fmt::format("bitcast (i{} {} to {})", t.bits(), bits, scalar_type(t));
  }
  return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(value));
}

std::string scalar_text(DType t, uint64_t bits) {
  if (t.is_float()) return float_text(t, bits);
  if (t.is_bool()) return bits != 0 ? "true" : "false";
  return t.is_unsigned() ? fmt::format("{}", bits) : fmt::format("{}", int64_t(bits));
}

}  // namespace

std::string type(DType t) {
  const std::string one = scalar_type(held_as(t));
  return t.is_vector() ? fmt::format("<{} x {}>", t.lanes, one) : one;
}

std::string suffix(DType t) {
  const DType held = held_as(t);
  return fmt::format("{}{}{}", t.is_vector() ? fmt::format("v{}", t.lanes) : "",
                     held.is_float() ? "f" : "i", held.is_bool() ? 1 : held.bits());
}

DType stored(DType t) { return t.is_bool() ? dtypes::uint8.vec(t.lanes) : t; }

DType integer_of_width(DType t) {
  const int bits = held_as(t).bits();
  const Scalar s = bits <= 8    ? Scalar::kUInt8
                   : bits == 16 ? Scalar::kUInt16
                   : bits == 32 ? Scalar::kUInt32
                                : Scalar::kUInt64;
  return {s, AddrSpace::kNone, t.lanes};
}

std::string literal(DType t, uint64_t bits) {
  t = held_as(t);
  if (!t.is_vector()) return scalar_text(t, bits);
  if (bits == 0) return "zeroinitializer";
  const std::string one = fmt::format("{} {}", scalar_type(t), scalar_text(t.element(), bits));
  std::string lanes = one;
  for (int k = 1; k < t.lanes; k++) lanes += ", " + one;
  return fmt::format("<{}>", lanes);
}

}  // namespace weft::llvm_text
