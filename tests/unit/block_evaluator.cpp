// One loop per node over a block of elements in the C++ type of their dtype.
#include "tests/unit/block_evaluator.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/scalar.h"
#include "ir/walk.h"

namespace weft::test {
namespace {

constexpr size_t kN = BlockEvaluator::kBlock;

// f(T()) with the C++ type of a dtype; narrow floats are their bits and have no arithmetic here.
template <class F>
void with_type(DType type, F&& f) {
  if (type.scalar == Scalar::kFloat32) return f(float());
  if (type.scalar == Scalar::kFloat64) return f(double());
  if (type.is_bool()) return f(uint8_t());
  const int bits = type.bits();
  if (type.is_signed()) {
    if (bits == 8) return f(int8_t());
    if (bits == 16) return f(int16_t());
    if (bits == 32) return f(int32_t());
    return f(int64_t());
  }
  if (bits == 8) return f(uint8_t());
  if (bits == 16) return f(uint16_t());
  if (bits == 32) return f(uint32_t());
  return f(uint64_t());
}

template <class T>
uint64_t bits_from(T v) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(v);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(v);
  if constexpr (std::is_signed_v<T>) return uint64_t(int64_t(v));
  return uint64_t(v);
}
template <class T>
T from_bits(uint64_t b) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(uint32_t(b));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(b);
  return T(b);
}

template <class R, class T, class F>
std::function<void()> loop(std::byte* to, std::byte* a, std::byte* b, F f) {
  return [=] {
    auto* out = reinterpret_cast<R*>(to);
    const auto *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
    for (size_t i = 0; i < kN; i++) out[i] = f(x[i], y[i]);
  };
}

// Arithmetic on the types where speed counts; none: by evaluate_scalar.
template <class T>
std::function<void()> fast_binary(Op op, std::byte* to, std::byte* a, std::byte* b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::ADD) return loop<T, T>(to, a, b, [](T x, T y) { return x + y; });
    if (op == Op::SUB) return loop<T, T>(to, a, b, [](T x, T y) { return x - y; });
    if (op == Op::MUL) return loop<T, T>(to, a, b, [](T x, T y) { return x * y; });
    if (op == Op::FDIV) return loop<T, T>(to, a, b, [](T x, T y) { return x / y; });
  } else if constexpr (sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    constexpr U width = sizeof(T) * 8;
    if (op == Op::ADD) return loop<T, T>(to, a, b, [](T x, T y) { return T(U(x) + U(y)); });
    if (op == Op::SUB) return loop<T, T>(to, a, b, [](T x, T y) { return T(U(x) - U(y)); });
    if (op == Op::MUL) return loop<T, T>(to, a, b, [](T x, T y) { return T(U(x) * U(y)); });
    if (op == Op::AND) return loop<T, T>(to, a, b, [](T x, T y) { return T(x & y); });
    if (op == Op::OR) return loop<T, T>(to, a, b, [](T x, T y) { return T(x | y); });
    if (op == Op::XOR) return loop<T, T>(to, a, b, [](T x, T y) { return T(x ^ y); });
    if (op == Op::SHL) {
      return loop<T, T>(to, a, b, [](T x, T y) { return U(y) < width ? T(U(x) << U(y)) : T(0); });
    }
    if (op == Op::SHR) {
      return loop<T, T>(to, a, b, [](T x, T y) { return U(y) < width ? T(x >> U(y)) : T(0); });
    }
  }
  if (op == Op::CMPLT) return loop<uint8_t, T>(to, a, b, [](T x, T y) { return x < y; });
  if (op == Op::CMPEQ) return loop<uint8_t, T>(to, a, b, [](T x, T y) { return x == y; });
  if (op == Op::CMPNE) return loop<uint8_t, T>(to, a, b, [](T x, T y) { return x != y; });
  return {};
}

template <class T>
std::function<void()> multiply_add(std::byte* to, std::array<std::byte*, 3> srcs) {
  return [=] {
    auto* out = reinterpret_cast<T*>(to);
    const auto *x = reinterpret_cast<const T*>(srcs[0]), *y = reinterpret_cast<const T*>(srcs[1]),
               *z = reinterpret_cast<const T*>(srcs[2]);
    for (size_t i = 0; i < kN; i++) out[i] = std::fma(x[i], y[i], z[i]);
  };
}

// `to` takes x where the condition holds; y may be `to` itself.
template <class T>
std::function<void()> choose(std::byte* to, std::byte* c, std::byte* x, std::byte* y) {
  return [=] {
    for (size_t i = 0; i < kN; i++) {
      reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(c[i] != std::byte(0) ? x : y)[i];
    }
  };
}

