// Tensor's functions of one argument, its casts, where and clamp.
#include <cmath>
#include <cstdint>
#include <optional>

#include <nanobind/nanobind.h>

#include "ir/op.h"
#include "tensor.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

template <Op op>
Tensor apply(const Tensor& x) {
  return x.unary(op);
}

const Number kOne = int64_t(1);
const Number kZero = int64_t(0);

Tensor as_float(const Tensor& x) { return x.dtype().is_float() ? x : x.cast(dtypes::float32); }

Tensor absolute(const Tensor& x) {
  if (x.dtype().is_bool() || x.dtype().is_unsigned()) return x.clone();
  return x.binary(Op::MAX, x.neg());
}

Tensor sigmoid(const Tensor& x) {
  return as_float(x).neg().unary(Op::EXP).add(kOne).unary(Op::RECIP);
}

// 2 sigmoid(2x) - 1
Tensor tanh(const Tensor& x) {
  return sigmoid(as_float(x).mul(int64_t(2))).mul(int64_t(2)).sub(kOne);
}

Tensor sign(const Tensor& x) {
  const Tensor negative = x.binary(Op::CMPLT, kZero).cast(x.dtype());
  const Tensor positive = x.reverse_binary(Op::CMPLT, kZero).cast(x.dtype());
  if (!x.dtype().is_float()) return positive.sub(negative);
  return Tensor::where(x.binary(Op::CMPNE, x), x, positive.sub(negative));  // NaN stays
}

Tensor is_nan(const Tensor& x) { return x.binary(Op::CMPNE, x); }

Tensor is_finite(const Tensor& x) {
  if (!x.dtype().is_float()) return is_nan(x).unary(Op::NOT);
  return absolute(x).binary(Op::CMPLT, HUGE_VAL);
}

Tensor is_infinite(const Tensor& x, bool positive, bool negative) {
  const Tensor above = x.binary(Op::CMPEQ, HUGE_VAL);
  const Tensor below = x.binary(Op::CMPEQ, -HUGE_VAL);
  if (positive && negative) return above.binary(Op::OR, below);
  return positive ? above : negative ? below : Tensor::full(x.shape(), false, {}, x.device());
}

Tensor clamp(const Tensor& x, nb::handle least, nb::handle most) {
  if (least.is_none() && most.is_none()) throw ShapeError("[clamp] min_ or max_ is needed");
  Tensor result = x;
  if (!least.is_none()) {
    result =
        of_operand(x, "clamp", least, [&](const auto& y) { return result.binary(Op::MAX, y); });
  }
  if (!most.is_none()) {
    result = of_operand(x, "clamp", most, [&](const auto& y) { return result.binary(Op::MIN, y); });
  }
  return result;
}

Tensor choose(const Tensor& condition, nb::handle x, nb::handle y) {
  const Tensor c = condition.dtype().is_bool() ? condition : condition.binary(Op::CMPNE, kZero);
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
          R"(The same memory read in another dtype of the same width: a view.

>>> Tensor([1.0]).bitcast(dtypes.uint32).item() == 0x3f800000
True
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
  c.def("sqrt", apply<Op::SQRT>, "The square root.")
      .def(
          "rsqrt", [](const Tensor& x) { return x.unary(Op::SQRT).unary(Op::RECIP); },
          "1 / the square root.")
      .def("exp", apply<Op::EXP>, "e to the power x.")
      .def("exp2", apply<Op::EXP2>, "2 to the power x.")
      .def("log", apply<Op::LOG>, "The natural logarithm.")
      .def("log2", apply<Op::LOG2>, "The logarithm to base 2.")
      .def("sin", apply<Op::SIN>, "The sine.")
      .def("cos", apply<Op::COS>, "The cosine.")
      .def(
          "tan", [](const Tensor& x) { return x.unary(Op::SIN).div(x.unary(Op::COS)); },
          "The tangent.")
      .def("reciprocal", apply<Op::RECIP>, "1 / x.")
      .def("sigmoid", sigmoid, R"(1 / (1 + exp(-x)).

>>> Tensor([0]).sigmoid().item()
0.5
)")
      .def("tanh", tanh, "The hyperbolic tangent.");
}

}  // namespace

void bind_tensor_functions(TensorClass& c) {
  bind_casts(c);
  bind_functions_of_reals(c);
  c.def("__neg__", &Tensor::neg)
      .def("__pos__", [](const Tensor& x) { return x.clone(); })
      .def("__abs__", absolute)
      .def("__invert__", apply<Op::NOT>)
      .def("neg", &Tensor::neg, "-x.")
      .def("abs", absolute, R"(The absolute value.

>>> Tensor([-3, 4]).abs().tolist(), abs(Tensor([-0.5])).tolist()
([3, 4], [0.5])
)")
      .def("bitwise_not", apply<Op::NOT>, "Every bit flipped; on bool, not x.")
      .def(
          "logical_not", [](const Tensor& x) { return x.binary(Op::CMPEQ, kZero); },
          "Whether x is 0.")
      .def("trunc", apply<Op::TRUNC>, "Rounded towards zero.")
      .def("floor", apply<Op::FLOOR>, "Rounded down.")
      .def("ceil", apply<Op::CEIL>, "Rounded up.")
      .def("round", apply<Op::ROUND>, R"(Rounded to the nearest integer, halves to even.

>>> Tensor([0.5, 1.5, -2.6]).round().tolist()
[0.0, 2.0, -3.0]
)")
      .def(
          "relu", [](const Tensor& x) { return x.binary(Op::MAX, kZero); }, "max(x, 0).")
      .def(
          "square", [](const Tensor& x) { return x.mul(x); }, "x * x.")
      .def("sign", sign, "-1, 0 or 1; NaN where x is.")
      .def("isnan", is_nan, "Whether x is NaN.")
      .def("isinf", is_infinite, nb::arg("detect_positive") = true,
           nb::arg("detect_negative") = true, "Whether x is an infinity.")
      .def("isfinite", is_finite, "Whether x is neither NaN nor an infinity.")
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
           "clamp by NumPy's name.")
      .def("where", choose, nb::arg("x"), nb::arg("y"),
           nb::sig("def where(self, x: " WEFT_OPERAND ", y: " WEFT_OPERAND ") -> Tensor"),
           R"(x where this is true, else y.

>>> a = Tensor([1, -2, 3])
>>> (a > 0).where(a, 0).tolist()
[1, 0, 3]
)");
}

}  // namespace weft::python
