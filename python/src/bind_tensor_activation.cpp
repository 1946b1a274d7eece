// Tensor's activations.
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "tensor.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

Tensor gelu(const Tensor& x, const std::string& approximate) {
  if (approximate == "tanh") return x.gelu(Gelu::kTanh);
  if (approximate == "none") return x.gelu(Gelu::kErf);
  const std::string text =
      fmt::format("[gelu] approximate is 'tanh' or 'none', not '{}'", approximate);
  throw nb::value_error(text.c_str());
}

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw nb::value_error("[celu] alpha is 0; it divides, and so is any other");
  return x.celu(alpha);
}

using Along = Tensor (Tensor::*)(int64_t, std::optional<DType>) const;
void along(TensorClass& c, const char* name, Along function, const char* doc) {
  const std::string text =
      fmt::format("def {}(self, axis: int = -1, dtype: {} = None) -> Tensor", name, WEFT_DTYPE);
  c.def(
      name,
      [function](const Tensor& x, int64_t axis, nb::handle dtype) {
        return (x.*function)(axis, optional_dtype_of(dtype));
      },
      nb::arg("axis") = -1, nb::arg("dtype") = nb::none(), nb::sig(text.c_str()), doc);
}

void bind_along_axes(TensorClass& c) {
  along(c, "softmax", &Tensor::softmax, R"(exp(x) over its sum along the axis.

>>> Tensor([1.0, 1.0]).softmax().tolist()
[0.5, 0.5]
)");
  along(c, "softmin", &Tensor::softmin, "softmax of -x.");
  along(c, "log_softmax", &Tensor::log_softmax, "The logarithm of softmax.");
  c.def(
       "layernorm",
       [](const Tensor& x, nb::handle axis, double eps) {
         return x.layernorm(axes_of(axis, "layernorm"), eps);
       },
       nb::arg("axis") = -1, nb::arg("eps") = 1e-5,
       nb::sig("def layernorm(self, axis: " WEFT_SIZES " = -1, eps: float = 1e-5) -> Tensor"),
       R"(Mean 0 and variance 1 along the axes.

>>> Tensor([1.0, 3.0]).layernorm().round().tolist()
[-1.0, 1.0]
)")
      .def("normalize", &Tensor::normalize, nb::arg("p") = 2.0, nb::arg("dim") = 1,
           nb::arg("eps") = 1e-12, R"(x over its p-norm along the axis, which is at least eps.

>>> Tensor([[3.0, 4.0]]).normalize(p=1).tolist()
[[0.4285714328289032, 0.5714285969734192]]
)");
}

}  // namespace

void bind_tensor_activation(TensorClass& c) {
  c.def("relu", &Tensor::relu, "max(x, 0).")
      .def("relu6", &Tensor::relu6, "min(max(x, 0), 6).")
      .def("leaky_relu", &Tensor::leaky_relu, nb::arg("neg_slope") = 0.01,
           R"(x where it is positive, else neg_slope * x.

>>> Tensor([-2.0, 3.0]).leaky_relu(0.5).tolist()
[-1.0, 3.0]
)")
      .def("elu", &Tensor::elu, nb::arg("alpha") = 1.0,
           "x where it is positive, else alpha * (exp(x) - 1).")
      .def("celu", celu, nb::arg("alpha") = 1.0,
           "x where it is positive, else alpha * (exp(x / alpha) - 1).")
      .def("selu", &Tensor::selu, nb::arg("alpha") = 1.67326, nb::arg("gamma") = 1.0507,
           "gamma * elu(x, alpha).")
      .def(
          "gelu", gelu, nb::arg("approximate") = "tanh",
          nb::sig("def gelu(self, approximate: str = 'tanh') -> Tensor"),
          R"(x times the normal distribution up to x, by its approximation with tanh or, with "none",
by erf.

>>> Tensor([0.0, 1.0]).gelu().tolist(), Tensor([1.0]).gelu("none").tolist()
([0.0, 0.8411920070648193], [0.8413447141647339])
)")
      .def("quick_gelu", &Tensor::quick_gelu, "x * sigmoid(1.702 * x).")
      .def("silu", &Tensor::silu, "x * sigmoid(x).")
      .def("swish", &Tensor::swish, "silu by its other name.")
      .def("mish", &Tensor::mish, "x * tanh(softplus(x)).")
      .def("sigmoid", &Tensor::sigmoid, R"(1 / (1 + exp(-x)).

>>> Tensor([0]).sigmoid().item()
0.5
)")
      .def("logsigmoid", &Tensor::logsigmoid, "log(sigmoid(x)).")
      .def("softplus", &Tensor::softplus, nb::arg("beta") = 1.0, "log(1 + exp(beta * x)) / beta.")
      .def("softsign", &Tensor::softsign, "x / (1 + |x|).")
      .def("hardsigmoid", &Tensor::hardsigmoid, nb::arg("alpha") = 1.0 / 6, nb::arg("beta") = 0.5,
           "alpha * x + beta, from 0 to 1.")
      .def("hardswish", &Tensor::hardswish, "x * relu6(x + 3) / 6.")
      .def("hardtanh", &Tensor::hardtanh, nb::arg("min_val") = -1, nb::arg("max_val") = 1,
           "x between both.");
  bind_along_axes(c);
}

}  // namespace weft::python