bool converts_plainly(DType from, DType to) {  // as C++ does
  if (to.is_bool()) return false;
  const bool wide_from = from.is_bool() || from.bits() >= 32, wide_to = to.bits() >= 32;
  return wide_from && wide_to && !(from.is_float() && to.is_int());
}

}  // namespace

BlockEvaluator::BlockEvaluator(UOp root, UOp leaf) : root_(root), leaf_(leaf) {
  for (UOp n : toposort(root)) add(n);
}

std::byte* BlockEvaluator::values(UOp n) {
  if (n.is(Op::AFTER) || n.is(Op::STORE)) return values(n.src(0));  // the register
  Buffer& buffer = buffers_[n.id()];
  if (buffer == nullptr) buffer = std::make_unique<std::byte[]>(kN * 8);
  return buffer.get();
}

void BlockEvaluator::add(UOp n) {
  if (n == leaf_ || n.is(Op::DEFINE_REG) || n.is(Op::AFTER)) return;
  std::byte* to = values(n);
  std::array<std::byte*, 3> srcs{};
  for (size_t i = 0; i < n.src_count(); i++) srcs[i] = values(n.src(i));
  const DType type = n.src_count() > 0 ? n.src(n.src_count() - 1).dtype() : n.dtype();
  if (n.is_const()) {
    with_type(n.dtype(), [&](auto t) {
      using T = decltype(t);
      for (size_t i = 0; i < kN; i++) reinterpret_cast<T*>(to)[i] = from_bits<T>(n.bits());
    });
    return;
  }
  if (n.is(Op::STORE)) {
    if (n.src_count() == 2) {
      steps_.emplace_back([=] { std::memcpy(to, srcs[1], kN * 8); });
      return;
    }
    with_type(n.dtype(),
              [&](auto t) { steps_.push_back(choose<decltype(t)>(to, srcs[2], srcs[1], to)); });
    return;
  }
  std::function<void()> step;
  if (n.is(Op::WHERE)) {
    with_type(type, [&](auto t) { step = choose<decltype(t)>(to, srcs[0], srcs[1], srcs[2]); });
  } else if (n.is(Op::BITCAST) && !n.dtype().is_bool()) {
    step = [=] { std::memcpy(to, srcs[0], kN * 8); };
  } else if (n.is(Op::CAST) && converts_plainly(type, n.dtype())) {
    with_type(type, [&](auto from) {
      with_type(n.dtype(), [&](auto result) {
        using T = decltype(from);
        using R = decltype(result);
        step = loop<R, T>(to, srcs[0], srcs[0], [](T x, T) { return R(x); });
      });
    });
  } else if (n.is(Op::MULACC) && type.is_float() && type.bits() >= 32) {
    step = type.bits() == 32 ? multiply_add<float>(to, srcs) : multiply_add<double>(to, srcs);
  } else if (n.src_count() == 2 && (type.is_int() || type.bits() >= 32)) {
    with_type(type, [&](auto t) { step = fast_binary<decltype(t)>(n.op(), to, srcs[0], srcs[1]); });
  }
  if (!step) {
    step = [=] {
      for (size_t i = 0; i < kN; i++) {
        std::array<uint64_t, 3> v{};
        for (size_t s = 0; s < n.src_count(); s++) {
          with_type(n.src(s).dtype(), [&](auto t) {
            v[s] = bits_from(reinterpret_cast<const decltype(t)*>(srcs[s])[i]);
          });
        }
        const std::optional<uint64_t> r =
            evaluate_scalar(n.op(), type, n.dtype(), std::span(v.data(), n.src_count()));
        if (!r) throw std::runtime_error("an op without a value");
        with_type(n.dtype(), [&](auto t) {
          using T = decltype(t);
          reinterpret_cast<T*>(to)[i] = from_bits<T>(*r);
        });
      }
    };
  }
  steps_.push_back(std::move(step));
}

void BlockEvaluator::run(std::span<const uint64_t> inputs, std::span<uint64_t> outputs) {
  std::byte* in = values(leaf_);
  with_type(leaf_.dtype(), [&](auto t) {
    using T = decltype(t);
    for (size_t i = 0; i < inputs.size(); i++)
      reinterpret_cast<T*>(in)[i] = from_bits<T>(inputs[i]);
  });
  for (const auto& step : steps_) step();
  const std::byte* out = values(root_);
  with_type(root_.dtype(), [&](auto t) {
    using T = decltype(t);
    for (size_t i = 0; i < outputs.size(); i++) {
      outputs[i] = bits_from(reinterpret_cast<const T*>(out)[i]);
    }
  });
}

}  // namespace weft::test
