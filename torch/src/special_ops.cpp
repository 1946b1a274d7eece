// Functions beyond the elementary ones: of errors, of gamma, of Bessel, and their kin.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ops/digamma_meta.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/erfinv_meta.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/i0_meta.h>
#include <ATen/ops/lgamma_meta.h>
#include <ATen/ops/logaddexp2_meta.h>
#include <ATen/ops/logaddexp_meta.h>
#include <ATen/ops/nextafter_meta.h>
#include <ATen/ops/polygamma_meta.h>
#include <ATen/ops/special_entr_meta.h>
#include <ATen/ops/special_erfcx_meta.h>
#include <ATen/ops/special_i0e_meta.h>
#include <ATen/ops/special_i1_meta.h>
#include <ATen/ops/special_i1e_meta.h>
#include <ATen/ops/special_log_ndtr_meta.h>
#include <ATen/ops/special_modified_bessel_i0_meta.h>
#include <ATen/ops/special_modified_bessel_i1_meta.h>
#include <ATen/ops/special_ndtri_meta.h>
#include <ATen/ops/special_spherical_bessel_j0_meta.h>
#include <ATen/ops/special_xlog1py_meta.h>
#include <ATen/ops/xlogy_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "elementwise.h"
#include "ir/op.h"
#include "operators.h"
#include "special_coefficients.h"
#include "storage.h"
#include "structured.h"
#include "tensor/operand.h"
#include "tensor/term.h"
#include "tensor/widest_float.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kInfinity = HUGE_VAL;
constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;

Term sin(const Term& x) { return apply(Op::SIN, x); }
Term cos(const Term& x) { return apply(Op::COS, x); }
Term nan_like(const Term& x) { return x.like(std::nan("")); }

// Computed where rounding does not count, and rounded once.
template <auto f>
Term widely(const Term& x) {
  return cast(f(cast(x, widest_float(x.value()->device()))), x.dtype());
}

// A sum of Chebyshev polynomials by Clenshaw's recurrence, the first coefficient halved.
Term chebyshev(const Term& x, std::span<const double> coefficients) {
  Term b0 = x.like(coefficients[0]), b1 = x.like(0.0), b2 = x.like(0.0);
  for (size_t i = 1; i < coefficients.size(); i++) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + coefficients[i];
  }
  return 0.5 * (b0 - b2);
}
// c0 x^n + c1 x^(n-1) + ...
Term horner(const Term& x, std::span<const double> coefficients) {
  Term sum = x.like(coefficients[0]);
  for (size_t i = 1; i < coefficients.size(); i++) sum = sum * x + coefficients[i];
  return sum;
}

// ---- errors

// exp(x^2) erfc(x), x >= 0
Term scaled_erfc(const Term& x) {
  const Term inside = at_most(x, 0x1p40);
  return chebyshev(2 * ((inside - 3.75) / (inside + 3.75)), kErfcx) / (1 + 2 * x);
}
Term erfc_of(const Term& x) {
  const Term size = magnitude_of(x), inside = at_most(size, 30);
  const Term tail = where(is_nan(x), x, exp(-(inside * inside)) * scaled_erfc(inside));
  return where(x < 0, 2 - tail, tail);
}
Term erfcx_of(const Term& x) {
  const Term size = magnitude_of(x), right = scaled_erfc(size);
  return where(is_nan(x), x, where(x < 0, 2 * exp(x * x) - right, right));
}

// A quotient, and two steps of Newton's method. Past 1 - 2^-9 they would divide what cancels: the
// distance to 1 is taken there, by erfc.
Term erfinv_of(const Term& y) {
  constexpr double a[] = {-0.140543331, 0.914624893, -1.645349621, 0.886226899};
  constexpr double b[] = {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1};
  constexpr double c[] = {1.641345311, 3.429567803, -1.624906493, -1.970840454};
  constexpr double d[] = {1.637067800, 3.543889200, 1};
  constexpr double central = 0.7, slope = 0x1.20dd750429b6dp+0;  // 2 / sqrt(pi)
  const Term size = magnitude_of(y), is_inside = size < 1;
  const Term u = where(is_inside, size, 0.0), square = u * u;
  const Term is_far = central < u, rest = 1 - u;
  const Term z = sqrt(-log(rest * 0.5));
  const Term near = u * horner(square, a) / horner(square, b);
  Term x = where(is_far, horner(z, c) / horner(z, d), near);
  for (int i = 0; i < 2; i++) {
    const Term miss = where(is_far, rest - erfc_of(x), erf(x) - u);
    x = x - miss / (slope * exp(-(x * x)));
  }
  const Term result = where(is_inside, x, where(size == 1, y.like(kInfinity), nan_like(y)));
  return negate(sign_bit(y), result);
}

