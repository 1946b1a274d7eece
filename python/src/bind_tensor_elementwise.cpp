// Tensor's operators: Python's, reflected and in place, and the methods that are named for them.
#include <array>
#include <cmath>
#include <cstdint>
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

bool has_nan(const Tensor& x) { return x.dtype().is_float(); }
bool has_nan(Number x) { return std::holds_alternative<double>(x); }

// x < y with either a number
Tensor less(const Tensor& x, const Tensor& y) { return x.binary(Op::CMPLT, y); }
Tensor less(const Tensor& x, Number y) { return x.binary(Op::CMPLT, y); }
Tensor less(Number x, const Tensor& y) { return y.reverse_binary(Op::CMPLT, x); }

struct Greater {
  template <class Y>
  static Tensor left(const Tensor& x, const Y& y) {
    return less(y, x);
  }
};
struct AtMost {
  template <class Y>
  static Tensor left(const Tensor& x, const Y& y) {
    // not (y < x) would hold with NaN
    if (!has_nan(x) && !has_nan(y)) return less(y, x).unary(Op::NOT);
    return less(x, y).binary(Op::OR, x.binary(Op::CMPEQ, y));
  }
};
struct AtLeast {
  template <class Y>
  static Tensor left(const Tensor& x, const Y& y) {
    if (!has_nan(x) && !has_nan(y)) return less(x, y).unary(Op::NOT);
    return less(y, x).binary(Op::OR, x.binary(Op::CMPEQ, y));
  }
};

double double_of(Number n) {
  return std::visit([](auto x) { return double(x); }, n);
}

// x * x * ..., by squaring
Tensor whole_power(const Tensor& x, uint64_t n) {
  std::optional<Tensor> result;
  for (Tensor square = x; n != 0; n >>= 1) {
    if (n & 1) result = result ? result->mul(square) : square;
    if (n > 1) square = square.mul(square);
  }
  return result ? *result : Tensor::full(x.shape(), int64_t(1), x.dtype(), x.device());
}

struct Power {
  static Tensor left(const Tensor& x, const Tensor& y) {
    throw DTypeError(
        fmt::format("[pow] the exponent is a number, not a Tensor of {}: x ** y is "
                    "(x.log2() * y).exp2() where x is positive",
                    y.shape().size() == 0 ? "one element" : x.dtype().name()));
  }
  static Tensor left(const Tensor& x, Number y) { return power(x, y); }
  static Tensor right(const Tensor& x, Number base) {
    const double b = double_of(base);
    if (!(b > 0)) {
      throw DTypeError(
          fmt::format("[pow] {} to the power of a Tensor: the base must be positive", b));
    }
    const Tensor exponent = x.dtype().is_float() ? x : x.cast(dtypes::float32);
    const Tensor result = exponent.mul(std::log2(b)).unary(Op::EXP2);
    const bool is_whole = !has_nan(base) && !x.dtype().is_float();
    return is_whole ? result.unary(Op::ROUND).cast(x.dtype()) : result;
  }
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
  return method<Operation>(x, other, false);
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
  if (mode == "floor") return method<Binary<Op::IDIV>>(x, other, reverse);
  if (mode && mode != "trunc") {
    throw DTypeError(
        fmt::format("[div] rounding_mode is None, 'trunc' or 'floor', not '{}'", *mode));
  }
  if (!mode) return method<Binary<Op::FDIV>>(x, other, reverse);
  const bool is_whole = !x.dtype().is_float() && !PyFloat_Check(other.ptr()) &&
                        (as_tensor(other) == nullptr || !as_tensor(other)->dtype().is_float());
  if (is_whole) return method<Binary<Op::CDIV>>(x, other, reverse);
  return method<Binary<Op::FDIV>>(x, other, reverse).unary(Op::TRUNC);
}

}  // namespace

Tensor power(const Tensor& x, Number y) {
  const double n = double_of(y);
  constexpr double most = 1024;
  const bool is_whole = n == std::floor(n) && std::abs(n) <= most;
  if (!x.dtype().is_float()) {
    if (has_nan(y)) return power(x.cast(dtypes::float32), y);
    if (n < 0)
      throw DTypeError("[pow] an integer to a negative power is none: cast to a float first");
  }
  if (is_whole && n == 1) return x.clone();
  if (is_whole && n >= 0) return whole_power(x, uint64_t(n));
  if (is_whole) return whole_power(x, uint64_t(-n)).unary(Op::RECIP);
  if (n == 0.5) return x.unary(Op::SQRT);
  if (!x.dtype().is_float()) {
    throw DTypeError(fmt::format("[pow] the exponent is {}, at most {}", n, most));
  }
  return x.unary(Op::LOG2).mul(n).unary(Op::EXP2);
}

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
  comparison_of<Greater>(c, "gt");
  comparison_of<AtMost>(c, "le");
  comparison_of<AtLeast>(c, "ge");
  comparison_of<Binary<Op::CMPEQ>>(c, "eq");
  comparison_of<Binary<Op::CMPNE>>(c, "ne");

  method_of<Binary<Op::ADD>>(c, "add", R"(self + x; x + self with reverse.

>>> Tensor([1, 2]).add(Tensor([[10], [20]])).tolist()
[[11, 12], [21, 22]]
)");
  method_of<Binary<Op::SUB>>(c, "sub", "self - x; x - self with reverse.");
  method_of<Binary<Op::MUL>>(c, "mul", "self * x.");
  method_of<Binary<Op::MOD>>(c, "mod", "self % x, with the sign of x; x % self with reverse.");
  method_of<Power>(c, "pow", R"(self ** x, for a number x; x ** self with reverse.

>>> Tensor([1, 2, 3]).pow(2).tolist(), (Tensor([4.0]) ** 0.5).item()
([1, 4, 9], 2.0)
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
