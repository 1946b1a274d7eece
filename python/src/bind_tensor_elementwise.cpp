// Tensor's operators: Python's, reflected and in place, and the methods that are named for them.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "ir/op.h"
#include "tensor.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/tensor.h"

namespace weft::python {
namespace {

// Each has left(x, y), with y a Tensor or a Number, and right(x, Number y), which is y op x.
template <Op op>
struct Binary {
  static Tensor left(const Tensor& x, const Tensor& y) { return x.binary(op, y); }
  static Tensor left(const Tensor& x, Number y) { return x.binary(op, y); }
  static Tensor right(const Tensor& x, Number y) { return x.reverse_binary(op, y); }
  static void update(Tensor& x, const Tensor& y) { x.update(op, y); }
  static void update(Tensor& x, Number y) { x.update(op, y); }
};

// A method of Tensor that takes an operand.
template <Tensor (Tensor::*function)(Operand) const>
struct Method {
  template <class Y>
  static Tensor left(const Tensor& x, const Y& y) {
    return (x.*function)(y);
  }
};

struct Power : Method<&Tensor::pow> {
  static Tensor right(const Tensor& x, Number base) { return x.reverse_pow(base); }
};

struct MatrixProduct {
  static Tensor left(const Tensor& x, const Tensor& y) { return x.matmul(y); }
  static Tensor left(const Tensor&, Number) { throw ShapeError("[matmul] a number is no matrix"); }
  static Tensor right(const Tensor& x, Number y) { return left(x, y); }
};

// ---- how Python calls them. What is no operand is for Python to refuse.

nb::object object_of(std::optional<Tensor>&& result) {
  if (!result) return nb::borrow(Py_NotImplemented);
  return nb::cast(std::move(*result));
}

template <class Operation>
nb::object operate(const Tensor& x, nb::handle other) {
  return object_of(with_operand(x, other, [&](const auto& y) { return Operation::left(x, y); }));
}

template <class Operation>
nb::object reflect(const Tensor& x, nb::handle other) {
  return object_of(with_operand(x, other, [&](const auto& y) -> Tensor {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
      return Operation::left(y, x);
    } else {
      return Operation::right(x, y);
    }
  }));
}

template <class Operation>
nb::object write(nb::handle self, nb::handle other) {
  Tensor& x = *as_tensor(self);
  const std::optional<Tensor> done = with_operand(x, other, [&](const auto& y) -> Tensor {
    if constexpr (requires { Operation::update(x, y); }) {
      Operation::update(x, y);
    } else {
      x.assign(Operation::left(x, y));
    }
    return x;
  });
  return done ? nb::borrow(self) : nb::borrow(Py_NotImplemented);
}

// The method of a name: x.add(y, reverse=False).
template <class Operation>
Tensor method(const Tensor& x, nb::handle other, bool reverse) {
  nb::object result = reverse ? reflect<Operation>(x, other) : operate<Operation>(x, other);
  if (result.is(nb::handle(Py_NotImplemented))) no_operand("operator", other);
  return *as_tensor(result);
}

template <class Operation>
Tensor plain_method(const Tensor& x, nb::handle other) {
  return of_operand(x, "operator", other, [&](const auto& y) { return Operation::left(x, y); });
}

std::string signature(std::string_view name, std::string_view argument,
                      std::string_view rest = "") {
  return fmt::format("def {}(self, {}{}) -> Tensor", name, argument, rest);
}

// x op y, y op x, x op= y
template <class Operation>
void operators_of(TensorClass& c, const std::string& name) {
  constexpr std::string_view operand = "other: " WEFT_OPERAND ", /";
  const std::array names = {"__" + name + "__", "__r" + name + "__", "__i" + name + "__"};
  c.def(names[0].c_str(), operate<Operation>, nb::is_operator(),
        nb::sig(signature(names[0], operand).c_str()));
  c.def(names[1].c_str(), reflect<Operation>, nb::is_operator(),
        nb::sig(signature(names[1], "other: " WEFT_FOREIGN ", /").c_str()));
  c.def(names[2].c_str(), write<Operation>, nb::is_operator(),
        nb::sig(signature(names[2], operand).c_str()));
}

template <class Operation>
void comparison_of(TensorClass& c, const std::string& name) {
  const std::string full = "__" + name + "__";
  c.def(full.c_str(), operate<Operation>, nb::is_operator(),
        nb::sig(signature(full, "other: " WEFT_OPERAND ", /").c_str()));
}

template <class Operation>
void method_of(TensorClass& c, const char* name, const char* doc) {
  c.def(name, method<Operation>, nb::arg("x"), nb::arg("reverse") = false,
        nb::sig(signature(name, "x: " WEFT_OPERAND, ", reverse: bool = False").c_str()), doc);
}

template <class Operation>
void plain_method_of(TensorClass& c, const char* name, const char* doc) {
  c.def(name, plain_method<Operation>, nb::arg("x"),
        nb::sig(signature(name, "x: " WEFT_OPERAND).c_str()), doc);
}

Tensor divide(const Tensor& x, nb::handle other, bool reverse,
              const std::optional<std::string>& mode) {
  if (!mode) return method<Binary<Op::FDIV>>(x, other, reverse);
  if (mode == "floor") return method<Binary<Op::IDIV>>(x, other, reverse);
  if (mode != "trunc") {
    throw DTypeError(
        fmt::format("[div] rounding_mode is None, 'trunc' or 'floor', not '{}'", *mode));
  }
  return of_operand(x, "div", other, [&](const auto& y) {
    if (!reverse) return x.div(y, Rounding::kTowardZero);
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
      return y.div(x, Rounding::kTowardZero);
    } else {
      const bool is_real = x.dtype().is_float() || std::holds_alternative<double>(y);
      return is_real ? x.reverse_binary(Op::FDIV, y).trunc() : x.reverse_binary(Op::CDIV, y);
    }
  });
}

}  // namespace