Term log_ndtr_of(const Term& x) {
  const Term t = x * kRootHalf, is_low = x < -1, left = where(is_low, -t, 1.0);
  const Term low = log(scaled_erfc(left) * 0.5) - t * t;
  return where(is_low, low, log1p(-(erfc_of(t) * 0.5)));
}

Term ndtri_of(const Term& given) {
  constexpr double p0[] = {-5.99633501014107895267E1, 9.80010754185999661536E1,
                           -5.66762857469070293439E1, 1.39312609387279679503E1,
                           -1.23916583867381258016E0};
  constexpr double q0[] = {1,
                           1.95448858338141759834E0,
                           4.67627912898881538453E0,
                           8.63602421390890590575E1,
                           -2.25462687854119370527E2,
                           2.00260212380060660359E2,
                           -8.20372256168333339912E1,
                           1.59056225126211695515E1,
                           -1.18331621121330003142E0};
  constexpr double p1[] = {
      4.05544892305962419923E0,   3.15251094599893866154E1,   5.71628192246421288162E1,
      4.40805073893200834700E1,   1.46849561928858024014E1,   2.18663306850790267539E0,
      -1.40256079171354495875E-1, -3.50424626827848203418E-2, -8.57456785154685413611E-4};
  constexpr double q1[] = {1,
                           1.57799883256466749731E1,
                           4.53907635128879210584E1,
                           4.13172038254672030440E1,
                           1.50425385692907503408E1,
                           2.50464946208309415979E0,
                           -1.42182922854787788574E-1,
                           -3.80806407691578277194E-2,
                           -9.33259480895457427372E-4};
  constexpr double p2[] = {
      3.23774891776946035970E0,  6.91522889068984211695E0,  3.93881025292474443415E0,
      1.33303460815807542389E0,  2.01485389549179081538E-1, 1.23716634817820021358E-2,
      3.01581553508235416007E-4, 2.65806974686737550832E-6, 6.23974539184983293730E-9};
  constexpr double q2[] = {1,
                           6.02427039364742014255E0,
                           3.67983563856160859403E0,
                           1.37702099489081330271E0,
                           2.16236993594496635890E-1,
                           1.34204006088543189037E-2,
                           3.28014464682127739104E-4,
                           2.89247864745380683936E-6,
                           6.79019408009981274425E-9};
  constexpr double edge = 0.13533528323661269189, root_two_pi = 2.50662827463100050242;
  const Term is_high = 1 - edge < given, y = where(is_high, 1 - given, given);
  const Term is_middle = edge < y, from_half = y - 0.5, square = from_half * from_half;
  const Term middle =
      (from_half + from_half * (square * horner(square, p0) / horner(square, q0))) * root_two_pi;
  const Term root = sqrt(-2.0 * log(where(is_middle, 0.1, y))), z = 1 / root;
  const Term is_near = root < 8;
  const Term correction =
      where(is_near, z * horner(z, p1) / horner(z, q1), z * horner(z, p2) / horner(z, q2));
  const Term tail = root - log(root) / root - correction;
  const Term inside = where(is_middle, middle, negate(!is_high, tail));
  const Term at_edge = where(given == 0, given.like(-kInfinity),
                             where(given == 1, given.like(kInfinity), nan_like(given)));
  return where((0 < given) & (given < 1), inside, at_edge);
}

// ---- gamma

constexpr int kShifts = 10;  // up to which series by 1/x are exact

