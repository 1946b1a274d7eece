// Random numbers: formulas of the bits of a generator, which counts what was drawn.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/native/Resize.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "generator.h"
#include "native.h"
#include "new_tensors.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "tensor/random_bits.h"
#include "weft/dtype.h"
#include "weft/jit.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using Generator = std::optional<at::Generator>;

// Numbers are made in float32, or in float64 for that.
DType working(c10::ScalarType type) {
  return type == c10::kDouble ? dtypes::float64 : dtypes::float32;
}

// Above 0 to 1.
weft::Tensor upper_units(const at::Tensor& self, const Generator& generator) {
  const DType dtype = working(self.scalar_type());
  const weft::Tensor u = units_of(draw_blocks(generator, ints(self.sizes())), dtype);
  return u.add(dtype == dtypes::float64 ? 0x1p-53 : 0x1p-24);
}
weft::Tensor normals(at::IntArrayRef sizes, c10::ScalarType type, const Generator& generator) {
  const DType dtype = working(type);
  return normals_of(draw_blocks(generator, normal_blocks(ints(sizes), dtype)), dtype);
}

void check_floating(const char* name, const at::Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(self.scalar_type()), "\"", name,
                              "\" not implemented for '", c10::toString(self.scalar_type()), "'");
}

// ------------------------------------------------------------------------------------------- reals

constexpr auto kUniform =
    row("uniform", [](double from, double to, DType dtype, const weft::Tensor& u) {
      const weft::Tensor x = u.mul(to - from).add(from).cast(dtype);
      return weft::Tensor::where(x.ge(to), from, x);  // rounded up
    });

at::Tensor& uniform_(at::Tensor& self, double from, double to, Generator generator) {
  check_floating("check_uniform_bounds", self);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
              " > to=", to);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  const weft::Tensor blocks = draw_blocks(generator, ints(self.sizes()));
  const DType dtype = dtype_of(self.scalar_type());
  if (from == 0 && to == 1) {
    put(self, units_of(blocks, dtype));
    return self;
  }
  put(self, call<kUniform>({dtype, blocks.shape()}, from, to, dtype,
                           units_of(blocks, working(self.scalar_type()))));
  return self;
}

void check_std(double std) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
}

at::Tensor& normal_(at::Tensor& self, double mean, double std, Generator generator) {
  check_std(std);
  check_floating("normal_", self);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  const weft::Tensor x = normals(self.sizes(), self.scalar_type(), generator);
  put(self, mean == 0 && std == 1 ? x : x.mul(std).add(mean));
  return self;
}

void check_std(const at::Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  TORCH_CHECK(std.numel() == 0 || handle(std).ge(int64_t(0)).all().item<bool>(),
              "normal expects all elements of std >= 0.0");
}

at::Tensor& normal_tensor_float_out(const at::Tensor& mean, double std, Generator generator,
                                    at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, mean.sizes());
  if (out.numel() == 0) return out;
  const weft::Tensor x = normals(out.sizes(), out.scalar_type(), generator);
  put(out, x.mul(std).add(operand(mean, out.scalar_type())));
  return out;
}
at::Tensor normal_tensor_float(const at::Tensor& mean, double std, Generator generator) {
  check_floating("normal", mean);
  at::Tensor out = empty_like(mean, mean.scalar_type());
  return normal_tensor_float_out(mean, std, std::move(generator), out);
}

at::Tensor& normal_float_tensor_out(double mean, const at::Tensor& std, Generator generator,
                                    at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, std.sizes());
  if (out.numel() == 0) return out;
  const weft::Tensor x = normals(out.sizes(), out.scalar_type(), generator);
  put(out, x.mul(operand(std, out.scalar_type())).add(mean));
  return out;
}
at::Tensor normal_float_tensor(double mean, const at::Tensor& std, Generator generator) {
  check_floating("normal", std);
  at::Tensor out = empty_like(std, std.scalar_type());
  return normal_float_tensor_out(mean, std, std::move(generator), out);
}

at::Tensor& normal_tensor_tensor_out(const at::Tensor& mean, const at::Tensor& std,
                                     Generator generator, at::Tensor& out) {
  check_std(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
  if (out.numel() == 0) return out;
  const weft::Tensor x = normals(out.sizes(), out.scalar_type(), generator);
  put(out, x.mul(operand(std, out.scalar_type())).add(operand(mean, out.scalar_type())));
  return out;
}
at::Tensor normal_tensor_tensor(const at::Tensor& mean, const at::Tensor& std,
                                Generator generator) {
  check_floating("normal", mean);
  at::Tensor out = empty(at::infer_size(mean.sizes(), std.sizes()), mean.scalar_type());
  return normal_tensor_tensor_out(mean, std, std::move(generator), out);
}

at::Tensor& exponential_(at::Tensor& self, double lambda, Generator generator) {
  TORCH_CHECK(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  check_floating("exponential_", self);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  // Never 0: others divide by it.
  const double least = self.scalar_type() == c10::kDouble ? 0x1p-54 : 0x1p-25;
  const weft::Tensor x = upper_units(self, generator).log().neg().maximum(least);
  put(self, x.mul(1 / lambda));
  return self;
}

at::Tensor& geometric_(at::Tensor& self, double p, Generator generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  put(self, upper_units(self, generator).log().mul(1 / std::log1p(-p)).ceil().maximum(1.0));
  return self;
}

at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, Generator generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.dtype());
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  const weft::Tensor turn = upper_units(self, generator).sub(0.5).mul(std::numbers::pi);
  put(self, turn.tan().mul(sigma).add(median));
  return self;
}

