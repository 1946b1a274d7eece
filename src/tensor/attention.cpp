// Normalisation of batches, and attention.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/operand.h"
#include "tensor/promote.h"
#include "value/number_watch.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {

Tensor Tensor::batchnorm(const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                         const Tensor& mean, const Tensor& invstd, Ints axes) const {
  Sizes along(view_.rank(), 1);
  for (const int64_t axis : axes) {
    const size_t at = axis_of("batchnorm", axis, view_.rank());
    along[at] = view_.shape[at];
  }
  const auto placed = [&](const Tensor& t) {
    return t.ndim() == int64_t(axes.size()) ? t.reshape(along) : t;
  };
  Tensor result = sub(placed(mean));
  if (weight) result = result.mul(placed(*weight));
  result = result.mul(placed(invstd));
  return bias ? result.add(placed(*bias)) : result;
}

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Along the last axis, 0 where all of it is -inf.
Tensor safe_softmax(const Tensor& x) {
  if (x.numel() == 0) return x;
  const std::vector<int64_t> last{-1};
  const Tensor largest = x.max(last, true).detach();
  const Tensor base = Tensor::where(largest.binary(Op::CMPEQ, kNever), 0.0, largest);
  const Tensor powers = x.sub(base).unary(Op::EXP);
  const Tensor sum = powers.sum(last, true);
  return powers.div(Tensor::where(sum.binary(Op::CMPEQ, 0.0), 1.0, sum));
}

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value) {
  const char* const what = "scaled_dot_product_attention";
  if (query.ndim() < 2 || key.ndim() < 2 || value.ndim() < 2) {
    throw ShapeError(fmt::format("[{}] queries, keys and values have at least 2 axes", what));
  }
  if (query.shape().back() == key.shape().back() &&
      key.shape()[size_t(key.ndim()) - 2] == value.shape()[size_t(value.ndim()) - 2]) {
    return;
  }
  throw ShapeError(fmt::format("[{}] queries {}, keys {} and values {} do not fit", what,
                               text_of_shape(query.shape()), text_of_shape(key.shape()),
                               text_of_shape(value.shape())));
}

// Every head of keys or values as often as queries have one for it.
Tensor shared_heads(const Tensor& x, const Tensor& query) {
  if (x.ndim() < 3 || query.ndim() < 3) return x;
  const int64_t heads = x.shape()[size_t(x.ndim()) - 3];
  const int64_t wanted = query.shape()[size_t(query.ndim()) - 3];
  if (heads == 0 || wanted % heads != 0) {
    throw ShapeError(
        fmt::format("[scaled_dot_product_attention] {} heads of queries for {} of keys or values",
                    wanted, heads));
  }
  assume_exact({heads, wanted});
  return x.repeat_interleave(wanted / heads, -3);
}

Tensor masked(const Tensor& scores, const Tensor& mask) {
  if (!mask.dtype().is_bool()) return scores.add(mask);
  return Tensor::where(mask, scores, kNever);
}

}  // namespace

Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                            const AttentionOptions& options) const {
  check_attention(*this, key, value);
  if (options.mask && options.is_causal) {
    throw ShapeError("[scaled_dot_product_attention] a mask, or is_causal, not both");
  }
  const Tensor keys = options.enable_gqa ? shared_heads(key, *this) : key;
  const Tensor values = options.enable_gqa ? shared_heads(value, *this) : value;
  const DType type = promote("scaled_dot_product_attention", dtype(), key.dtype());
  const DType in = type == dtypes::float64 ? type : dtypes::float32;
  const double scale = 1.0 / std::sqrt(double(std::max<int64_t>(shape().back(), 1)));
  Tensor scores = cast(in).matmul(keys.cast(in).transpose(-2, -1)).mul(scale);
  if (options.is_causal) {
    const size_t rank = scores.view().rank();
    const int64_t queries = scores.shape()[rank - 2], size = scores.shape()[rank - 1];
    scores = masked(scores, full({queries, size}, true, {}, device()).tril());
  }
  if (options.mask) scores = masked(scores, *options.mask);
  const Tensor weights = safe_softmax(scores).cast(type);
  const double p = options.dropout_p;
  return (p > 0 ? weights.dropout(p) : weights).matmul(values);
}

}  // namespace weft