void bind_tensor_elementwise(TensorClass& c) {
  operators_of<Binary<Op::ADD>>(c, "add");
  operators_of<Binary<Op::SUB>>(c, "sub");
  operators_of<Binary<Op::MUL>>(c, "mul");
  operators_of<Binary<Op::FDIV>>(c, "truediv");
  operators_of<Binary<Op::IDIV>>(c, "floordiv");
  operators_of<Binary<Op::MOD>>(c, "mod");
  operators_of<Binary<Op::AND>>(c, "and");
  operators_of<Binary<Op::OR>>(c, "or");
  operators_of<Binary<Op::XOR>>(c, "xor");
  operators_of<Binary<Op::SHL>>(c, "lshift");
  operators_of<Binary<Op::SHR>>(c, "rshift");
  operators_of<Power>(c, "pow");
  operators_of<MatrixProduct>(c, "matmul");
  comparison_of<Binary<Op::CMPLT>>(c, "lt");
  comparison_of<Method<&Tensor::gt>>(c, "gt");
  comparison_of<Method<&Tensor::le>>(c, "le");
  comparison_of<Method<&Tensor::ge>>(c, "ge");
  comparison_of<Binary<Op::CMPEQ>>(c, "eq");
  comparison_of<Binary<Op::CMPNE>>(c, "ne");

  method_of<Binary<Op::ADD>>(c, "add", R"(self + x; x + self with reverse.

>>> Tensor([1, 2]).add(Tensor([[10], [20]])).tolist()
[[11, 12], [21, 22]]
)");
  method_of<Binary<Op::SUB>>(c, "sub", "self - x; x - self with reverse.");
  method_of<Binary<Op::MUL>>(c, "mul", "self * x.");
  method_of<Binary<Op::MOD>>(c, "mod", "self % x, with the sign of x; x % self with reverse.");
  method_of<Power>(c, "pow", R"(self ** x; x ** self with reverse. Integers stay integers.

>>> Tensor([1, 2, 3]).pow(2).tolist(), (Tensor([4.0]) ** 0.5).item()
([1, 4, 9], 2.0)
>>> (2 ** Tensor([1, 2, 3])).tolist(), (Tensor([-2.0, 4.0]) ** Tensor([3, -1])).tolist()
([2, 4, 8], [-8.0, 0.25])
)");
  method_of<Binary<Op::AND>>(c, "bitwise_and", "self & x.");
  method_of<Binary<Op::OR>>(c, "bitwise_or", "self | x.");
  method_of<Binary<Op::XOR>>(c, "bitwise_xor", "self ^ x.");
  method_of<Binary<Op::SHL>>(c, "lshift", "self << x; 0 where x is negative or past the width.");
  method_of<Binary<Op::SHR>>(c, "rshift", "self >> x; 0 where x is negative or past the width.");
  plain_method_of<Binary<Op::CMPEQ>>(c, "eq", "self == x, element by element.");
  plain_method_of<Binary<Op::CMPNE>>(c, "ne", "self != x, element by element.");
  plain_method_of<Binary<Op::MAX>>(c, "maximum", R"(The larger of self and x; NaN where either is.

>>> Tensor([1, 5]).maximum(3).tolist()
[3, 5]
)");
  plain_method_of<Binary<Op::MIN>>(c, "minimum", "The smaller of self and x; NaN where either is.");
  plain_method_of<Method<&Tensor::fmod>>(c, "fmod", R"(The remainder with the sign of self.

>>> Tensor([7, -7]).fmod(3).tolist(), (Tensor([7, -7]) % 3).tolist()
([1, -1], [1, 2])
)");
  plain_method_of<Method<&Tensor::lt>>(c, "lt", "self < x, element by element.");
  plain_method_of<Method<&Tensor::le>>(c, "le", "self <= x, element by element.");
  plain_method_of<Method<&Tensor::gt>>(c, "gt", "self > x, element by element.");
  plain_method_of<Method<&Tensor::ge>>(c, "ge", "self >= x, element by element.");
  plain_method_of<Method<&Tensor::atan2>>(c, "atan2",
                                          R"(The angle of the point (x, self), from -pi to pi.

>>> Tensor([0.0, 1.0]).atan2(0.0).tolist()
[0.0, 1.5707963705062866]
)");
  plain_method_of<Method<&Tensor::hypot>>(c, "hypot", "The square root of self^2 + x^2.");
  c.def(
      "div", divide, nb::arg("x"), nb::arg("reverse") = false,
      nb::arg("rounding_mode") = nb::none(),
      nb::sig("def div(self, x: " WEFT_OPERAND
              ", reverse: bool = False, rounding_mode: str | None = None) -> Tensor"),
      R"(self / x; x / self with reverse. Integers give a float, unless rounding_mode is "trunc" or
"floor".

>>> Tensor([7, -7]).div(2).tolist(), Tensor([7, -7]).div(2, rounding_mode="trunc").tolist()
([3.5, -3.5], [3, -3])
)");
}

}  // namespace weft::python