at::Tensor& log_normal_(at::Tensor& self, double mean, double std, Generator generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  check_floating("log_normal_", self);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  put(self, normals(self.sizes(), self.scalar_type(), generator).mul(std).add(mean).exp());
  return self;
}

// --------------------------------------------------------------------------------------- bernoulli

at::Tensor& bernoulli_float(at::Tensor& self, double p, Generator generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  const weft::Tensor blocks = draw_blocks(generator, ints(self.sizes()));
  put(self, units_of(blocks, dtypes::float32).lt(p));
  return self;
}

void put_bernoulli(const at::Tensor& self, const at::Tensor& p, const Generator& generator) {
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return;
  const DType dtype = working(p.scalar_type());
  const weft::Tensor u = units_of(draw_blocks(generator, ints(self.sizes())), dtype);
  put(self, u.lt(operand(p).cast(dtype)));
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Generator generator) {
  check_floating("bernoulli_tensor_cpu_p_", p);
  TORCH_CHECK(at::is_expandable_to(p.sizes(), self.sizes()), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::infer_size(self.sizes(), p.sizes()));
  put_bernoulli(self, p, generator);
  return self;
}

at::Tensor& bernoulli_out(const at::Tensor& self, Generator generator, at::Tensor& out) {
  check_floating("bernoulli_tensor_cpu_self_", self);
  at::native::resize_output(out, self.sizes());
  put_bernoulli(out, self, generator);
  return out;
}
at::Tensor bernoulli(const at::Tensor& self, Generator generator) {
  at::Tensor out = empty_like(self, self.scalar_type());
  return bernoulli_out(self, std::move(generator), out);
}

// ---------------------------------------------------------------------------------------- integers

// The largest integer below which all are numbers of the dtype.
int64_t last_integer(c10::ScalarType type) {
  switch (type) {
    case c10::kDouble: return int64_t(1) << 53;
    case c10::kFloat: return int64_t(1) << 24;
    case c10::kHalf: return int64_t(1) << 11;
    case c10::kBFloat16: return int64_t(1) << 8;
    case c10::kBool: return 1;
    case c10::kByte: return std::numeric_limits<uint8_t>::max();
    case c10::kChar: return std::numeric_limits<int8_t>::max();
    case c10::kShort: return std::numeric_limits<int16_t>::max();
    case c10::kInt: return std::numeric_limits<int32_t>::max();
    case c10::kUInt16: return std::numeric_limits<uint16_t>::max();
    case c10::kUInt32: return std::numeric_limits<uint32_t>::max();
    default: return std::numeric_limits<int64_t>::max();
  }
}
int64_t first_integer(c10::ScalarType type) {
  switch (type) {
    case c10::kChar: return std::numeric_limits<int8_t>::min();
    case c10::kShort: return std::numeric_limits<int16_t>::min();
    case c10::kInt: return std::numeric_limits<int32_t>::min();
    case c10::kLong: return std::numeric_limits<int64_t>::min();
    default: return c10::isFloatingType(type) ? -last_integer(type) : 0;
  }
}

at::Tensor& put_integers(at::Tensor& self, int64_t low, uint64_t count,
                         const Generator& generator) {
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return self;
  put(self, integers_of(draw_blocks(generator, ints(self.sizes())), low, count));
  return self;
}

at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to,
                        Generator generator) {
  const c10::ScalarType type = self.scalar_type();
  if (!to) {
    const bool is_whole = from == std::numeric_limits<int64_t>::min();
    const int64_t last = last_integer(type);
    return put_integers(self, from, is_whole ? 0 : uint64_t(last) - uint64_t(from) + 1, generator);
  }
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from,
              " >= to=", *to);
  if (!c10::isFloatingType(type)) {
    TORCH_CHECK(from >= first_integer(type) && from <= last_integer(type),
                "from is out of bounds for ", self.dtype());
    TORCH_CHECK(*to - 1 >= first_integer(type) && *to - 1 <= last_integer(type),
                "to - 1 is out of bounds for ", self.dtype());
  }
  return put_integers(self, from, uint64_t(*to) - uint64_t(from), generator);
}
at::Tensor& random_to(at::Tensor& self, int64_t to, Generator generator) {
  return random_from(self, 0, to, std::move(generator));
}
at::Tensor& random_(at::Tensor& self, Generator generator) {
  return put_integers(self, 0, uint64_t(last_integer(self.scalar_type())) + 1, generator);
}

