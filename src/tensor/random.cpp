// Random numbers of the bits of a generator.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "runtime/device.h"
#include "tensor/calls.h"
#include "tensor/generator.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "tensor/promote.h"
#include "tensor/random_bits.h"
#include "value/training.h"
#include "value/value.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// The digits of a float of this dtype, the hidden one included.
int significand_bits(DType dtype) {
  if (dtype == dtypes::float64) return 53;
  if (dtype == dtypes::float32) return 24;
  if (dtype == dtypes::float16) return 11;
  if (dtype == dtypes::bfloat16) return 8;
  return 4;
}

void check_float(const char* what, DType dtype) {
  if (dtype.is_float()) return;
  throw DTypeError(fmt::format("[{}] {} is no float; a float dtype is needed", what, dtype.name()));
}

// The upper `bits` bits of blocks, as k / 2^bits of this dtype.
Tensor fractions(const Tensor& blocks, int bits, DType dtype) {
  const DType whole = bits < 32 ? dtypes::int32 : dtypes::int64;  // signed ones convert faster
  const Tensor upper = blocks.binary(Op::SHR, int64_t(64 - bits)).cast(whole);
  const DType in = bits > 24 ? dtypes::float64 : dtypes::float32;
  return upper.cast(in).mul(std::ldexp(1.0, -bits)).cast(dtype);
}

// sqrt(-2 ln u) cos(2 pi v), u in (0,1], v in [0,1)
Tensor box_muller(const Tensor& u, const Tensor& v) {
  const Tensor radius = u.unary(Op::LOG).mul(-2.0).unary(Op::SQRT);
  return radius.mul(v.mul(2 * std::numbers::pi).unary(Op::COS));
}

// The upper 64 bits of the product of 64 random bits and `count`.
Tensor scaled(const Tensor& blocks, uint64_t count) {
  const auto low = [](const Tensor& x) { return x.cast(dtypes::uint32).cast(dtypes::uint64); };
  const auto high = [](const Tensor& x) { return x.binary(Op::SHR, int64_t(32)); };
  const Tensor x = high(blocks), y = low(blocks);
  const int64_t p = int64_t(count >> 32), q = int64_t(count & 0xFFFFFFFF);
  const Tensor middle = x.mul(q).add(high(y.mul(q)));  // below 2^64
  if (p == 0) return high(middle);
  const Tensor carry = high(low(middle).add(y.mul(p)));
  return x.mul(p).add(high(middle)).add(carry);
}

constexpr auto kBlocks = row("random_bits", [](Ints blocks, const Tensor& numbers) {
  const int64_t count[] = {checked_numel("random", blocks)};
  const Tensor place = tensor_of(
      Value::make(Op::IOTA, dtypes::uint64, device_of(numbers), std::span<const int64_t>(count)));
  const Tensor key = numbers.at({0}), counter = numbers.at({1});
  return place.add(counter).binary(Op::THREEFRY, key).reshape(blocks);
});

constexpr auto kUnits = row("rand", [](DType dtype, const Tensor& drawn) {
  return fractions(drawn, significand_bits(dtype), dtype);
});

constexpr auto kNormals = row("randn", [](DType dtype, const Tensor& blocks) {
  if (dtype == dtypes::float64) {
    const Tensor u = fractions(blocks.at({0}), 53, dtype).add(0x1p-53);
    return box_muller(u, fractions(blocks.at({1}), 53, dtype));
  }
  const Tensor u = blocks.binary(Op::SHR, int64_t(32)).cast(dtypes::uint32).cast(dtypes::float32);
  const Tensor v = fractions(blocks.binary(Op::SHL, int64_t(32)), 24, dtypes::float32);
  return box_muller(u.add(1.0).mul(0x1p-32), v).cast(dtype);
});

constexpr auto kRandomIntegers =
    row("randint", [](int64_t low, uint64_t count, const Tensor& drawn) {
      const Tensor steps = count == 0 ? drawn : scaled(drawn, count);
      return steps.cast(dtypes::int64).add(low);
    });

}  // namespace

Tensor blocks_of(const Tensor& state, Ints shape) {
  return call<kBlocks>({dtypes::uint64, shape}, state);
}

Tensor units_of(const Tensor& blocks, DType dtype) {
  return call<kUnits>({dtype, blocks.shape()}, dtype, blocks);
}

Sizes normal_blocks(Ints shape, DType dtype) {
  Sizes blocks(shape);
  if (dtype == dtypes::float64) blocks.insert(0, 2);
  return blocks;
}

Tensor normals_of(const Tensor& blocks, DType dtype) {
  const Ints shape = dtype == dtypes::float64 ? blocks.shape().subspan(1) : blocks.shape();
  return call<kNormals>({dtype, shape}, dtype, blocks);
}

