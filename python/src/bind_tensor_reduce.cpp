// Tensor's reductions, matrix products, and what is made of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include "ir/op.h"
#include "tensor.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

using Reduce = Tensor (Tensor::*)(const Axes&, bool) const;

Tensor any(const Tensor& x, const Axes& axes, bool keepdim) {
  return x.cast(dtypes::bool_).reduce(Op::OR, axes, keepdim);
}

Tensor all(const Tensor& x, const Axes& axes, bool keepdim) {
  return x.cast(dtypes::bool_).reduce(Op::AND, axes, keepdim);
}

// The elements that one result of the reduction is made of.
int64_t count_of(const Tensor& x, const Axes& axes) {
  if (!axes) return x.numel();
  int64_t count = 1;
  for (const int64_t axis : *axes) count *= x.shape()[size_t(axis < 0 ? axis + x.ndim() : axis)];
  return count;
}

Tensor as_float(const Tensor& x) { return x.dtype().is_float() ? x : x.cast(dtypes::float32); }

Tensor variance(const Tensor& given, const Axes& axes, bool keepdim, int64_t correction) {
  const Tensor x = as_float(given);
  const Tensor distance = x.sub(x.mean(axes, true));
  const int64_t freedom = std::max<int64_t>(0, count_of(x, axes) - correction);
  return distance.mul(distance).sum(axes, keepdim).div(freedom);
}

// exp(x - max), and its sum over the axis.
struct Exponentials {
  Tensor shifted, powers, sum;
};
Exponentials exponentials(const Tensor& given, int64_t axis, std::optional<DType> dtype) {
  const Tensor x = as_float(dtype ? given.cast(*dtype) : given);
  if (x.ndim() == 0) {
    if (axis != 0 && axis != -1)
      throw IndexError(fmt::format("[softmax] axis {} of no axes", axis));
    return exponentials(x.reshape({1}), 0, {});
  }
  const Axes axes = std::vector<int64_t>{axis};
  const Tensor shifted = x.numel() == 0 ? x : x.sub(x.max(axes, true));
  const Tensor powers = shifted.unary(Op::EXP);
  return {shifted, powers, powers.sum(axes, true)};
}

Tensor softmax(const Tensor& x, int64_t axis, nb::handle dtype) {
  const Exponentials e = exponentials(x, axis, optional_dtype_of(dtype));
  return e.powers.div(e.sum).reshape(x.shape());
}

Tensor log_softmax(const Tensor& x, int64_t axis, nb::handle dtype) {
  const Exponentials e = exponentials(x, axis, optional_dtype_of(dtype));
  return e.shifted.sub(e.sum.unary(Op::LOG)).reshape(x.shape());
}

Tensor layernorm(const Tensor& given, nb::handle axis, double eps) {
  const Tensor x = as_float(given);
  const Axes axes = axes_of(axis, "layernorm");
  const Tensor distance = x.sub(x.mean(axes, true));
  const Tensor spread = distance.mul(distance).mean(axes, true).add(eps);
  return distance.mul(spread.unary(Op::SQRT).unary(Op::RECIP));
}

Tensor product(const Tensor& x, nb::handle other, bool reverse, nb::handle dtype) {
  const std::optional<DType> wanted = optional_dtype_of(dtype);
  const auto in = [&](const Tensor& t) { return wanted ? t.cast(*wanted) : t; };
  std::optional<Tensor> array;
  const Tensor* y = as_tensor(other);
  if (y == nullptr) {
    array = as_array(other, x.device());
    if (!array) no_operand("matmul", other);
    y = &*array;
  }
  return reverse ? in(*y).matmul(in(x)) : in(x).matmul(in(*y));
}

void reduction(TensorClass& c, const char* name, Reduce reduce, const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, axis: {} = None, keepdim: bool = False) -> Tensor", name, WEFT_AXES);
  c.def(
      name,
      [name, reduce](const Tensor& x, nb::handle axis, bool keepdim) {
        return (x.*reduce)(axes_of(axis, name), keepdim);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::sig(text.c_str()), doc);
}

// With the dtype to add or multiply in.
void accumulation(TensorClass& c, const char* name, Reduce reduce, const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, axis: {} = None, keepdim: bool = False, dtype: {} = None) -> Tensor", name,
      WEFT_AXES, WEFT_DTYPE);
  c.def(
      name,
      [name, reduce](const Tensor& x, nb::handle axis, bool keepdim, nb::handle dtype) {
        const std::optional<DType> wanted = optional_dtype_of(dtype);
        const Axes axes = axes_of(axis, name);
        if (!wanted) return (x.*reduce)(axes, keepdim);
        return (x.cast(*wanted).*reduce)(axes, keepdim).cast(*wanted);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::arg("dtype") = nb::none(),
      nb::sig(text.c_str()), doc);
}

