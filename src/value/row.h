// Rows: what a call is of. A row is a name, attributes and a body, which makes Values of Values; it
// is declared where the operators are that call it (call.h):
//
//   constexpr auto kScaled = row("scaled", [](int64_t axis, const Tensor& x, const Tensor& y)
//   {...});
//
// The body is a lambda without captures, or a function: row<scaled_of>("scaled"). Its parameters
// are the shape of the result, if it wants that (Ints), then attributes, then sources. It makes a
// Value of the dtype and shape of the call, reads no memory and does not throw. An attribute is
// what shapes the body: integers, bools, enums, reals, dtypes, lists and structs of these. They are
// recorded as words, so that they can be compared, hashed and printed.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "value/value.h"
#include "weft/view.h"

namespace weft {

struct Row {
  std::string_view name;
  int64_t values;  // that the body is made of, about: a call counts as so many pending ones
  // The body on these sources, by the attributes.
  Ref<Value> (*body)(Ints attributes, DType dtype, Ints shape, std::span<Ref<Value>> sources);
  std::string (*text)(Ints attributes);  // "(1, true)"; "" for none
};

// "sort(true, 5)", of a call
std::string text_of_call(const Value& call);

// How a body sees a source, and what it gives: specialised for the types of other rooms.
//   value(x)          the Value of what a caller has
//   of(value)         what the body is given
//   result(y, dtype)  the Value of what the body gives
//   kValues           that bodies of such sources are made of, about
template <class T>
struct CallSource;
template <>
struct CallSource<Ref<Value>> {
  static constexpr int64_t kValues = 16;
  static Ref<Value> value(Ref<Value> x) { return x; }
  static Ref<Value> of(Ref<Value> x) { return x; }
  static Ref<Value> result(Ref<Value> y, DType) { return y; }
};

// ---- attributes as words

namespace detail {

void append_text(std::string& to, int64_t number);
void append_text(std::string& to, double number);
void append_text(std::string& to, DType dtype);

template <class T>
concept IsWord = std::is_integral_v<T> || std::is_enum_v<T>;
template <class T>
concept HasFields = requires(T x) { x.fields(); };

}  // namespace detail

// Of each: words(x), how many; write(at, x) and read(at), which move on past them; print(to, x).
template <class T>
struct Attribute;

template <detail::IsWord T>
struct Attribute<T> {
  static constexpr size_t words(T) { return 1; }
  static void write(int64_t*& at, T x) { *at++ = int64_t(x); }
  static T read(const int64_t*& at) { return T(*at++); }
  static void print(std::string& to, T x) {
    if constexpr (std::is_same_v<T, bool>) {
      to += x ? "true" : "false";
    } else if constexpr (std::is_same_v<T, Op>) {
      to += name_of(x);
    } else {
      detail::append_text(to, int64_t(x));
    }
  }
};

template <>
struct Attribute<double> {
  static constexpr size_t words(double) { return 1; }
  static void write(int64_t*& at, double x) { *at++ = std::bit_cast<int64_t>(x); }
  static double read(const int64_t*& at) { return std::bit_cast<double>(*at++); }
  static void print(std::string& to, double x) { detail::append_text(to, x); }
};

template <>
struct Attribute<DType> {
  static constexpr size_t words(DType) { return 1; }
  static void write(int64_t*& at, DType x) { *at++ = int64_t(std::bit_cast<uint32_t>(x)); }
  static DType read(const int64_t*& at) { return std::bit_cast<DType>(uint32_t(*at++)); }
  static void print(std::string& to, DType x) { detail::append_text(to, x); }
};

template <class T>
struct Attribute<std::optional<T>> {
  static size_t words(const std::optional<T>& x) { return 1 + (x ? Attribute<T>::words(*x) : 0); }
  static void write(int64_t*& at, const std::optional<T>& x) {
    *at++ = int64_t(x.has_value());
    if (x) Attribute<T>::write(at, *x);
  }
  static std::optional<T> read(const int64_t*& at) {
    if (*at++ == 0) return {};
    return Attribute<T>::read(at);
  }
  static void print(std::string& to, const std::optional<T>& x) {
    if (!x) to += "none";
    if (x) Attribute<T>::print(to, *x);
  }
};

namespace detail {

// Items in brackets.
template <class Items>
void append_list(std::string& to, const Items& items) {
  to += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) to += ", ";
    Attribute<std::remove_cvref_t<decltype(item)>>::print(to, item);
  }
  to += ']';
}

}  // namespace detail

