// How a kernel of weft is registered: counted, with weft's errors as PyTorch's, and with PyTorch's
// CPU kernel instead where an operand has a dtype that weft does not compute with, or where a
// tensor that is written has an element of memory more than once.
//
//   TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { native<at::_ops::relu, relu>(m); }
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "convert.h"
#include "counters.h"
#include "fallback.h"
#include "on_cpu.h"

namespace weft::pytorch {

// What is done with operands of other dtypes, complex ones among them.
enum class Others : uint8_t { kFallBack, kGiven };

// Throws what PyTorch throws for the error of weft that is being handled.
[[noreturn]] void throw_as_torch();

namespace detail {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
bool is_other(const T& argument) {
  using A = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<A, at::Tensor>) {
    return argument.defined() && !is_computed(argument.scalar_type());
  } else if constexpr (std::is_same_v<A, at::Scalar>) {
    return argument.isComplex();
  } else if constexpr (std::is_same_v<A, at::ScalarType>) {
    return !is_computed(argument);
  } else if constexpr (kIsOptional<A>) {
    return argument && is_other(*argument);
  } else if constexpr (std::is_same_v<A, at::TensorList> || std::is_same_v<A, at::ITensorListRef>) {
    for (const at::Tensor& t : argument) {
      if (is_other(t)) return true;
    }
    return false;
  } else if constexpr (std::is_same_v<A, c10::List<std::optional<at::Tensor>>>) {
    for (size_t i = 0; i < argument.size(); i++) {
      if (is_other(std::optional<at::Tensor>(argument.get(i)))) return true;
    }
    return false;
  } else {
    return false;
  }
}

// Of an argument with its type in the schema: what is written is not const.
template <class Argument>
bool is_written_repeatedly(const std::remove_reference_t<Argument>& argument) {
  if constexpr (std::is_same_v<Argument, at::Tensor&>) {
    return !argument.is_non_overlapping_and_dense() && repeats_elements(argument);
  } else {
    return false;
  }
}

template <class Operator, auto kernel, Others others, class Type>
struct Call;

template <class Operator, auto kernel, Others others, class Result, class... Arguments>
struct Call<Operator, kernel, others, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    if constexpr (others == Others::kFallBack) {
      if ((is_other(arguments) || ...) || (is_written_repeatedly<Arguments>(arguments) || ...)) {
        return fall_back_to_cpu(arguments...);
      }
    }
    static OperatorCount* const kCount = new OperatorCount(name());
    kCount->add();
    try {
      return kernel(std::forward<Arguments>(arguments)...);
    } catch (const c10::Error&) {
      throw;
    } catch (const std::exception&) {
      throw_as_torch();
    }
  }

  static std::string name() {
    const std::string base = std::string(Operator::name).substr(6);  // without aten::
    const std::string overload = Operator::overload_name;
    return overload.empty() ? base : base + "." + overload;
  }

 private:
  static Result fall_back_to_cpu(Arguments... arguments) {
    static const auto kOperator =
        c10::Dispatcher::singleton().findSchemaOrThrow(Operator::name, Operator::overload_name);
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
        c10::BoxedKernel::makeFromFunction<&fall_back>(), kOperator, c10::DispatchKeySet(),
        std::forward<Arguments>(arguments)...);
  }
};

}  // namespace detail

// The kernel has the operator's signature, with plain integers for symbolic ones.
template <class Operator, auto kernel, Others others = Others::kFallBack>
void native(torch::Library& library) {
  using Call = detail::Call<Operator, kernel, others, std::decay_t<decltype(kernel)>>;
  library.impl(Call::name().c_str(), TORCH_FN(Call::call));
}

}  // namespace weft::pytorch