void predicate(TensorClass& c, const char* name, Tensor (*reduce)(const Tensor&, const Axes&, bool),
               const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, axis: {} = None, keepdim: bool = False) -> Tensor", name, WEFT_AXES);
  c.def(
      name,
      [name, reduce](const Tensor& x, nb::handle axis, bool keepdim) {
        return reduce(x, axes_of(axis, name), keepdim);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::sig(text.c_str()), doc);
}

void bind_spread(TensorClass& c) {
  c.def(
       "var",
       [](const Tensor& x, nb::handle axis, bool keepdim, int64_t correction) {
         return variance(x, axes_of(axis, "var"), keepdim, correction);
       },
       nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::arg("correction") = 1,
       nb::sig("def var(self, axis: " WEFT_AXES
               " = None, keepdim: bool = False, correction: int = 1) -> Tensor"),
       R"(The variance: squares of the distances to the mean, over their count less the correction.

>>> Tensor([1.0, 2.0, 3.0]).var().item(), Tensor([1.0, 3.0]).var(correction=0).item()
(1.0, 1.0)
)")
      .def(
          "std",
          [](const Tensor& x, nb::handle axis, bool keepdim, int64_t correction) {
            return variance(x, axes_of(axis, "std"), keepdim, correction).unary(Op::SQRT);
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::arg("correction") = 1,
          nb::sig("def std(self, axis: " WEFT_AXES
                  " = None, keepdim: bool = False, correction: int = 1) -> Tensor"),
          "The square root of the variance.");
}

}  // namespace

void bind_tensor_reduce(TensorClass& c) {
  accumulation(c, "sum", &Tensor::sum,
               R"(The sum over the axes, or of all; integers narrower than 32 bits give (u)int32.

>>> a = Tensor([[1, 2], [3, 4]])
>>> a.sum().item(), a.sum(axis=0).tolist(), a.sum(1, keepdim=True).tolist()
(10, [4, 6], [[3], [7]])
)");
  accumulation(c, "prod", &Tensor::prod, "The product over the axes, or of all.");
  reduction(c, "max", &Tensor::max, R"(The largest over the axes, or of all; NaN wins.

>>> Tensor([[1, 9], [3, 4]]).max(axis=1).tolist()
[9, 4]
)");
  reduction(c, "min", &Tensor::min, "The smallest over the axes, or of all; NaN wins.");
  reduction(c, "mean", &Tensor::mean, "The mean over the axes, or of all; a float.");
  predicate(c, "any", any, "Whether any element is not 0.");
  predicate(c, "all", all, "Whether no element is 0.");
  bind_spread(c);
  c.def("softmax", softmax, nb::arg("axis") = -1, nb::arg("dtype") = nb::none(),
        nb::sig("def softmax(self, axis: int = -1, dtype: " WEFT_DTYPE " = None) -> Tensor"),
        R"(exp(x) over its sum along the axis.

>>> Tensor([1.0, 1.0]).softmax().tolist()
[0.5, 0.5]
)")
      .def("log_softmax", log_softmax, nb::arg("axis") = -1, nb::arg("dtype") = nb::none(),
           nb::sig("def log_softmax(self, axis: int = -1, dtype: " WEFT_DTYPE " = None) -> Tensor"),
           "The logarithm of softmax.")
      .def("layernorm", layernorm, nb::arg("axis") = -1, nb::arg("eps") = 1e-5,
           nb::sig("def layernorm(self, axis: " WEFT_SIZES " = -1, eps: float = 1e-5) -> Tensor"),
           R"(Mean 0 and variance 1 along the axes.

>>> Tensor([1.0, 3.0]).layernorm().round().tolist()
[-1.0, 1.0]
)")
      .def("matmul", product, nb::arg("x"), nb::arg("reverse") = false,
           nb::arg("dtype") = nb::none(),
           nb::sig("def matmul(self, x: Tensor | NDArray[typing.Any], reverse: bool = "
                   "False, dtype: " WEFT_DTYPE " = None) -> Tensor"),
           R"(self @ x by NumPy's rules; x @ self with reverse. In `dtype`, where one is given.

>>> a = Tensor([[1, 2], [3, 4]])
>>> (a @ a).tolist(), (a @ Tensor([1, 0])).tolist()
([[7, 10], [15, 22]], [1, 3])
)")
      .def(
          "dot",
          [](const Tensor& x, nb::handle w, nb::handle dtype) {
            return product(x, w, false, dtype);
          },
          nb::arg("w"), nb::arg("dtype") = nb::none(),
          nb::sig("def dot(self, w: Tensor | NDArray[typing.Any], dtype: " WEFT_DTYPE
                  " = None) -> Tensor"),
          "self @ w.");
}

}  // namespace weft::python
