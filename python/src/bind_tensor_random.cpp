// Tensor's random numbers.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "tensor.h"
#include "tensor/promote.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::python {
namespace {

using Device = std::optional<std::string>;
using Make = Tensor (*)(Ints, DType, std::string_view);
using MakeWithSlope = Tensor (*)(Ints, double, DType, std::string_view);
using MakeBetween = Tensor (*)(Ints, double, double, DType, std::string_view);

DType dtype_or_float(nb::handle value) {
  return optional_dtype_of(value).value_or(default_float());
}

std::string signature(const char* name, const char* more) {
  return fmt::format(
      "def {}(*shape: {}, {}device: str | None = None, dtype: {} = None, contiguous: bool = True, "
      "requires_grad: bool | None = None) -> Tensor",
      name, WEFT_SIZES, more, WEFT_DTYPE);
}

void by_shape(TensorClass& c, const char* name, Make make, const char* doc) {
  c.def_static(
      name,
      [name, make](const nb::args& shape, const Device& device, nb::handle dtype, bool,
                   std::optional<bool> requires_grad) {
        return made(make(shape_of(shape, name), dtype_or_float(dtype), device.value_or("")),
                    requires_grad);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("device") = nb::none(),
      nb::arg("dtype") = nb::none(), nb::arg("contiguous") = true,
      nb::arg("requires_grad") = nb::none(), nb::sig(signature(name, "").c_str()), doc);
}

void by_slope(TensorClass& c, const char* name, MakeWithSlope make, const char* doc) {
  c.def_static(
      name,
      [name, make](const nb::args& shape, double a, const Device& device, nb::handle dtype, bool,
                   std::optional<bool> requires_grad) {
        return made(make(shape_of(shape, name), a, dtype_or_float(dtype), device.value_or("")),
                    requires_grad);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("a") = 0.01, nb::arg("device") = nb::none(),
      nb::arg("dtype") = nb::none(), nb::arg("contiguous") = true,
      nb::arg("requires_grad") = nb::none(), nb::sig(signature(name, "a: float = 0.01, ").c_str()),
      doc);
}

void by_two(TensorClass& c, const char* name, const char* first, double first_default,
            const char* second, double second_default, MakeBetween make, const char* doc) {
  const std::string more = fmt::format("{}: float = {:.1f}, {}: float = {:.1f}, ", first,
                                       first_default, second, second_default);
  c.def_static(
      name,
      [name, make](const nb::args& shape, double x, double y, const Device& device,
                   nb::handle dtype, bool, std::optional<bool> requires_grad) {
        return made(make(shape_of(shape, name), x, y, dtype_or_float(dtype), device.value_or("")),
                    requires_grad);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg(first) = first_default,
      nb::arg(second) = second_default, nb::arg("device") = nb::none(),
      nb::arg("dtype") = nb::none(), nb::arg("contiguous") = true,
      nb::arg("requires_grad") = nb::none(), nb::sig(signature(name, more.c_str()).c_str()), doc);
}

using Like = Tensor (Tensor::*)(std::optional<DType>, std::string_view) const;

void like(TensorClass& c, const char* name, Like make, const char* doc) {
  const std::string text = fmt::format(
      "def {}(self, dtype: {} = None, device: str | None = None, contiguous: bool = True, "
      "requires_grad: bool | None = None) -> Tensor",
      name, WEFT_DTYPE);
  c.def(
      name,
      [make](const Tensor& x, nb::handle dtype, const Device& device, bool,
             std::optional<bool> requires_grad) {
        return made((x.*make)(optional_dtype_of(dtype), device.value_or("")), requires_grad);
      },
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("contiguous") = true,
      nb::arg("requires_grad") = nb::none(), nb::sig(text.c_str()), doc);
}

// with Tensor.train(): the flag as it was afterwards.
struct Training {
  bool wanted;
  bool before = false;
};

void bind_training(TensorClass& c) {
  nb::class_<Training>(c, "train", "with Tensor.train(): Tensor.training is True (or `mode`).")
      .def(
          "__call__",
          [](nb::handle_t<Training> self, nb::handle function) {
            return nb::module_::import_("weft._grad").attr("within")(self, function);
          },
          nb::arg("function"),
          nb::sig("def __call__(self, function: collections.abc.Callable[..., typing.Any]) -> "
                  "collections.abc.Callable[..., typing.Any]"),
          "As a decorator.")
      .def(
          "__init__", [](Training* self, bool mode) { new (self) Training{mode}; },
          nb::arg("mode") = true)
      .def("__enter__",
           [](Training& t) {
             t.before = Tensor::is_training();
             Tensor::set_training(t.wanted);
           })
      .def(
          "__exit__", [](Training& t, const nb::args&) { Tensor::set_training(t.before); },
          nb::arg("args"), nb::sig("def __exit__(self, *args: object) -> None"));
  c.def_prop_rw_static(
      "training", [](nb::handle) { return Tensor::is_training(); },
      [](nb::handle, bool value) { Tensor::set_training(value); },
      "Whether programs train: dropout does something then.");
  c.def("dropout", &Tensor::dropout, nb::arg("p") = 0.5,
        R"(While Tensor.training: 0 with probability p, else over 1 - p. Itself otherwise.

>>> Tensor.manual_seed(1)
>>> x = Tensor.ones(8)
>>> with Tensor.train():
...     x.dropout(0.5).tolist()
[2.0, 0.0, 2.0, 2.0, 2.0, 0.0, 2.0, 2.0]
>>> x.dropout(0.5) is x or x.dropout(0.5).shares_memory_with(x)
True
)");
}

void bind_state(TensorClass& c) {
  c.def_static(
       "manual_seed", &Tensor::manual_seed, nb::arg("seed") = 0,
       R"(The generators of all devices begin anew; one seed gives the same numbers everywhere.

>>> Tensor.manual_seed(42)
>>> a = Tensor.rand(3).tolist()
>>> Tensor.manual_seed(42)
>>> a == Tensor.rand(3).tolist(), a == Tensor.rand(3).tolist()
(True, False)
)")
      .def_static(
          "get_rng_state",
          [](const Device& device) { return Tensor::get_rng_state(device.value_or("")); },
          nb::arg("device") = nb::none(),
          "A copy of the state of a device's generator: its key and its counter.")
      .def_static(
          "set_rng_state",
          [](const Tensor& state, const Device& device) {
            Tensor::set_rng_state(state, device.value_or(""));
          },
          nb::arg("state"), nb::arg("device") = nb::none(),
          R"(Goes on from a state that get_rng_state gave.

>>> state = Tensor.get_rng_state()
>>> a = Tensor.randn(2).tolist()
>>> Tensor.set_rng_state(state)
>>> a == Tensor.randn(2).tolist()
True
)");
}

}  // namespace

void bind_tensor_random(TensorClass& c) {
  bind_state(c);
  by_shape(c, "rand", Tensor::rand,
           R"(Uniform in [0, 1): multiples of 2**-24 (float32), 2**-53 (float64).

>>> x = Tensor.rand(1000)
>>> x.shape, bool((x >= 0).all()), bool((x < 1).all())
((1000,), True, True)
)");
  by_shape(c, "randn", Tensor::randn, "Normal, of mean 0 and variance 1.");
  by_shape(c, "scaled_uniform", Tensor::scaled_uniform,
           "Uniform from -1 to 1, over the square root of the number of elements.");
  by_shape(c, "glorot_uniform", Tensor::glorot_uniform,
           "Uniform within sqrt(6 / (shape[0] + the product of the others)) of 0.");
  by_slope(c, "kaiming_uniform", Tensor::kaiming_uniform,
           "Uniform within sqrt(6 / (1 + a*a) / inputs) of 0; inputs are all axes but the first.");
  by_slope(c, "kaiming_normal", Tensor::kaiming_normal,
           "Normal, of variance 2 / (1 + a*a) / inputs; inputs are all axes but the first.");
  by_two(c, "uniform", "low", 0.0, "high", 1.0, Tensor::uniform,
         "Uniform from low to high, which stays out; integers are rounded down.");
  by_two(c, "normal", "mean", 0.0, "std", 1.0, Tensor::normal,
         "Normal, with this mean and standard deviation.");
  like(c, "rand_like", &Tensor::rand_like, "rand in this shape, dtype and device.");
  like(c, "randn_like", &Tensor::randn_like, "randn in this shape, dtype and device.");
  c.def_static(
      "randint",
      [](const nb::args& shape, int64_t low, int64_t high, nb::handle dtype, const Device& device,
         bool, std::optional<bool> requires_grad) {
        return made(
            Tensor::randint(shape_of(shape, "randint"), low, high,
                            optional_dtype_of(dtype).value_or(dtypes::int32), device.value_or("")),
            requires_grad);
      },
      nb::arg("shape"), nb::kw_only(), nb::arg("low") = 0, nb::arg("high") = 10,
      nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(), nb::arg("contiguous") = true,
      nb::arg("requires_grad") = nb::none(),
      nb::sig("def randint(*shape: " WEFT_SIZES ", low: int = 0, high: int = 10, dtype: " WEFT_DTYPE
              " = None, device: str | None = None, contiguous: bool = True, requires_grad: bool | "
              "None = None) -> Tensor"),
      R"(Integers from low to high - 1, int32 where no dtype is given.

>>> x = Tensor.randint(100, low=-2, high=3)
>>> x.min().item(), x.max().item()
(-2, 2)
)");
  c.def_static(
       "randperm",
       [](int64_t n, const Device& device, nb::handle dtype, bool) {
         return Tensor::randperm(n, optional_dtype_of(dtype).value_or(dtypes::int32),
                                 device.value_or(""));
       },
       nb::arg("n"), nb::arg("device") = nb::none(), nb::arg("dtype") = nb::none(),
       nb::arg("contiguous") = true,
       nb::sig("def randperm(n: int, device: str | None = None, dtype: " WEFT_DTYPE
               " = None, contiguous: bool = True) -> Tensor"),
       R"(0, 1, ... n - 1 in some order, int32 where no dtype is given.

>>> sorted(Tensor.randperm(5).tolist())
[0, 1, 2, 3, 4]
)")
      .def("multinomial", &Tensor::multinomial, nb::arg("num_samples") = 1,
           nb::arg("replacement") = false,
           R"(Indices of a vector, or of the rows of a matrix, each as likely as its weight: int32.

Without replacement no index comes twice, and at least as many weights are not 0.

>>> Tensor([0.0, 3.0, 0.0]).multinomial(4, replacement=True).tolist()
[1, 1, 1, 1]
>>> sorted(Tensor([[1.0, 0.0, 2.0]]).multinomial(2)[0].tolist())
[0, 2]
)");
  bind_training(c);
}

}  // namespace weft::python