template <class T, size_t n>
struct Attribute<std::array<T, n>> {
  static constexpr size_t words(const std::array<T, n>& x) {
    size_t sum = 0;
    for (const T& item : x) sum += Attribute<T>::words(item);
    return sum;
  }
  static void write(int64_t*& at, const std::array<T, n>& x) {
    for (const T& item : x) Attribute<T>::write(at, item);
  }
  static std::array<T, n> read(const int64_t*& at) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return std::array<T, n>{(static_cast<void>(i), Attribute<T>::read(at))...};
    }(std::make_index_sequence<n>());
  }
  static void print(std::string& to, const std::array<T, n>& x) { detail::append_list(to, x); }
};

template <>
struct Attribute<Sizes> {
  static size_t words(const Sizes& x) { return 1 + x.size(); }
  static void write(int64_t*& at, const Sizes& x) {
    *at++ = int64_t(x.size());
    for (const int64_t item : x) *at++ = item;
  }
  static Sizes read(const int64_t*& at) {
    const auto count = size_t(*at++);
    at += count;
    return Sizes(Ints(std::span(at - count, count)));
  }
  static void print(std::string& to, const Sizes& x) { detail::append_list(to, x); }
};

// A struct whose fields() ties all of its members, in order.
template <detail::HasFields T>
struct Attribute<T> {
  static size_t words(T x) {
    static_assert(std::is_empty_v<T> ||
                  size_of(std::type_identity<decltype(x.fields())>()) == sizeof(T));
    return std::apply([](const auto&... f) { return (size_t(0) + ... + words_of(f)); }, x.fields());
  }
  static void write(int64_t*& at, T x) {
    std::apply([&](const auto&... f) { (write_one(at, f), ...); }, x.fields());
  }
  static T read(const int64_t*& at) {
    T x{};
    std::apply([&](auto&... f) { (read_one(at, f), ...); }, x.fields());
    return x;
  }
  static void print(std::string& to, T x) {
    to += '{';
    const size_t begin = to.size();
    std::apply([&](const auto&... f) { (print_one(to, begin, f), ...); }, x.fields());
    to += '}';
  }

 private:
  template <class F>
  static size_t words_of(const F& f) {
    return Attribute<F>::words(f);
  }
  template <class F>
  static void write_one(int64_t*& at, const F& f) {
    Attribute<F>::write(at, f);
  }
  template <class F>
  static void read_one(const int64_t*& at, F& f) {
    f = Attribute<F>::read(at);
  }
  template <class F>
  static void print_one(std::string& to, size_t begin, const F& f) {
    if (to.size() != begin) to += ", ";
    Attribute<F>::print(to, f);
  }
  // None is left out: they fill the struct.
  template <class... F>
  static constexpr size_t size_of(std::type_identity<std::tuple<F&...>>) {
    size_t end = 0;
    const auto add = [&](size_t size, size_t align) {
      end = (end + align - 1) / align * align + size;
    };
    (add(sizeof(F), alignof(F)), ...);
    add(0, alignof(T));
    return end;
  }
};

// ---- bodies