// log |gamma(x)| by Stirling's series; left of 1/2 by reflection.
Term lgamma_of(const Term& x) {
  constexpr double series[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                               -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
  constexpr double half_log_two_pi = 0x1.d67f1c864beb5p-1, log_pi = 0x1.250d048e7a1bdp+0;
  const Term is_left = x < 0.5;
  Term z = where(is_left, 1 - x, x), product = x.like(1.0);
  for (int i = 0; i < kShifts; i++) {
    const Term is_small = z < double(kShifts);
    product = where(is_small, product * z, product);
    z = where(is_small, z + 1, z);
  }
  const Term finite = at_most(z, 0x1p1000), inverse = 1 / finite;
  const Term sum = (finite - 0.5) * log(finite) - finite + half_log_two_pi +
                   inverse * horner(inverse * inverse, series) - log(product);
  const Term right = where(z == kInfinity, z, sum);
  const Term turn = x - apply(Op::ROUND, x), height = magnitude_of(sin(kPi * turn));
  const Term left = where(turn == 0, x.like(kInfinity), log_pi - log(height) - right);
  const Term is_endless = (x == kInfinity) | (x == -kInfinity);
  return where(is_endless, x.like(kInfinity), where(is_left, left, right));
}

Term digamma_of(const Term& x) {
  constexpr double series[] = {8.33333333333333333333E-2, -2.10927960927960927961E-2,
                               7.57575757575757575758E-3, -4.16666666666666666667E-3,
                               3.96825396825396825397E-3, -8.33333333333333333333E-3,
                               8.33333333333333333333E-2};
  const Term is_left = x < 0;
  Term z = where(is_left, 1 - x, x), sum = x.like(0.0);
  for (int i = 0; i < kShifts; i++) {
    const Term is_small = z < double(kShifts);
    sum = where(is_small, sum - 1 / z, sum);
    z = where(is_small, z + 1, z);
  }
  const Term inverse = 1 / z, square = inverse * inverse;
  const Term right = sum + log(z) - 0.5 * inverse - square * horner(square, series);
  const Term angle = kPi * (x - trunc(x));
  const Term left = where(trunc(x) == x, nan_like(x), right - kPi * cos(angle) / sin(angle));
  const Term at_zero = where(sign_bit(x), x.like(kInfinity), x.like(-kInfinity));
  return where(x == 0, at_zero, where(is_left, left, right));
}

// x^-n
Term inverse_power(const Term& x, int64_t n) {
  Term result = x.like(1.0), square = 1 / x;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = result * square;
    if (n > 1) square = square * square;
  }
  return result;
}

// sum over k >= 0 of (x + k)^-s for x >= 1/2, by the formula of Euler and Maclaurin.
Term zeta_of(int64_t s, Term x) {
  constexpr double factors[] = {12.0,
                                -720.0,
                                30240.0,
                                -1209600.0,
                                47900160.0,
                                -1.8924375803183791606e9,
                                7.47242496e10,
                                -2.950130727918164224e12,
                                1.1646782814350067249e14,
                                -4.5979787224074726105e15,
                                1.8152105401943546773e17,
                                -7.1661652561756670113e18};
  Term sum = x.like(0.0);
  for (int i = 0; i < kShifts; i++) {
    const Term is_small = x < double(kShifts);
    sum = where(is_small, sum + inverse_power(x, s), sum);
    x = where(is_small, x + 1, x);
  }
  const Term last = inverse_power(x, s), inverse = 1 / x, square = inverse * inverse;
  sum = sum + last * x / double(s - 1) + 0.5 * last;
  Term power = last * inverse;
  double rising = double(s);
  for (int64_t k = 0; k < 12; k++) {
    sum = sum + power * (rising / factors[k]);
    power = power * square;
    rising *= double(s + 2 * k + 1) * double(s + 2 * k + 2);
  }
  return sum;
}

// The nth derivative of cot(x), as a polynomial in cot(x): p' = -(1 + c^2) dp/dc.
std::vector<double> cotangent_derivative(int64_t n) {
  std::vector<double> p{0, 1};
  for (int64_t i = 0; i < n; i++) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (size_t k = 1; k < p.size(); k++) {
      next[k - 1] -= double(k) * p[k];
      next[k + 1] -= double(k) * p[k];
    }
    p = std::move(next);
  }
  return p;
}

