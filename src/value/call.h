// Calls: a function of many operations recorded as one Value, a call of a Row on its sources, until
// it is opened: whoever walks the graph to compute it (or to differentiate by what lies beneath)
// has the body made first. From then on the call is the same as what its body gave. Where a
// gradient passes, and where somebody looks at each operation, the body takes the place of the call
// at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "value/row.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

// What a call gives: as the row says, as the caller knows, or as PyTorch's shape function has it.
struct Outcome {
  DType dtype;
  Ints shape;
  int64_t values = 0;  // that the body is made of, about; 0: as the row says
};

// The body of a call that waits, on its sources. No lock is held but that of realise.
Ref<Value> body_of(const Value& call);
// With WEFT_DEBUG=2: what is about to be opened, "3 gelu, sort(false, 100)".
void show_calls(std::span<const Ref<Value>> calls);
// This thread is in body_of().
bool is_opening_call();

namespace detail {

// Somebody looks at each operation, or at what is taken for granted about sizes, or a call is being
// opened: then none is recorded.
bool are_opened_at_once();
bool has_no_elements(Ints shape);

// x, which is a T or has its Value, as the body sees it.
template <class To, class From>
decltype(auto) as_source(const From& x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else {
    return CallSource<To>::of(CallSource<From>::value(x));
  }
}

template <const auto& kRow, class... A, class... S, class... Args>
auto call_with(Types<A...>, Types<S...>, const Outcome& outcome, const Args&... args) {
  static_assert(sizeof...(A) + sizeof...(S) == sizeof...(Args));
  using Made = BodyOf<typename std::remove_cvref_t<decltype(kRow)>::Body>;
  constexpr size_t count = sizeof...(A);
  const std::tuple<const Args&...> all(args...);
  using First = std::remove_cvref_t<std::tuple_element_t<count, std::tuple<const Args&...>>>;
  return [&]<size_t... a, size_t... s>(std::index_sequence<a...>, std::index_sequence<s...>) {
    const auto at_once = [&] {
      return CallSource<First>::of(Made::run(outcome.dtype, outcome.shape, A(std::get<a>(all))...,
                                             as_source<S>(std::get<count + s>(all))...));
    };
    if (are_opened_at_once()) return at_once();
    std::array<Ref<Value>, Value::kMostSources> sources{
        CallSource<std::remove_cvref_t<decltype(std::get<count + s>(all))>>::value(
            std::get<count + s>(all))...};
    if ((sources[s]->is_tracked() || ...) || has_no_elements(outcome.shape)) return at_once();
    const size_t words = (size_t(0) + ... + Attribute<A>::words(A(std::get<a>(all))));
    auto [value, at] =
        Value::make_call(kRow, outcome.values != 0 ? outcome.values : kRow.values, outcome.dtype,
                         sources[0]->device(), outcome.shape, words, sources);
    (Attribute<A>::write(at, A(std::get<a>(all))), ...);
    return CallSource<First>::of(std::move(value));
  }(std::index_sequence_for<A...>(), std::index_sequence_for<S...>());
}

template <const auto& kRow>
using SignatureOf = Signature<typename std::remove_cvref_t<decltype(kRow)>::Body>;

}  // namespace detail

// call<kRow>(outcome, attributes..., sources...): one step until it is computed. The row lives for
// ever. Sources are what CallSource knows, and the result is as the first one.
template <const auto& kRow, class... Args>
auto call(const Outcome& outcome, const Args&... args) {
  using Of = detail::SignatureOf<kRow>;
  return detail::call_with<kRow>(typename Of::AttributeTypes(), typename Of::SourceTypes(), outcome,
                                 args...);
}

// ... of the dtype of the first source and the shape of the first that is not a scalar.
template <const auto& kRow, class... Args>
auto call_like(const Args&... args) {
  using Of = detail::SignatureOf<kRow>;
  const std::tuple<const Args&...> all(args...);
  return [&]<size_t... s>(std::index_sequence<s...>) {
    using Given = std::tuple<std::remove_cvref_t<Args>...>;
    constexpr size_t count = Of::AttributeTypes::kCount;
    const Ref<Value>* const sources[] = {
        &CallSource<std::tuple_element_t<count + s, Given>>::value(std::get<count + s>(all))...};
    const Ref<Value>* shaped = sources[0];
    for (const Ref<Value>* source : sources) {
      if ((*shaped)->shape().empty()) shaped = source;
    }
    return call<kRow>(Outcome{(*sources[0])->dtype(), (*shaped)->shape()}, args...);
  }(std::make_index_sequence<Of::SourceTypes::kCount>());
}

}  // namespace weft
