// What the files of the Python class Tensor share: operands, sizes and dtypes as Python gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.h"
#include "ir/op.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::python {

using TensorClass = nb::class_<Tensor>;

// ---- operands

// The tensor that a handle is; null when it is none.
Tensor* as_tensor(nb::handle value);

// The number that a handle is: bool, int, float, and NumPy's scalars, which are weak too. Throws
// DTypeError for an int past 64 bits.
std::optional<Number> as_number(nb::handle value);

// The same; what is no number raises TypeError that names `what`.
Number number_of(nb::handle value, std::string_view what);

// A tensor of an operand that is neither tensor nor number: a NumPy array.
std::optional<Tensor> as_array(nb::handle value, std::string_view device);

// use(Tensor) or use(Number) of an operand; nothing when it is no operand.
template <class Use>
std::optional<Tensor> with_operand(const Tensor& self, nb::handle value, Use&& use) {
  if (const Tensor* tensor = as_tensor(value)) return use(*tensor);
  if (const std::optional<Number> number = as_number(value)) return use(*number);
  if (const std::optional<Tensor> array = as_array(value, self.device())) return use(*array);
  return {};
}

// The same; what is no operand raises TypeError that names `what`.
[[noreturn]] void no_operand(std::string_view what, nb::handle value);
template <class Use>
Tensor of_operand(const Tensor& self, std::string_view what, nb::handle value, Use&& use) {
  std::optional<Tensor> result = with_operand(self, value, std::forward<Use>(use));
  if (!result) no_operand(what, value);
  return std::move(*result);
}

// A tensor of anything that Tensor(...) takes.
Tensor tensor_of_data(nb::handle data, std::optional<DType> dtype, std::string_view device);

// ---- sizes

// An int; throws TypeError, or ShapeError for one past 64 bits, that names `what`.
int64_t int_of(nb::handle value, std::string_view what);

// f(a, b) and f((a, b)) are the same; `first` and `more` are what a method was given.
std::vector<int64_t> ints_of(nb::handle first, const nb::args& more, std::string_view what);
std::vector<int64_t> shape_of(const nb::args& sizes, std::string_view what);

// None, an int or several.
Axes axes_of(nb::handle value, std::string_view what);

nb::tuple tuple_of_ints(Ints list);

// Ints that say what is asked about them: what a captured function of variables gets for the ints
// that a call with other values would have others for (weft/_variable.py).
void set_watched_int(nb::handle kind);
// The number of one; null for all else.
nb::object number_of_watched(nb::handle value);
// A size that the function asks for: such an int while it is captured.
nb::object size_to_python(int64_t size);
nb::tuple sizes_to_python(Ints sizes);
nb::tuple tuple_of_tensors(std::span<const Tensor> tensors);

// The Tensors of f(a, b) and f((a, b)); of a method that has a first one, a.f(b) and a.f((b, c)).
std::vector<Tensor> tensors_of(const nb::args& args, std::string_view what);
std::vector<Tensor> tensors_of(nb::handle first, const nb::args& more, std::string_view what);

// ---- dtypes: a DType, a name, or None
DType dtype_of(nb::handle value);
std::optional<DType> optional_dtype_of(nb::handle value);

// A new tensor: it requires gradients, or does not, or nothing is said about that.
Tensor made(Tensor tensor, std::optional<bool> requires_grad);

// ---- the parts of the class, one per file

TensorClass bind_tensor(nb::module_& m);
void bind_tensor_creation(TensorClass& c);
void bind_tensor_elementwise(TensorClass& c);
void bind_tensor_functions(TensorClass& c);
void bind_tensor_activation(TensorClass& c);
void bind_tensor_reduce(TensorClass& c);
void bind_tensor_order(TensorClass& c);
void bind_tensor_loss(TensorClass& c);
void bind_tensor_movement(TensorClass& c);
void bind_tensor_gradient(nb::module_& m, TensorClass& c);
void bind_tensor_index(TensorClass& c);
void bind_tensor_scatter(TensorClass& c);
void bind_tensor_values(nb::module_& m, TensorClass& c);
void bind_tensor_protocol(nb::module_& m, TensorClass& c);
PyType_Slot* tensor_slots();  // of the buffer protocol, for bind_tensor
void bind_tensor_shapes(TensorClass& c);
void bind_tensor_random(TensorClass& c);
void bind_tensor_products(TensorClass& c);
void bind_tensor_windows(TensorClass& c);
void bind_dlpack(nb::module_& m, TensorClass& c);

// Types of stubs.
#define WEFT_NUMBER "int | float"
#define WEFT_OPERAND "Tensor | int | float | NDArray[typing.Any]"
#define WEFT_FOREIGN "int | float | NDArray[typing.Any]"
#define WEFT_DTYPE "DType | str | None"
#define WEFT_AXES "int | collections.abc.Sequence[int] | None"
#define WEFT_KEY                                                                                 \
  "int | slice | types.EllipsisType | None | Tensor | NDArray[typing.Any] | list[typing.Any] | " \
  "tuple[typing.Any, ...]"
#define WEFT_SIZES "int | collections.abc.Sequence[int]"

}  // namespace weft::python