Tensor integers_of(const Tensor& blocks, int64_t low, uint64_t count) {
  return call<kRandomIntegers>({dtypes::int64, blocks.shape()}, low, count, blocks);
}

namespace {

double product_from(Ints shape, size_t first) {
  double product = 1;
  for (size_t i = first; i < shape.size(); i++) product *= double(shape[i]);
  return product;
}

double first_size(const char* what, Ints shape) {
  if (!shape.empty()) return double(shape[0]);
  throw ShapeError(fmt::format("[{}] a scalar has no inputs and outputs", what));
}

}  // namespace

Tensor Tensor::rand(Ints shape, DType dtype, std::string_view device) {
  check_float("rand", dtype);
  return units_of(draw_blocks(find_device(device), shape), dtype);
}

Tensor Tensor::randn(Ints shape, DType dtype, std::string_view device) {
  check_float("randn", dtype);
  return normals_of(draw_blocks(find_device(device), normal_blocks(shape, dtype)), dtype);
}

Tensor Tensor::randint(Ints shape, int64_t low, int64_t high, DType dtype,
                       std::string_view device) {
  if (low >= high) {
    throw ShapeError(
        fmt::format("[randint] no integers from {} to {}; low is below high", low, high));
  }
  if (!dtype.is_int()) {
    throw DTypeError(fmt::format("[randint] {} is no dtype of integers", dtype.name()));
  }
  check_fits("randint", dtype, low);
  check_fits("randint", dtype, high - 1);
  const Tensor blocks = draw_blocks(find_device(device), shape);
  return integers_of(blocks, low, uint64_t(high) - uint64_t(low)).cast(dtype);
}

Tensor Tensor::uniform(Ints shape, double low, double high, DType dtype, std::string_view device) {
  const DType in = dtype.is_float() ? dtype : dtypes::float32;
  const Tensor unit = rand(shape, in, device);
  if (!dtype.is_float()) return unit.mul(high - low).add(low).unary(Op::FLOOR).cast(dtype);
  return low == 0 && high == 1 ? unit : unit.mul(high - low).add(low);
}

Tensor Tensor::normal(Ints shape, double mean, double std, DType dtype, std::string_view device) {
  const Tensor unit = randn(shape, dtype, device);
  return mean == 0 && std == 1 ? unit : unit.mul(std).add(mean);
}

// ------------------------------------------------------------------------- first weights of layers

Tensor Tensor::scaled_uniform(Ints shape, DType dtype, std::string_view device) {
  const double bound = std::pow(product_from(shape, 0), -0.5);
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::glorot_uniform(Ints shape, DType dtype, std::string_view device) {
  const double sizes = first_size("glorot_uniform", shape) + product_from(shape, 1);
  const double bound = std::sqrt(6.0 / sizes);
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::kaiming_uniform(Ints shape, double a, DType dtype, std::string_view device) {
  first_size("kaiming_uniform", shape);
  const double bound = std::sqrt(3.0) * std::sqrt(2.0 / (1 + a * a) / product_from(shape, 1));
  return uniform(shape, -bound, bound, dtype, device);
}

Tensor Tensor::kaiming_normal(Ints shape, double a, DType dtype, std::string_view device) {
  first_size("kaiming_normal", shape);
  return normal(shape, 0.0, std::sqrt(2.0 / (1 + a * a) / product_from(shape, 1)), dtype, device);
}

Tensor Tensor::rand_like(std::optional<DType> dtype, std::string_view device) const {
  const std::string own = this->device();
  return rand(shape(), dtype.value_or(this->dtype()), device.empty() ? own : device);
}

Tensor Tensor::randn_like(std::optional<DType> dtype, std::string_view device) const {
  const std::string own = this->device();
  return randn(shape(), dtype.value_or(this->dtype()), device.empty() ? own : device);
}

// ----------------------------------------------------------------------------------------- dropout

bool Tensor::is_training() { return weft::is_training(); }
void Tensor::set_training(bool is_training) { weft::set_training(is_training); }

Tensor Tensor::dropout(double p) const {
  if (!(p >= 0 && p <= 1)) {
    throw ShapeError(fmt::format("[dropout] probability {}; it is from 0 to 1", p));
  }
  if (!is_training() || p == 0) return *this;
  if (p == 1) return mul(kNothing);
  const Tensor unit = rand(shape(), dtypes::float32, device());
  const Tensor is_dropped = unit.binary(Op::CMPLT, p);
  return where(is_dropped, kNothing, *this).mul(1.0 / (1.0 - p));
}

}  // namespace weft
