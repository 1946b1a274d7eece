// Dropout, by the bits of the device's generator.
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/ops/result_type_native.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "complex.h"
#include "convert.h"
#include "dropout.h"
#include "formulas.h"
#include "generator.h"
#include "ir/op.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "weft/dtype.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {

namespace {

constexpr auto kKept = row("dropout_mask", [](int64_t least, const weft::Tensor& blocks) {
  return blocks.binary(Op::SHR, int64_t(40)).cast(dtypes::int32).ge(least);
});

}  // namespace

// 24 bits of each block, as numbers from 0 to 1: one is dropped where its number is less than p.
weft::Tensor kept_by_chance(Ints shape, double p) {
  const int64_t least = std::llround(p * double(1 << 24));
  return call<kKept>({dtypes::bool_, shape}, least, draw_blocks(std::nullopt, shape));
}

namespace {

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p,
                                           std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (input.numel() == 0) {
    return {empty(input.sizes(), input.scalar_type()), empty(input.sizes(), at::kBool)};
  }
  const bool drops = !train || *train;
  const weft::Tensor x = wide_operand(input);
  if (!drops) {
    at::Tensor mask = empty(input.sizes(), at::kBool);
    put(mask, number(true, at::kBool));
    return {give(x, input.scalar_type()), std::move(mask)};
  }
  at::Tensor mask = give(kept_by_chance(ints(input.sizes()), p), at::kBool);
  const double scale = p == 1 ? 0.0 : 1.0 / (1.0 - p);
  weft::Tensor y = x.mul(handle(mask).cast(x.dtype())).mul(scale);
  return {give(std::move(y), input.scalar_type()), std::move(mask)};
}

at::Tensor dropout_backward(const at::Tensor& gradient, const at::Tensor& mask, double scale) {
  const c10::ScalarType type = at::native::result_type(gradient, at::Scalar(scale));
  if (gradient.scalar_type() != type) {  // whole numbers and a number that is not
    return give(elements(gradient, type).mul(elements(mask, type)).mul(scale), type);
  }
  const weft::Tensor g = wide_operand(gradient);
  return give(g.mul(operand(mask).cast(g.dtype())).mul(scale), type);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::native_dropout, dropout>(m);
  native<at::_ops::native_dropout_backward, dropout_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
