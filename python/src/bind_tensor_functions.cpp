// Tensor's functions of reals, its casts, signs, bounds and tests.
#include <cstdint>
#include <type_traits>

#include <nanobind/nanobind.h>

#include "interpreter.h"
#include "tensor.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

Tensor clamp(const Tensor& x, nb::handle least, nb::handle most) {
  Tensor result = x;
  if (least.is_none() && most.is_none()) return x.clamp({}, {});
  if (!least.is_none()) {
    result = of_operand(x, "clamp", least, [&](const auto& y) { return result.clamp(y, {}); });
  }
  if (!most.is_none()) {
    result = of_operand(x, "clamp", most, [&](const auto& y) { return result.clamp({}, y); });
  }
  return result;
}

Tensor choose(const Tensor& condition, nb::handle x, nb::handle y) {
  const Tensor c = condition.dtype().is_bool() ? condition : condition.ne(int64_t(0));
  return of_operand(c, "where", x, [&](const auto& a) {
    return of_operand(c, "where", y, [&](const auto& b) { return Tensor::where(c, a, b); });
  });
}

template <DType dtype>
Tensor cast_to(const Tensor& x) {
  return x.cast(dtype);
}

void bind_casts(TensorClass& c) {
  c.def(
       "cast", [](const Tensor& x, nb::handle dtype) { return x.cast(dtype_of(dtype)); },
       nb::arg("dtype"), nb::sig("def cast(self, dtype: DType | str) -> Tensor"),
       R"(The values in another dtype; itself where it has this one.

Floats to integers truncate and saturate, NaN gives 0; integers to integers wrap.

>>> Tensor([1.75, -2.5, 300.0]).cast(dtypes.int8).tolist()
[1, -2, 127]
)")
      .def(
          "bitcast", [](const Tensor& x, nb::handle dtype) { return x.bitcast(dtype_of(dtype)); },
          nb::arg("dtype"), nb::sig("def bitcast(self, dtype: DType | str) -> Tensor"),
          R"(The same bits in another dtype: a view where it is as wide, else a new tensor with more or fewer
elements along the last axis.

>>> Tensor([1.0]).bitcast(dtypes.uint32).item() == 0x3f800000
True
>>> Tensor([258], dtype=dtypes.int32).bitcast(dtypes.uint8).tolist()
[2, 1, 0, 0]
)")
      .def("float", cast_to<dtypes::float32>, "cast(float32)")
      .def("half", cast_to<dtypes::float16>, "cast(float16)")
      .def("bfloat16", cast_to<dtypes::bfloat16>, "cast(bfloat16)")
      .def("double", cast_to<dtypes::float64>, "cast(float64)")
      .def("int", cast_to<dtypes::int32>, "cast(int32)")
      .def("long", cast_to<dtypes::int64>, "cast(int64)")
      .def("short", cast_to<dtypes::int16>, "cast(int16)")
      .def("bool", cast_to<dtypes::bool_>, "cast(bool)");
}

void bind_functions_of_reals(TensorClass& c) {
  c.def("sqrt", &Tensor::sqrt, "The square root.")
      .def("rsqrt", &Tensor::rsqrt, "1 / the square root.")
      .def("reciprocal", &Tensor::reciprocal, "1 / x.")
      .def("exp", &Tensor::exp, "e to the power x.")
      .def("exp2", &Tensor::exp2, "2 to the power x.")
      .def("expm1", &Tensor::expm1, "exp(x) - 1, exact for small x too.")
      .def("log", &Tensor::log, "The natural logarithm.")
      .def("log2", &Tensor::log2, "The logarithm to base 2.")
      .def("log10", &Tensor::log10, "The logarithm to base 10.")
      .def("log1p", &Tensor::log1p, "log(1 + x), exact for small x too.")
      .def("sin", &Tensor::sin, "The sine.")
      .def("cos", &Tensor::cos, "The cosine.")
      .def("tan", &Tensor::tan, "The tangent.")
      .def("asin", &Tensor::asin, "The inverse of the sine, from -pi/2 to pi/2.")
      .def("acos", &Tensor::acos, "The inverse of the cosine, from 0 to pi.")
      .def("atan", &Tensor::atan, "The inverse of the tangent, from -pi/2 to pi/2.")
      .def("sinh", &Tensor::sinh, "The hyperbolic sine.")
      .def("cosh", &Tensor::cosh, "The hyperbolic cosine.")
      .def("tanh", &Tensor::tanh, "The hyperbolic tangent.")
      .def("asinh", &Tensor::asinh, "The inverse of the hyperbolic sine.")
      .def("acosh", &Tensor::acosh, "The inverse of the hyperbolic cosine, not negative.")
      .def("atanh", &Tensor::atanh, "The inverse of the hyperbolic tangent.")
      .def("erf", &Tensor::erf, R"(The error function: 2 / sqrt(pi) times the integral of
exp(-t^2) from 0 to x.

>>> Tensor([0.0, 1.0]).erf().tolist()
[0.0, 0.8427007794380188]
)");
}