// psi_n(x) = (-1)^(n+1) n! zeta(n + 1, x); left of 1/2 (-1)^n psi_n(1 - x) - pi cot^(n)(pi x).
Term polygamma_of(int64_t n, const Term& x) {
  const double sign = n % 2 == 0 ? -1 : 1, factorial = std::tgamma(double(n) + 1);
  const Term is_left = x < 0.5;
  const Term right = zeta_of(n + 1, where(is_left, 1 - x, x)) * (sign * factorial);
  const Term turn = x - apply(Op::ROUND, x), angle = kPi * turn;
  const Term derivative = polynomial(cos(angle) / sin(angle), cotangent_derivative(n));
  const Term reflected = -sign * right - std::pow(kPi, double(n) + 1) * derivative;
  const Term is_pole = (turn == 0) | (x == -kInfinity);
  const Term left = where(is_pole, x.like(sign * kInfinity), reflected);
  return where(x == kInfinity, 0.0, where(is_left, left, right));
}
constexpr int64_t kMostDerivatives = 1000;

weft::Tensor polygamma(const Shaped& s, int64_t n, const at::Tensor& self) {
  // The formula has as many terms; n! is past every float64 from 171 on.
  TORCH_CHECK(n <= kMostDerivatives, "polygamma: n is at most ", kMostDerivatives, ", got ", n);
  const auto f = [&](const Term& x) {
    const Term wide = cast(x, widest_float(x.value()->device()));
    return n == 0 ? digamma_of(wide) : polygamma_of(n, wide);
  };
  return compute_reals(s, f, self);
}
at::Tensor& polygamma_(at::Tensor& self, int64_t n) {
  using Form =
      detail::Out<at::meta::structured_polygamma, polygamma, 1, at::_ops::polygamma_out::schema>;
  return Form::call(n, self, self);
}

// ---- Bessel

Term i0e_of(const Term& given) {
  const Term x = magnitude_of(given), far = at_least(x, 8);
  return where(x < 8, chebyshev(x * 0.5 - 2, kI0Near), chebyshev(32 / far - 2, kI0Far) / sqrt(far));
}
Term i1e_of(const Term& given) {
  const Term x = magnitude_of(given), far = at_least(x, 8);
  const Term size = where(x < 8, chebyshev(x * 0.5 - 2, kI1Near) * x,
                          chebyshev(32 / far - 2, kI1Far) / sqrt(far));
  return negate(given < 0, size);
}
Term i0_of(const Term& x) { return exp(magnitude_of(x)) * i0e_of(x); }
Term i1_of(const Term& x) { return exp(magnitude_of(x)) * i1e_of(x); }
Term spherical_j0_of(const Term& x) {
  const Term size = magnitude_of(x), is_near = size < 0.5, is_endless = size == kInfinity;
  const Term near = where(is_near, x, 0.0), square = near * near;
  constexpr double series[] = {
      1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1};
  const Term far = where(is_near | is_endless, 1.0, x);
  return where(is_endless, 0.0, where(is_near, horner(square, series), sin(far) / far));
}

// ---- of logarithms

Term entr(const Term& x) {
  const Term inside = -x * log(where(0 < x, x, 1.0));
  return where(is_nan(x), x, where(0 < x, inside, where(x == 0, x.like(0.0), x.like(-kInfinity))));
}
Term xlogy(const Term& x, const Term& y) {
  return where(is_nan(y), y, where(x == 0, 0.0, x * log(y)));
}
Term xlog1py(const Term& x, const Term& y) {
  return where(is_nan(y), y, where(x == 0, 0.0, x * log1p(y)));
}
// max(x, y) + log2(1 + 2^-|x - y|)
Term logaddexp2(const Term& x, const Term& y) {
  const Term distance = where(x == y, 0.0, magnitude_of(x - y)), most = apply(Op::MAX, x, y);
  return most + log1p(apply(Op::EXP2, -distance)) * (1 / kLn2);
}

// ---- bits

// The next number towards y: one more or less as an integer.
Term nextafter(const Term& x, const Term& y) {
  constexpr DType integers[] = {dtypes::int16, dtypes::int32, dtypes::int64};
  const int width = x.dtype().bits();
  const Term bits = bitcast(x, integers[width == 16 ? 0 : width == 32 ? 1 : 2]);
  const Term one = bits.like(int64_t(1));
  const Term is_away = (x < y) == (x.like(0.0) < x);
  const Term least = bitcast(one, x.dtype()), moved = where(is_away, bits + one, bits - one);
  const Term from_zero = negate(y < x.like(0.0), least);
  const Term next = where(x == x.like(0.0), from_zero, bitcast(moved, x.dtype()));
  return where(is_nan(x), x, where(is_nan(y) | (x == y), y, next));
}