at::Tensor& randperm_out(int64_t n, Generator generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK(n - 1 <= last_integer(out.scalar_type()), "n is too large for result tensor type: '",
              out.dtype(), "'");
  at::native::resize_output(out, {n});
  if (n > 0) put(out, draw_blocks(generator, {n}).argsort());
  return out;
}

// Throws for weights that are no chances. They are computed now, but in a graph that is being made.
void check_weights(const weft::Tensor& weights, bool repeats) {
  if (is_capturing()) return;
  enum Fault : uint8_t { kNone, kZero, kEndless, kNegative };
  const weft::Tensor is_zero = weights.sum(std::vector<int64_t>{-1}).le(0.0).max();
  const weft::Tensor is_endless = weights.eq(HUGE_VAL).max();
  const weft::Tensor is_negative = weights.ge(0.0).logical_not().max();  // or no number
  weft::Tensor fault = weft::Tensor::where(is_zero, int64_t(kZero), int64_t(kNone));
  fault = weft::Tensor::where(is_endless, int64_t(kEndless), fault);
  fault = weft::Tensor::where(is_negative, int64_t(kNegative), fault);
  const auto found = fault.cast(dtypes::int32).item<int32_t>();
  TORCH_CHECK(repeats || found < kEndless,
              "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(found != kNegative,
              "invalid multinomial distribution (encountering probability entry < 0)");
  TORCH_CHECK(found != kEndless,
              "invalid multinomial distribution (encountering probability entry = infinity or "
              "NaN)");
  TORCH_CHECK(found != kZero, "invalid multinomial distribution (sum of probabilities <= 0)");
}

at::Tensor& multinomial_out(const at::Tensor& self, int64_t count, bool replacement,
                            Generator generator, at::Tensor& out) {
  TORCH_CHECK(self.device() == out.device(), "multinomial arguments must have the same device");
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      c10::isFloatingType(self.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(out.scalar_type() == c10::kLong,
              "multinomial expects Long tensor out, got: ", out.scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) <= (int64_t(1) << 24), "number of categories cannot exceed 2^24");
  Sizes shape(ints(self.sizes()));
  shape.back() = count;
  at::native::resize_output(out, ints(shape));
  if (out.numel() == 0) return out;
  const DType dtype = working(self.scalar_type());
  const weft::Tensor weights = handle(self).cast(dtype);
  const bool repeats = replacement || count == 1;
  check_weights(weights, replacement && count > 1);
  const weft::Tensor u =
      units_of(draw_blocks(generator, repeats ? Ints(shape) : ints(self.sizes())), dtype);
  put(out, repeats ? chosen_with_replacement(weights, u)
                   : chosen_without_replacement(weights, u, count));
  return out;
}
at::Tensor multinomial(const at::Tensor& self, int64_t count, bool replacement,
                       Generator generator) {
  at::Tensor out = empty({0}, c10::kLong);
  return multinomial_out(self, count, replacement, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::uniform_, uniform_>(m);
  native<at::_ops::normal_, normal_>(m);
  native<at::_ops::normal_Tensor_float, normal_tensor_float>(m);
  native<at::_ops::normal_Tensor_float_out, normal_tensor_float_out>(m);
  native<at::_ops::normal_float_Tensor, normal_float_tensor>(m);
  native<at::_ops::normal_float_Tensor_out, normal_float_tensor_out>(m);
  native<at::_ops::normal_Tensor_Tensor, normal_tensor_tensor>(m);
  native<at::_ops::normal_Tensor_Tensor_out, normal_tensor_tensor_out>(m);
  native<at::_ops::exponential_, exponential_>(m);
  native<at::_ops::geometric_, geometric_>(m);
  native<at::_ops::cauchy_, cauchy_>(m);
  native<at::_ops::log_normal_, log_normal_>(m);
  native<at::_ops::bernoulli__float, bernoulli_float>(m);
  native<at::_ops::bernoulli__Tensor, bernoulli_tensor>(m);
  native<at::_ops::bernoulli_out, bernoulli_out>(m);
  native<at::_ops::bernoulli, bernoulli>(m);
  native<at::_ops::random__from, random_from>(m);
  native<at::_ops::random__to, random_to>(m);
  native<at::_ops::random_, random_>(m);
  native<at::_ops::randperm_generator_out, randperm_out>(m);
  native<at::_ops::multinomial, multinomial>(m);
  native<at::_ops::multinomial_out, multinomial_out>(m);
}

}  // namespace
}  // namespace weft::pytorch
