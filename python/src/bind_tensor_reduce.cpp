// Tensor's reductions, matrix products, and what is made of them.
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "tensor.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

using Reduce = Tensor (Tensor::*)(const Axes&, bool) const;

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
using ReduceIn = Tensor (Tensor::*)(const Axes&, bool, DType) const;
void accumulation(TensorClass& c, const char* name, Reduce reduce, ReduceIn reduce_in,
                  const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, axis: {} = None, keepdim: bool = False, dtype: {} = None) -> Tensor", name,
      WEFT_AXES, WEFT_DTYPE);
  c.def(
      name,
      [name, reduce, reduce_in](const Tensor& x, nb::handle axis, bool keepdim, nb::handle dtype) {
        const std::optional<DType> wanted = optional_dtype_of(dtype);
        const Axes axes = axes_of(axis, name);
        return wanted ? (x.*reduce_in)(axes, keepdim, *wanted) : (x.*reduce)(axes, keepdim);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::arg("dtype") = nb::none(),
      nb::sig(text.c_str()), doc);
}

using Place = Tensor (Tensor::*)(std::optional<int64_t>, bool) const;
void place(TensorClass& c, const char* name, Place find, const char* doc) {
  const std::string text =
      fmt::format("def {}(self, axis: int | None = None, keepdim: bool = False) -> Tensor", name);
  c.def(
      name,
      [name, find](const Tensor& x, nb::handle axis, bool keepdim) {
        if (axis.is_none()) return (x.*find)({}, keepdim);
        return (x.*find)(int_of(axis, name), keepdim);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::sig(text.c_str()), doc);
}

// var, std, and both with the mean.
template <class Result>
void spread(TensorClass& c, const char* name,
            Result (Tensor::*function)(const Axes&, bool, double) const, const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, axis: {} = None, keepdim: bool = False, correction: float = 1) -> {}", name,
      WEFT_AXES, std::is_same_v<Result, Tensor> ? "Tensor" : "tuple[Tensor, Tensor]");
  c.def(
      name,
      [name, function](const Tensor& x, nb::handle axis, bool keepdim, double correction) {
        return (x.*function)(axes_of(axis, name), keepdim, correction);
      },
      nb::arg("axis") = nb::none(), nb::arg("keepdim") = false, nb::arg("correction") = 1,
      nb::sig(text.c_str()), doc);
}

}  // namespace

void bind_tensor_reduce(TensorClass& c) {
  accumulation(c, "sum", &Tensor::sum, &Tensor::sum,
               R"(The sum over the axes, or of all; integers narrower than 32 bits give (u)int32.

>>> a = Tensor([[1, 2], [3, 4]])
>>> a.sum().item(), a.sum(axis=0).tolist(), a.sum(1, keepdim=True).tolist()
(10, [4, 6], [[3], [7]])
)");
  accumulation(c, "prod", &Tensor::prod, &Tensor::prod, "The product over the axes, or of all.");
  reduction(c, "max", &Tensor::max, R"(The largest over the axes, or of all; NaN wins.

>>> Tensor([[1, 9], [3, 4]]).max(axis=1).tolist()
[9, 4]
)");
  reduction(c, "min", &Tensor::min, "The smallest over the axes, or of all; NaN wins.");
  reduction(c, "mean", &Tensor::mean, "The mean over the axes, or of all; a float.");
  reduction(c, "any", &Tensor::any, "Whether any element is not 0.");
  reduction(c, "all", &Tensor::all, "Whether no element is 0.");
  reduction(c, "logsumexp", &Tensor::logsumexp, R"(log(sum(exp(x))), without overflow.

>>> Tensor([1000.0, 1000.0]).logsumexp().item() - 1000
0.69317626953125
)");
  place(c, "argmax", &Tensor::argmax, R"(The first place of the largest element along the axis, or
of the flat tensor; that of NaN where there is one.

>>> Tensor([[1, 5, 5], [7, 0, 2]]).argmax(axis=1).tolist(), Tensor([3, 9]).argmax().item()
([1, 0], 1)
)");
  place(c, "argmin", &Tensor::argmin, "The first place of the smallest element; see argmax.");
  spread(
      c, "var", &Tensor::var,
      R"(The variance: squares of the distances to the mean, over their count less the correction.

>>> Tensor([1.0, 2.0, 3.0]).var().item(), Tensor([1.0, 3.0]).var(correction=0).item()
(1.0, 1.0)
)");
  spread(c, "std", &Tensor::std, "The square root of the variance.");
  spread(c, "var_mean", &Tensor::var_mean, "The variance and the mean.");
  spread(c, "std_mean", &Tensor::std_mean, "The square root of the variance, and the mean.");
  c.def("matmul", product, nb::arg("x"), nb::arg("reverse") = false, nb::arg("dtype") = nb::none(),
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
