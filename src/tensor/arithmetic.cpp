// Arithmetic beyond one op: comparisons, bounds, remainders, powers, what is near what.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "tensor/remainder.h"
#include "tensor/term.h"
#include "weft/tensor.h"

namespace weft {
namespace {

constexpr double kInfinity = HUGE_VAL;

Tensor combine(Op op, const Tensor& x, Operand y) {
  return y.tensor() == nullptr ? x.binary(op, y.number()) : x.binary(op, *y.tensor());
}

bool has_nan(Operand x) {
  if (x.tensor() != nullptr) return x.tensor()->dtype().is_float();
  return std::holds_alternative<double>(x.number());
}

double double_of(Number n) {
  return std::visit([](auto x) { return double(x); }, n);
}

}  // namespace

Tensor Tensor::lt(Operand y) const { return combine(Op::CMPLT, *this, y); }
Tensor Tensor::eq(Operand y) const { return combine(Op::CMPEQ, *this, y); }
Tensor Tensor::ne(Operand y) const { return combine(Op::CMPNE, *this, y); }
Tensor Tensor::gt(Operand y) const {
  return y.tensor() == nullptr ? reverse_binary(Op::CMPLT, y.number()) : y.tensor()->lt(*this);
}
// not (y < x) would hold with NaN
Tensor Tensor::le(Operand y) const {
  if (!has_nan(*this) && !has_nan(y)) return gt(y).unary(Op::NOT);
  return lt(y).binary(Op::OR, eq(y));
}
Tensor Tensor::ge(Operand y) const {
  if (!has_nan(*this) && !has_nan(y)) return lt(y).unary(Op::NOT);
  return gt(y).binary(Op::OR, eq(y));
}

Tensor Tensor::maximum(Operand y) const { return combine(Op::MAX, *this, y); }
Tensor Tensor::minimum(Operand y) const { return combine(Op::MIN, *this, y); }
Tensor Tensor::bitwise_and(Operand y) const { return combine(Op::AND, *this, y); }
Tensor Tensor::bitwise_or(Operand y) const { return combine(Op::OR, *this, y); }
Tensor Tensor::bitwise_xor(Operand y) const { return combine(Op::XOR, *this, y); }
Tensor Tensor::bitwise_not() const { return unary(Op::NOT); }
Tensor Tensor::lshift(Operand y) const { return combine(Op::SHL, *this, y); }
Tensor Tensor::rshift(Operand y) const { return combine(Op::SHR, *this, y); }
Tensor Tensor::mod(Operand y) const { return combine(Op::MOD, *this, y); }
Tensor Tensor::logical_not() const { return eq(int64_t(0)); }

Tensor Tensor::trunc() const { return unary(Op::TRUNC); }
Tensor Tensor::floor() const { return unary(Op::FLOOR); }
Tensor Tensor::ceil() const { return unary(Op::CEIL); }
Tensor Tensor::round() const { return unary(Op::ROUND); }
Tensor Tensor::square() const { return mul(*this); }

Tensor Tensor::abs() const {
  if (dtype().is_bool() || dtype().is_unsigned()) return clone();
  return binary(Op::MAX, neg());
}

Tensor Tensor::sign() const {
  const Tensor difference = gt(int64_t(0)).cast(dtype()).sub(lt(int64_t(0)).cast(dtype()));
  return dtype().is_float() ? where(isnan(), *this, difference) : difference;
}

Tensor Tensor::copysign(Operand y) const {
  return of_reals("copysign", *this, y, [](const Term& a, const Term& b) {
    return negate(sign_bit(b), apply(Op::MAX, a, -a));
  });
}

Tensor Tensor::isnan() const { return ne(*this); }

Tensor Tensor::isfinite() const { return dtype().is_float() ? abs().lt(kInfinity) : eq(*this); }

Tensor Tensor::isinf(bool detect_positive, bool detect_negative) const {
  if (!dtype().is_float() || (!detect_positive && !detect_negative)) {
    return tensor_of(full_value("isinf", device_of(*this), dtypes::bool_, shape(), false));
  }
  if (!detect_negative) return eq(kInfinity);
  return detect_positive ? abs().eq(kInfinity) : eq(-kInfinity);
}

// ------------------------------------------------------------------------------------------ bounds

namespace {

enum class Bound : uint8_t { kLeast, kMost };

// The bound where x is past it; at the bound itself the gradient goes to x. NaN wins, of either.
Tensor bounded(const Tensor& x, Operand y, Bound bound) {
  const Met met = meet("clamp", x, y);
  if (met.dtype.is_int()) {
    return tensor_of(apply(bound == Bound::kLeast ? Op::MAX : Op::MIN, met.x, met.y), met.dtype);
  }
  Term is_past = bound == Bound::kLeast ? met.x < met.y : met.y < met.x;
  if (met.dtype.is_float() && has_nan(y)) is_past = is_past | is_nan(met.y);
  return tensor_of(where(is_past, met.y, met.x), met.dtype);
}

}  // namespace

Tensor Tensor::clamp(std::optional<Operand> least, std::optional<Operand> most) const {
  if (!least && !most) throw ShapeError("[clamp] min_ or max_ is needed");
  Tensor result = *this;
  if (least) result = bounded(result, *least, Bound::kLeast);
  if (most) result = bounded(result, *most, Bound::kMost);
  return result;
}

// ---------------------------------------------------------------------------------------
// remainders

Tensor Tensor::fmod(Operand y) const {
  const Met met = meet("fmod", *this, y);
  if (met.dtype.is_float()) return tensor_of(remainder_toward_zero(met.x, met.y), met.dtype);
  return combine(Op::CMOD, *this, y);
}

Tensor Tensor::div(Operand y, Rounding rounding) const {
  if (rounding == Rounding::kDown) return combine(Op::IDIV, *this, y);
  if (rounding == Rounding::kNone) return combine(Op::FDIV, *this, y);
  const bool is_whole = !dtype().is_float() && !has_nan(y);
  return is_whole ? combine(Op::CDIV, *this, y) : combine(Op::FDIV, *this, y).trunc();
}

// -------------------------------------------------------------------------------- between and near

namespace {

// The larger one times sqrt(1 + ratio^2): no square overflows.
Term hypot_of(const Term& a, const Term& b) {
  const Term x = apply(Op::MAX, a, -a), y = apply(Op::MAX, b, -b);
  const Term large = apply(Op::MAX, x, y), small = apply(Op::MIN, x, y);
  const Term ratio = small / where(large == 0, 1.0, large);
  const Term is_infinite = (x == kInfinity) | (y == kInfinity);
  return where(is_infinite, kInfinity, large * sqrt(1 + ratio * ratio));
}

}  // namespace

Tensor Tensor::lerp(const Tensor& end, Operand weight) const {
  const DType result = real_dtype(promote("lerp", dtype(), end.dtype()));
  const DType type = computing_dtype(result);
  const Tensor from = cast(type), to = end.cast(type), distance = to.sub(from);
  if (weight.tensor() == nullptr) {
    const double w = double_of(weight.number());
    if (w < 0.5) return from.add(distance.mul(w)).cast(result);
    return to.sub(distance.mul(1 - w)).cast(result);
  }
  const Tensor w = weight.tensor()->cast(type);
  const Tensor near = from.add(distance.mul(w)), far = to.sub(distance.mul(1.0 - w));
  return where(w.lt(0.5), near, far).cast(result);
}

Tensor Tensor::logaddexp(Operand y) const {
  return of_reals("logaddexp", *this, y,
                  [](const Term& a, const Term& b) { return weft::logaddexp(a, b); });
}

Tensor Tensor::hypot(Operand y) const { return of_reals("hypot", *this, y, hypot_of); }

Tensor Tensor::isclose(Operand other, double rtol, double atol, bool equal_nan) const {
  const Met met = meet_as_reals("isclose", *this, other);
  const Term &x = met.x, &y = met.y, distance = x - y, size = apply(Op::MAX, y, -y);
  const Term allowed = atol + rtol * size;
  const Term is_far = allowed < apply(Op::MAX, distance, -distance);
  const Term is_near = (!is_far) & (size < kInfinity);
  Term result = (x == y) | (is_near & (x == x));
  if (equal_nan) result = result | (is_nan(x) & is_nan(y));
  return tensor_of(result, dtypes::bool_);
}

bool Tensor::allclose(Operand other, double rtol, double atol, bool equal_nan) const {
  return isclose(other, rtol, atol, equal_nan).all().item<bool>();
}

}  // namespace weft
