// Tensor's products by formula, batch normalisation, attention and decompositions.
#include <optional>
#include <string_view>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include "tensor.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

std::optional<Tensor> optional_tensor_of(nb::handle value, const Tensor& like,
                                         std::string_view what) {
  if (value.is_none()) return {};
  if (const Tensor* tensor = as_tensor(value)) return *tensor;
  if (std::optional<Tensor> array = as_array(value, like.device())) return array;
  no_operand(what, value);
}

Tensor tensor_from(nb::handle value, const Tensor& like, std::string_view what) {
  std::optional<Tensor> tensor = optional_tensor_of(value, like, what);
  if (!tensor) no_operand(what, value);
  return *tensor;
}

Tensor linear(const Tensor& x, nb::handle weight, nb::handle bias, nb::handle dtype) {
  return x.linear(tensor_from(weight, x, "linear"), optional_tensor_of(bias, x, "linear"),
                  optional_dtype_of(dtype));
}

Tensor batchnorm(const Tensor& x, nb::handle weight, nb::handle bias, const Tensor& mean,
                 const Tensor& invstd, nb::handle axis) {
  return x.batchnorm(optional_tensor_of(weight, x, "batchnorm"),
                     optional_tensor_of(bias, x, "batchnorm"), mean, invstd,
                     *axes_of(axis, "batchnorm"));
}

Tensor attention(const Tensor& x, const Tensor& key, const Tensor& value, nb::handle mask,
                 double dropout_p, bool is_causal, bool enable_gqa) {
  return x.scaled_dot_product_attention(
      key, value,
      {.mask = optional_tensor_of(mask, x, "scaled_dot_product_attention"),
       .dropout_p = dropout_p,
       .is_causal = is_causal,
       .enable_gqa = enable_gqa});
}

nb::tuple qr(const Tensor& x, std::string_view mode) {
  if (mode != "complete" && mode != "reduced") {
    throw ShapeError("[qr] modes are 'complete' and 'reduced'");
  }
  const auto [q, r] =
      x.qr(mode == "reduced" ? Tensor::QrMode::kReduced : Tensor::QrMode::kComplete);
  return nb::make_tuple(q, r);
}

}  // namespace

void bind_tensor_products(TensorClass& c) {
  c.def_static(
       "einsum",
       [](std::string_view formula, const nb::args& operands, nb::handle dtype) {
         return Tensor::einsum(formula, tensors_of(operands, "einsum"), optional_dtype_of(dtype));
       },
       nb::arg("formula"), nb::arg("operands"), nb::kw_only(), nb::arg("dtype") = nb::none(),
       nb::sig(
           "def einsum(formula: str, *operands: Tensor | collections.abc.Sequence[Tensor], dtype: "
           "" WEFT_DTYPE " = None) -> Tensor"),
       R"(Products by index, summed over the indices that the result does not have.

Operands are multiplied from the left to the right, and each index is summed as soon as no later
operand has it. An index twice in one operand is its diagonal; '...' are axes that broadcast. In
`dtype`, where one is given.

>>> a, b = Tensor([[1, 2], [3, 4]]), Tensor([[5, 6], [7, 8]])
>>> Tensor.einsum("ij,jk->ik", a, b).tolist(), Tensor.einsum("ii->i", a).tolist()
([[19, 22], [43, 50]], [1, 4])
)")
      .def("linear", linear, nb::arg("weight"), nb::arg("bias") = nb::none(),
           nb::arg("dtype") = nb::none(),
           nb::sig("def linear(self, weight: Tensor, bias: Tensor | None = None, dtype: " WEFT_DTYPE
                   " = None) -> Tensor"),
           R"(self @ weight + bias: the weight is (inputs, outputs), as in tinygrad and not as in
torch.nn.functional.linear. A weight with one axis is multiplied element by element.

>>> Tensor([[1, 2]]).linear(Tensor([[1, 2, 3], [4, 5, 6]]), Tensor([10, 10, 10])).tolist()
[[19, 22, 25]]
)")
      .def("batchnorm", batchnorm, nb::arg("weight").none(), nb::arg("bias").none(),
           nb::arg("mean"), nb::arg("invstd"), nb::arg("axis") = 1,
           nb::sig("def batchnorm(self, weight: Tensor | None, bias: Tensor | None, mean: Tensor, "
                   "invstd: Tensor, axis: " WEFT_SIZES " = 1) -> Tensor"),
           R"((self - mean) * invstd * weight + bias, whose axes are those in `axis`.

>>> x = Tensor([[1.0, 10.0], [3.0, 30.0]])
>>> mean, invstd = x.mean(0), x.var(0, correction=0).rsqrt()
>>> x.batchnorm(None, Tensor([0.0, 5.0]), mean, invstd).tolist()
[[-1.0, 4.0], [1.0, 6.0]]
)")
      .def("scaled_dot_product_attention", attention, nb::arg("key"), nb::arg("value"),
           nb::arg("attn_mask") = nb::none(), nb::arg("dropout_p") = 0.0,
           nb::arg("is_causal") = false, nb::arg("enable_gqa") = false,
           nb::sig("def scaled_dot_product_attention(self, key: Tensor, value: Tensor, attn_mask: "
                   "Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False, "
                   "enable_gqa: bool = False) -> Tensor"),
           R"(softmax(self @ key.T / sqrt(size)) @ value, over the last two axes.

A bool mask says what takes part, any other is added to the scores; a query that nothing is left of
gives 0. With `enable_gqa` axis -3 of keys and values is repeated to fit the queries. `dropout_p`
does something while Tensor.training.

>>> q = Tensor.zeros(2, 4)
>>> v = Tensor([[1.0], [3.0]])
>>> q.scaled_dot_product_attention(q, v).tolist()
[[2.0], [2.0]]
>>> q.scaled_dot_product_attention(q, v, is_causal=True).tolist()
[[1.0], [2.0]]
)")
      .def(
          "qr", qr, nb::arg("mode") = "complete",
          nb::sig("def qr(self, mode: str = 'complete') -> tuple[Tensor, Tensor]"),
          R"(Q, orthogonal, and R, upper triangular, with Q @ R == self: by Householder reflections.

Of (..., m, n) Q is (m, m) and R (m, n); 'reduced', as PyTorch's default, leaves min(m, n) columns
of Q and rows of R.

>>> q, r = Tensor([[3.0, 1.0], [4.0, 2.0]]).qr()
>>> (q @ r).round().tolist(), r.tril(-1).abs().max().item() < 1e-6
([[3.0, 1.0], [4.0, 2.0]], True)
)")
      .def(
          "svd",
          [](const Tensor& x, bool full_matrices) {
            const Tensor::Svd parts = x.svd(full_matrices);
            return nb::make_tuple(parts.u, parts.s, parts.vt);
          },
          nb::arg("full_matrices") = true,
          nb::sig("def svd(self, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]"),
          R"(U, S, V^T with U @ diag(S) @ V^T == self, S descending: by rotations of pairs of columns.

>>> u, s, vt = Tensor([[3.0, 0.0], [0.0, -5.0]]).svd()
>>> s.round().tolist(), (u @ s.diag() @ vt).round().tolist()
([5.0, 3.0], [[3.0, 0.0], [0.0, -5.0]])
)");
}

}  // namespace weft::python
