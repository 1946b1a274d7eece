// The lattice of dtypes.
#include "tensor/promote.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/spec_rules.h"
#include "value/number_watch.h"
#include "weft/tensor.h"

namespace weft {
namespace {

// bool below integers below floats.
int kind_of(DType type) { return type.is_float() ? 2 : type.is_int() ? 1 : 0; }

DType signed_of_bits(int bits) {
  if (bits <= 8) return dtypes::int8;
  if (bits <= 16) return dtypes::int16;
  return bits <= 32 ? dtypes::int32 : dtypes::int64;
}

DType promote_ints(std::string_view what, DType a, DType b) {
  if (a.is_signed() == b.is_signed()) return a.bits() >= b.bits() ? a : b;
  const DType s = a.is_signed() ? a : b, u = a.is_signed() ? b : a;
  if (s.bits() > u.bits()) return s;
  if (u.bits() < 64) return signed_of_bits(2 * u.bits());
  throw DTypeError(fmt::format("[{}] no integer dtype holds both {} and {}; cast one of them", what,
                               a.name(), b.name()));
}

// The eight-bit floats meet in float16, which holds both, and so do float16 and bfloat16 in
// float32.
DType promote_floats(DType a, DType b) {
  if (a.bits() != b.bits()) return a.bits() > b.bits() ? a : b;
  return a.bits() == 8 ? dtypes::float16 : dtypes::float32;
}

constexpr OpSet kRealFunctions = {Op::FDIV, Op::RECIP, Op::SQRT, Op::EXP2, Op::LOG2,
                                  Op::EXP,  Op::LOG,   Op::SIN,  Op::COS};
// Division on bool is that of integers.
constexpr OpSet kDivisions = {Op::IDIV, Op::MOD, Op::CDIV, Op::CMOD};

std::atomic<Scalar> float_of_numbers = Scalar::kFloat32, int_of_numbers = Scalar::kInt32;

}  // namespace

DType default_float() { return DType{float_of_numbers.load(std::memory_order_relaxed)}; }
DType default_int() { return DType{int_of_numbers.load(std::memory_order_relaxed)}; }

void set_default_float(DType dtype) {
  if (!dtype.is_float()) {
    throw DTypeError(fmt::format("[default_float] {} is not a float dtype", dtype.name()));
  }
  float_of_numbers.store(dtype.scalar, std::memory_order_relaxed);
}

void set_default_int(DType dtype) {
  if (!dtype.is_int() || dtype.is_index()) {
    throw DTypeError(fmt::format("[default_int] {} is not an integer dtype", dtype.name()));
  }
  int_of_numbers.store(dtype.scalar, std::memory_order_relaxed);
}

DType promote(std::string_view what, DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) > kind_of(b) ? a : b;
  return kind_of(a) == 2 ? promote_floats(a, b) : promote_ints(what, a, b);
}

DType dtype_of_number(Number number) {
  if (number.index() == 0) return dtypes::bool_;
  return number.index() == 1 ? default_int() : default_float();
}

DType promote(DType tensor, Number number) {
  const DType weak = dtype_of_number(number);
  return kind_of(weak) > kind_of(tensor) ? weak : tensor;
}

uint64_t bits_of_number(DType dtype, Number number) {
  if (const double* real = std::get_if<double>(&number)) {
    return dtype.is_bool() ? uint64_t(*real != 0) : bits_of_double(dtype, *real);
  }
  const int64_t integer =
      number.index() == 0 ? int64_t(std::get<bool>(number)) : std::get<int64_t>(number);
  return dtype.is_bool() ? uint64_t(integer != 0) : bits_of_int(dtype, integer);
}

Fit fit_of(DType dtype, Number number) {
  if (!dtype.is_int()) return Fit::kFits;
  const Interval range = bounds_of(dtype);
  if (const double* real = std::get_if<double>(&number)) {
    if (std::isnan(*real)) return Fit::kNaN;
    // Both ends are powers of two, and so exact: the upper one is past the last value.
    const double end = std::ldexp(1, dtype.bits() - int(dtype.is_signed()));
    if (std::trunc(*real) >= end) return Fit::kAbove;
    return std::trunc(*real) < double(range.lo) ? Fit::kBelow : Fit::kFits;
  }
  const int64_t* integer = std::get_if<int64_t>(&number);
  if (integer == nullptr) return Fit::kFits;
  if (range.has(*integer)) {
    assume_at_most(range.lo, *integer);
    assume_at_most(*integer, range.hi);
    return Fit::kFits;
  }
  assume_exact({*integer});
  return *integer < range.lo ? Fit::kBelow : Fit::kAbove;
}

void check_fits(std::string_view what, DType dtype, Number number) {
  if (fit_of(dtype, number) == Fit::kFits) return;
  const std::string text = std::visit([](auto v) { return fmt::format("{}", v); }, number);
  const Interval range = bounds_of(dtype);
  const uint64_t most = dtype == dtypes::uint64 ? UINT64_MAX : uint64_t(range.hi);
  throw DTypeError(fmt::format("[{}] {} is not a value of {}, which holds {} to {}", what, text,
                               dtype.name(), range.lo, most));
}

void check_element_dtype(const char* what, DType dtype) {
  if (!dtype.is_void() && !dtype.is_index() && !dtype.is_pointer() && !dtype.is_vector()) return;
  throw DTypeError(fmt::format("[{}] tensors do not have elements of {}", what, dtype.name()));
}

DType operand_dtype(Op op, DType type) {
  if (kRealFunctions.has(op) && !type.is_float()) return default_float();
  if (kDivisions.has(op) && type.is_bool()) return dtypes::int32;
  if (!spec::accepts(op, type)) {
    throw DTypeError(fmt::format("[{}] it is not defined on {}; it takes {}", name_of(op),
                                 type.name(), spec::accepted_dtypes(op)));
  }
  return type;
}

ReducedDTypes reduced_dtypes(Op op, DType type) {
  const bool accumulates = op == Op::ADD || op == Op::MUL;
  if (accumulates && type.is_float()) {
    return {type.bits() < 32 ? dtypes::float32 : type, type};
  }
  if (accumulates && type.is_bool()) return {dtypes::int32, dtypes::int32};
  if (accumulates && type.is_int() && type.bits() < 32) {
    const DType wide = type.is_signed() ? dtypes::int32 : dtypes::uint32;
    return {wide, wide};
  }
  if (!identity_bits(op, type) || !spec::accepts(op, type)) {
    throw DTypeError(
        fmt::format("[reduce] there is no reduction of {} by {}", type.name(), name_of(op)));
  }
  return {type, type};
}

}  // namespace weft
