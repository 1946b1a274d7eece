// Tensor's cumulative functions and sorting.
#include <cstdint>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "tensor.h"
#include "weft/tensor.h"

namespace weft::python {

void bind_tensor_order(TensorClass& c) {
  c.def("cumsum", &Tensor::cumsum, nb::arg("axis") = 0,
        R"(Sums of the elements so far along the axis.

>>> Tensor([1, 2, 3]).cumsum().tolist()
[1, 3, 6]
)")
      .def("cumprod", &Tensor::cumprod, nb::arg("axis"),
           "Products of the elements so far along the axis.")
      .def("cummax", &Tensor::cummax, nb::arg("axis") = 0,
           R"(The largest element so far along the axis, and its last place.

>>> values, places = Tensor([1, 5, 2, 5]).cummax()
>>> values.tolist(), places.tolist()
([1, 5, 5, 5], [0, 1, 1, 3])
)")
      .def("cummin", &Tensor::cummin, nb::arg("axis") = 0,
           "The smallest element so far along the axis, and its last place.")
      .def("logcumsumexp", &Tensor::logcumsumexp, nb::arg("axis") = 0,
           "The logarithm of sums of exp(x) so far along the axis.")
      .def("sort", &Tensor::sort, nb::arg("dim") = -1, nb::arg("descending") = false,
           R"(The elements in order, and the places that they were at. Equal ones stay in order, NaN
is larger than all.

>>> values, places = Tensor([3, 1, 2]).sort()
>>> values.tolist(), places.tolist()
([1, 2, 3], [1, 2, 0])
)")
      .def("argsort", &Tensor::argsort, nb::arg("dim") = -1, nb::arg("descending") = false,
           "The places of sort.")
      .def(
          "topk",
          [](const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
            return x.topk(k, dim, largest);
          },
          nb::arg("k"), nb::arg("dim") = -1, nb::arg("largest") = true, nb::arg("sorted_") = true,
          nb::sig("def topk(self, k: int, dim: int = -1, largest: bool = True, "
                  "sorted_: bool = True) -> tuple[Tensor, Tensor]"),
          R"(The k largest or smallest elements in order, and their places.

>>> values, places = Tensor([3, 1, 2]).topk(2)
>>> values.tolist(), places.tolist()
([3, 2], [0, 2])
)");
}

}  // namespace weft::python