// x = m 2^e with 1/2 <= |m| < 1, of float32 or float64; what has no exponent is its own mantissa.
std::array<weft::Tensor, 2> frexp(const Shaped&, const at::Tensor& self) {
  const Term x(cast_value(read(operand(self)), computing_dtype(dtype_of(self.scalar_type()))));
  const int width = x.is_64() ? 52 : 23;
  const int64_t field = x.is_64() ? 0x7ff : 0xff, bias = x.is_64() ? 1022 : 126;
  const Term is_tiny = magnitude_of(x) < (x.is_64() ? 0x1p-1000 : 0x1p-100);
  const Term bits =
      bitcast(where(is_tiny, x * 0x1p+64, x), x.is_64() ? dtypes::int64 : dtypes::int32);
  const auto constant = [&](int64_t n) { return bits.like(n); };
  const Term raw = apply(Op::SHR, bits, constant(width)) & constant(field);
  const Term exponent = raw - where(is_tiny, constant(bias + 64), constant(bias));
  const Term cleared = bits & constant(~(field << width));
  const Term mantissa = bitcast(cleared | constant(bias << width), x.dtype());
  const Term is_plain = (x != x.like(0.0)) & (magnitude_of(x) < kInfinity);
  return {tensor_of(where(is_plain, mantissa, x), dtype_of(self.scalar_type())),
          tensor_of(where(is_plain, exponent, constant(0)), dtypes::int32)};
}
struct FrexpMeta : at::impl::MetaBase {
  void meta(const at::Tensor& self) {
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "torch.frexp() only supports floating-point dtypes");
    set_output_raw_strided(0, self.sizes(), {}, self.options());
    set_output_raw_strided(1, self.sizes(), {}, self.options().dtype(at::kInt));
  }
};

// NOLINTBEGIN: PyTorch's macros
#define WEFT_INPLACE(name, formula)                                                   \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_, \
             at::_ops::name##_out>(m)
#define WEFT_SPECIAL(name, formula) \
  structured<at::meta::structured_##name, formula, at::_ops::name, at::_ops::name##_out>(m)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  WEFT_INPLACE(erfc, kReal<widely<erfc_of>>);
  WEFT_INPLACE(erfinv, kReal<widely<erfinv_of>>);
  WEFT_INPLACE(lgamma, kReal<widely<lgamma_of>>);
  WEFT_INPLACE(digamma, kReal<widely<digamma_of>>);
  WEFT_INPLACE(i0, kReal<i0_of>);
  WEFT_INPLACE(hypot, kBinaryMethod<&weft::Tensor::hypot>);
  WEFT_INPLACE(nextafter, kPlain<nextafter>);
  WEFT_SPECIAL(logaddexp, kBinaryMethod<&weft::Tensor::logaddexp>);
  WEFT_SPECIAL(logaddexp2, kReal<logaddexp2>);
  structured<at::meta::structured_xlogy_Tensor, kReal<xlogy>, at::_ops::xlogy_Tensor,
             at::_ops::xlogy__Tensor, at::_ops::xlogy_OutTensor>(m);
  WEFT_SPECIAL(special_xlog1py, kReal<xlog1py>);
  WEFT_SPECIAL(special_entr, kReal<entr>);
  WEFT_SPECIAL(special_erfcx, kReal<widely<erfcx_of>>);
  WEFT_SPECIAL(special_ndtri, kReal<widely<ndtri_of>>);
  WEFT_SPECIAL(special_log_ndtr, kReal<widely<log_ndtr_of>>);
  WEFT_SPECIAL(special_i0e, kReal<i0e_of>);
  WEFT_SPECIAL(special_i1, kReal<i1_of>);
  WEFT_SPECIAL(special_i1e, kReal<i1e_of>);
  WEFT_SPECIAL(special_modified_bessel_i0, kReal<i0_of>);
  WEFT_SPECIAL(special_modified_bessel_i1, kReal<i1_of>);
  WEFT_SPECIAL(special_spherical_bessel_j0, kReal<spherical_j0_of>);
  structured<FrexpMeta, frexp, at::_ops::frexp_Tensor, at::_ops::frexp_Tensor_out>(m);
  WEFT_SPECIAL(polygamma, polygamma);
  native<at::_ops::polygamma_, polygamma_>(m);
}
#undef WEFT_INPLACE
#undef WEFT_SPECIAL
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