namespace detail {

template <class... T>
struct Types {
  static constexpr size_t kCount = sizeof...(T);
};

template <class T>
concept IsSource = requires { CallSource<T>::kValues; };

// The parameters of a function as attributes, which come first, and sources.
template <class Attributes, class Sources, class... Rest>
struct Split {
  using AttributeTypes = Attributes;
  using SourceTypes = Sources;
};
template <class... A, class... S, class Next, class... Rest>
  requires IsSource<Next>
struct Split<Types<A...>, Types<S...>, Next, Rest...>
    : Split<Types<A...>, Types<S..., Next>, Rest...> {};
template <class... A, class Next, class... Rest>
  requires(!IsSource<Next>)
struct Split<Types<A...>, Types<>, Next, Rest...> : Split<Types<A..., Next>, Types<>, Rest...> {};

template <class R, class... P>
struct OfParameters : Split<Types<>, Types<>, P...> {
  using Result = R;
  static constexpr bool kWantsShape = false;
};
template <class R, class... P>
struct OfParameters<R, Ints, P...> : Split<Types<>, Types<>, P...> {
  using Result = R;
  static constexpr bool kWantsShape = true;
};

template <class Function>
struct Signature : Signature<decltype(&Function::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> : OfParameters<R, std::remove_cvref_t<P>...> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : OfParameters<R, std::remove_cvref_t<P>...> {};

// A function as the type of a body.
template <auto function>
struct Fixed {
  template <class... T>
  auto operator()(T&&... x) const {
    return function(std::forward<T>(x)...);
  }
};
template <auto function>
struct Signature<Fixed<function>> : Signature<std::remove_const_t<decltype(function)>> {};

template <class Body, class Attributes = typename Signature<Body>::AttributeTypes,
          class Sources = typename Signature<Body>::SourceTypes>
struct BodyOf;
template <class Body, class... A, class... S>
struct BodyOf<Body, Types<A...>, Types<S...>> {
  static_assert(std::is_empty_v<Body> && std::is_default_constructible_v<Body>);
  static_assert(sizeof...(S) > 0 && sizeof...(S) <= Value::kMostSources);

  static constexpr int64_t kValues = CallSource<std::tuple_element_t<0, std::tuple<S...>>>::kValues;

  // On sources as the body sees them.
  static Ref<Value> run(DType dtype, Ints shape, const A&... attributes, const S&... sources) {
    using Result = CallSource<typename Signature<Body>::Result>;
    if constexpr (Signature<Body>::kWantsShape) {
      return Result::result(Body{}(shape, attributes..., sources...), dtype);
    } else {
      return Result::result(Body{}(attributes..., sources...), dtype);
    }
  }

  static Ref<Value> body(Ints words, DType dtype, Ints shape, std::span<Ref<Value>> sources) {
    return [&]<size_t... a, size_t... s>(std::index_sequence<a...>, std::index_sequence<s...>) {
      [[maybe_unused]] const std::tuple<A...> attributes = read(words);
      return run(dtype, shape, std::get<a>(attributes)...,
                 CallSource<S>::of(std::move(sources[s]))...);
    }(std::index_sequence_for<A...>(), std::index_sequence_for<S...>());
  }

  static std::string text(Ints words) {
    std::string out;
    std::apply(
        [&](const A&... x) {
          ((out += out.empty() ? "(" : ", ", Attribute<A>::print(out, x)), ...);
        },
        read(words));
    return out.empty() ? out : out + ')';
  }

 private:
  static std::tuple<A...> read([[maybe_unused]] Ints words) {
    [[maybe_unused]] const int64_t* at = words.data();
    return std::tuple<A...>{Attribute<A>::read(at)...};  // from left to right
  }
};

}  // namespace detail

// A row that knows the types of its body.
template <class BodyType>
struct RowOf : Row {
  using Body = BodyType;
};

template <class Body>
constexpr RowOf<Body> row(std::string_view name, int64_t values, Body) {
  using Made = detail::BodyOf<Body>;
  return {{name, values, Made::body, Made::text}};
}
template <class Body>
constexpr RowOf<Body> row(std::string_view name, Body body) {
  return row(name, detail::BodyOf<Body>::kValues, body);
}
template <auto function>
constexpr auto row(std::string_view name) {
  return row(name, detail::Fixed<function>());
}

}  // namespace weft