void bind_tests(TensorClass& c) {
  c.def("isnan", &Tensor::isnan, "Whether x is NaN.")
      .def("isinf", &Tensor::isinf, nb::arg("detect_positive") = true,
           nb::arg("detect_negative") = true, "Whether x is an infinity.")
      .def("isfinite", &Tensor::isfinite, "Whether x is neither NaN nor an infinity.")
      .def(
          "isclose",
          [](const Tensor& x, nb::handle other, double rtol, double atol, bool equal_nan) {
            return of_operand(x, "isclose", other,
                              [&](const auto& y) { return x.isclose(y, rtol, atol, equal_nan); });
          },
          nb::arg("other"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
          nb::arg("equal_nan") = false,
          nb::sig("def isclose(self, other: " WEFT_OPERAND
                  ", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor"),
          R"(Whether |self - other| is at most atol + rtol |other|, or both are equal.

>>> Tensor([1.0, 2.0]).isclose(Tensor([1.0000001, 2.1])).tolist()
[True, False]
)")
      .def(
          "allclose",
          [](const Tensor& x, nb::handle other, double rtol, double atol, bool equal_nan) {
            const Tensor are_all = of_operand(x, "allclose", other, [&](const auto& y) {
                                     return x.isclose(y, rtol, atol, equal_nan);
                                   }).all();
            const InterpreterReleased release;
            return are_all.item<bool>();
          },
          nb::arg("other"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
          nb::arg("equal_nan") = false,
          nb::sig("def allclose(self, other: " WEFT_OPERAND
                  ", rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool"),
          "Whether all elements are close, as isclose has it; computes them.");
}

void bind_signs_and_bounds(TensorClass& c) {
  c.def("__neg__", &Tensor::neg)
      .def("__pos__", [](const Tensor& x) { return x.clone(); })
      .def("__abs__", &Tensor::abs)
      .def("__invert__", &Tensor::bitwise_not)
      .def("neg", &Tensor::neg, "-x.")
      .def("abs", &Tensor::abs, R"(The absolute value.

>>> Tensor([-3, 4]).abs().tolist(), abs(Tensor([-0.5])).tolist()
([3, 4], [0.5])
)")
      .def("bitwise_not", &Tensor::bitwise_not, "Every bit flipped; on bool, not x.")
      .def("logical_not", &Tensor::logical_not, "Whether x is 0.")
      .def("trunc", &Tensor::trunc, "Rounded towards zero.")
      .def("floor", &Tensor::floor, "Rounded down.")
      .def("ceil", &Tensor::ceil, "Rounded up.")
      .def("round", &Tensor::round, R"(Rounded to the nearest integer, halves to even.

>>> Tensor([0.5, 1.5, -2.6]).round().tolist()
[0.0, 2.0, -3.0]
)")
      .def("square", &Tensor::square, "x * x.")
      .def("sign", &Tensor::sign, "-1, 0 or 1; NaN where x is.")
      .def("clamp", clamp, nb::arg("min_") = nb::none(), nb::arg("max_") = nb::none(),
           nb::sig("def clamp(self, min_: " WEFT_OPERAND " | None = None, max_: " WEFT_OPERAND
                   " | None = None) -> Tensor"),
           R"(min_ where x is less, max_ where it is more.

>>> Tensor([-2, 0, 9]).clamp(-1, 5).tolist()
[-1, 0, 5]
)")
      .def("clip", clamp, nb::arg("min_") = nb::none(), nb::arg("max_") = nb::none(),
           nb::sig("def clip(self, min_: " WEFT_OPERAND " | None = None, max_: " WEFT_OPERAND
                   " | None = None) -> Tensor"),
           "clamp by NumPy's name.");
}

// Methods of two tensors, or a tensor and a number.
void bind_of_two(TensorClass& c) {
  c.def(
       "copysign",
       [](const Tensor& x, nb::handle other) {
         return of_operand(x, "copysign", other, [&](const auto& y) { return x.copysign(y); });
       },
       nb::arg("other"), nb::sig("def copysign(self, other: " WEFT_OPERAND ") -> Tensor"),
       R"(The size of self with the sign of other.

>>> Tensor([1.0, -2.0]).copysign(-0.0).tolist()
[-1.0, -2.0]
)")
      .def(
          "logaddexp",
          [](const Tensor& x, nb::handle other) {
            return of_operand(x, "logaddexp", other, [&](const auto& y) { return x.logaddexp(y); });
          },
          nb::arg("other"), nb::sig("def logaddexp(self, other: " WEFT_OPERAND ") -> Tensor"),
          R"(log(exp(self) + exp(other)), without overflow.

>>> Tensor([1000.0]).logaddexp(Tensor([0.0])).item()
1000.0
)")
      .def(
          "lerp",
          [](const Tensor& x, nb::handle end, nb::handle weight) {
            return of_operand(x, "lerp", end, [&](const auto& y) {
              return of_operand(x, "lerp", weight, [&](const auto& w) {
                if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
                  return x.lerp(y, w);
                } else {
                  return x.lerp(Tensor::full({}, y, x.dtype(), x.device()), w);
                }
              });
            });
          },
          nb::arg("end"), nb::arg("weight"),
          nb::sig("def lerp(self, end: " WEFT_OPERAND ", weight: " WEFT_OPERAND ") -> Tensor"),
          R"(self + weight * (end - self).

>>> Tensor([0.0, 10.0]).lerp(Tensor([1.0, 20.0]), 0.25).tolist()
[0.25, 12.5]
)")
      .def("where", choose, nb::arg("x"), nb::arg("y"),
           nb::sig("def where(self, x: " WEFT_OPERAND ", y: " WEFT_OPERAND ") -> Tensor"),
           R"(x where this is true, else y.

>>> a = Tensor([1, -2, 3])
>>> (a > 0).where(a, 0).tolist()
[1, 0, 3]
)");
}

}  // namespace

void bind_tensor_functions(TensorClass& c) {
  bind_casts(c);
  bind_functions_of_reals(c);
  bind_tests(c);
  bind_signs_and_bounds(c);
  bind_of_two(c);
}

}  // namespace weft::python
