// Tensor's losses.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "tensor.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

Reduction reduction_of(const char* what, const std::string& name) {
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  if (name == "none") return Reduction::kNone;
  const std::string text =
      fmt::format("[{}] reduction is 'mean', 'sum' or 'none', not '{}'", what, name);
  throw nb::value_error(text.c_str());
}

#define WEFT_REDUCTION "reduction: str = 'mean'"

void bind_binary(TensorClass& c) {
  c.def(
       "binary_crossentropy",
       [](const Tensor& x, const Tensor& y, const std::string& reduction) {
         return x.binary_crossentropy(y, reduction_of("binary_crossentropy", reduction));
       },
       nb::arg("Y"), nb::arg("reduction") = "mean",
       nb::sig("def binary_crossentropy(self, Y: Tensor, " WEFT_REDUCTION ") -> Tensor"),
       R"(-(Y log(x) + (1 - Y) log(1 - x)) for probabilities x.

>>> Tensor([0.5, 0.5]).binary_crossentropy(Tensor([0.0, 1.0])).item()
0.6931471824645996
)")
      .def(
          "binary_crossentropy_logits",
          [](const Tensor& x, const Tensor& y, const std::string& reduction,
             std::optional<Tensor> pos_weight) {
            return x.binary_crossentropy_logits(
                y, reduction_of("binary_crossentropy_logits", reduction), std::move(pos_weight));
          },
          nb::arg("Y"), nb::arg("reduction") = "mean", nb::arg("pos_weight") = nb::none(),
          nb::sig("def binary_crossentropy_logits(self, Y: Tensor, " WEFT_REDUCTION
                  ", pos_weight: Tensor | None = None) -> Tensor"),
          "binary_crossentropy of sigmoid(x); what is true counts pos_weight times.");
}

void bind_of_classes(TensorClass& c) {
  c.def(
       "cross_entropy",
       [](const Tensor& x, const Tensor& y, const std::string& reduction, double smoothing) {
         return x.cross_entropy(y, reduction_of("cross_entropy", reduction), smoothing);
       },
       nb::arg("Y"), nb::arg("reduction") = "mean", nb::arg("label_smoothing") = 0.0,
       nb::sig("def cross_entropy(self, Y: Tensor, " WEFT_REDUCTION
               ", label_smoothing: float = 0.0) -> Tensor"),
       R"(-log of softmax(x) along axis 1 at the classes Y, or weighted by the probabilities Y. Rows of
class -100 count nothing.

>>> Tensor([[2.0, 2.0]]).cross_entropy(Tensor([1])).item()
0.6931471824645996
)")
      .def(
          "nll_loss",
          [](const Tensor& x, const Tensor& y, std::optional<Tensor> weight,
             std::optional<int64_t> ignore_index, const std::string& reduction) {
            return x.nll_loss(y, std::move(weight), ignore_index,
                              reduction_of("nll_loss", reduction));
          },
          nb::arg("Y"), nb::arg("weight") = nb::none(), nb::arg("ignore_index") = nb::none(),
          nb::arg("reduction") = "mean",
          nb::sig("def nll_loss(self, Y: Tensor, weight: Tensor | None = None, "
                  "ignore_index: int | None = None, " WEFT_REDUCTION ") -> Tensor"),
          R"(-x at the classes Y, for log-probabilities x along axis 1; a mean is over the weights.

>>> Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([1, 0])).item()
2.5
)")
      .def(
          "sparse_categorical_crossentropy",
          [](const Tensor& x, const Tensor& y, int64_t ignore_index, double smoothing,
             const std::string& reduction) {
            return x.sparse_categorical_crossentropy(
                y, ignore_index, smoothing,
                reduction_of("sparse_categorical_crossentropy", reduction));
          },
          nb::arg("Y"), nb::arg("ignore_index") = -1, nb::arg("label_smoothing") = 0.0,
          nb::arg("reduction") = "mean",
          nb::sig("def sparse_categorical_crossentropy(self, Y: Tensor, ignore_index: int = -1, "
                  "label_smoothing: float = 0.0, " WEFT_REDUCTION ") -> Tensor"),
          R"(-log of softmax(x) along the last axis at the classes Y; rows of class ignore_index count
nothing.

>>> Tensor([[2.0, 2.0]]).sparse_categorical_crossentropy(Tensor([1])).item()
0.6931471824645996
)");
}

}  // namespace

void bind_tensor_loss(TensorClass& c) {
  bind_binary(c);
  bind_of_classes(c);
}

}  // namespace weft::python
