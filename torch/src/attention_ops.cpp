// Attention: softmax(queries keys^T) values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "dropout.h"
#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "tensor/calls.h"
#include "torch_version.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Along the last axis, 0 where all of it is -inf.
weft::Tensor safe_softmax(const weft::Tensor& x) {
  const std::vector<int64_t> last{-1};
  const weft::Tensor largest = x.max(last, true);
  const weft::Tensor base = weft::Tensor::where(largest.eq(kNever), 0.0, largest);
  const weft::Tensor powers = x.sub(base).exp();
  const weft::Tensor sum = powers.sum(last, true);
  return powers.div(weft::Tensor::where(sum.eq(0.0), 1.0, sum));
}

// (batch, heads, length, size), the heads in groups that share one of keys and values: (batch,
// heads of keys, heads of a group, length, size).
struct Heads {
  int64_t of_keys = 1, of_group = 1;

  Heads() = default;
  Heads(const at::Tensor& query, const at::Tensor& key)
      : of_keys(key.size(1)), of_group(query.size(1) / std::max<int64_t>(key.size(1), 1)) {}

  auto fields() { return std::tie(of_keys, of_group); }

  bool is_grouped() const { return of_group != 1; }
  weft::Tensor of_queries(const weft::Tensor& x) const {
    return is_grouped() ? x.unflatten(1, {of_keys, of_group}) : x;
  }
  weft::Tensor of_shared(const weft::Tensor& x) const { return is_grouped() ? x.unsqueeze(2) : x; }
  // A mask that broadcasts to (batch, heads, queries, keys).
  weft::Tensor of_mask(const weft::Tensor& x) const {
    if (!is_grouped() || x.ndim() < 3) return x;
    const int64_t axis = x.ndim() - 3;
    return x.shape()[size_t(axis)] == 1 ? x.unsqueeze(axis)
                                        : x.unflatten(axis, {of_keys, of_group});
  }
  weft::Tensor merged(const weft::Tensor& x) const { return is_grouped() ? x.flatten(1, 2) : x; }
  weft::Tensor summed(const weft::Tensor& x) const {
    return is_grouped() ? x.sum(std::vector<int64_t>{2}) : x;
  }
};

double scale_of(const at::Tensor& query, std::optional<double> scale) {
  return scale.value_or(1.0 / std::sqrt(double(std::max<int64_t>(query.size(-1), 1))));
}

// How queries and keys make weights.
struct Scores {
  Heads heads;
  bool is_causal;
  double scale;

  auto fields() { return std::tie(heads, is_causal, scale); }

  weft::Tensor operator()(const weft::Tensor& query, const weft::Tensor& key) const {
    return heads.merged(safe_softmax(of(query, key)));
  }
  weft::Tensor operator()(const weft::Tensor& query, const weft::Tensor& key,
                          const weft::Tensor& mask) const {
    const weft::Tensor scores = of(query, key), m = heads.of_mask(mask);
    return heads.merged(safe_softmax(m.dtype().is_bool() ? weft::Tensor::where(m, scores, kNever)
                                                         : scores.add(m.cast(scores.dtype()))));
  }

 private:
  weft::Tensor of(const weft::Tensor& query, const weft::Tensor& key) const {
    const weft::Tensor q = heads.of_queries(query), k = heads.of_shared(key);
    weft::Tensor scores = q.matmul(k.transpose(-2, -1)).mul(scale);
    if (!is_causal) return scores;
    const weft::Tensor below =
        weft::Tensor::full({query.shape()[2], key.shape()[2]}, true, {}, scores.device()).tril();
    return weft::Tensor::where(below, scores, kNever);
  }
};

constexpr auto kWeights =
    row("attention_weights", [](const Scores& scores, const weft::Tensor& query,
                                const weft::Tensor& key) { return scores(query, key); });
constexpr auto kMaskedWeights =
    row("masked_attention_weights",
        [](const Scores& scores, const weft::Tensor& query, const weft::Tensor& key,
           const weft::Tensor& mask) { return scores(query, key, mask); });
constexpr auto kAttended = row(
    "attention", [](const Heads& heads, const weft::Tensor& weights, const weft::Tensor& value) {
      return heads.merged(heads.of_queries(weights).matmul(heads.of_shared(value)));
    });

weft::Tensor weights_of(const at::Tensor& query, const at::Tensor& key, const MaybeTensor& mask,
                        bool is_causal, double scale) {
  const weft::Tensor q = wide_operand(query), k = wide_operand(key);
  const Scores scores{Heads(query, key), is_causal, scale};
  const Sizes shape{query.size(0), query.size(1), query.size(2), key.size(2)};
  return is_given(mask) ? call<kMaskedWeights>({q.dtype(), shape}, scores, q, k, operand(*mask))
                        : call<kWeights>({q.dtype(), shape}, scores, q, k);
}

// (batch, heads, length, size), in memory as the query is: where that has the heads of a place
// together, what comes next merges them.
at::Tensor give_heads(const weft::Tensor& x, const at::Tensor& query) {
  const c10::ScalarType type = query.scalar_type();
  if (query.stride(1) >= query.stride(2)) return give(x, type);
  const at::Tensor laid = give(x.permute({0, 2, 1, 3}).contiguous(), type);
  const int64_t sizes[] = {laid.size(0), laid.size(2), laid.size(1), laid.size(3)};
  const int64_t strides[] = {laid.stride(0), laid.stride(2), laid.stride(1), laid.stride(3)};
  laid.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return laid;
}

// (batch, heads, length, size) each, of one dtype; as many heads, or a multiple, for queries. Sizes
// may be symbols: a compiler that asks has the answer as a guard.
bool fit(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const auto is_one = [&](const at::Tensor& t) {
    return t.dim() == 4 && t.sym_numel() != 0 && t.scalar_type() == query.scalar_type();
  };
  if (!is_one(query) || !is_one(key) || !is_one(value)) return false;
  const c10::SymIntArrayRef q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  return q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] &&
         q[1] % k[1] == 0;
}
bool fits_as_mask(const MaybeTensor& mask, const at::Tensor& query, const at::Tensor& key) {
  if (!is_given(mask)) return true;
  const c10::SymIntArrayRef q = query.sym_sizes();
  const c10::SymInt weights[] = {q[0], q[1], q[2], key.sym_size(2)};
  return at::is_expandable_to(mask->sym_sizes(), weights);
}

using Attended = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
                            c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

// The second result, which the gradient is given, is the weights; the seventh is what dropout kept.
// That and the eighth are tensors in any case: whoever saves them for the gradient counts on it.
Attended attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const MaybeTensor& mask, double dropout_p, bool is_causal, bool,
                   std::optional<double> scale) {
  TORCH_CHECK(!is_causal || !is_given(mask) || dropout_p == 0,  // as PyTorch's CPU: both, if exact
              "_scaled_dot_product_attention: Explicit attn_mask should not be set when ",
              "is_causal=True");
  TORCH_CHECK(fit(query, key, value), "queries of shape ", query.sizes(), ", keys of ", key.sizes(),
              " and values of ", value.sizes(), " do not fit each other");
  TORCH_CHECK(fits_as_mask(mask, query, key), "a mask of shape ", mask->sizes(), " does not fit ",
              "queries of ", query.sizes(), " and keys of ", key.sizes());
  const c10::ScalarType type = query.scalar_type();
  const Heads heads(query, key);
  at::Tensor weights = give(weights_of(query, key, mask, is_causal, scale_of(query, scale)), type);
  weft::Tensor p = wide_operand(weights);
  const at::Tensor nothing = empty({}, at::kLong);
  at::Tensor kept = nothing;
  if (dropout_p > 0) {
    kept = give(kept_by_chance(p.shape(), dropout_p), at::kBool);
    p = p.mul(handle(kept).cast(p.dtype())).mul(dropout_p == 1 ? 0.0 : 1 / (1 - dropout_p));
  }
  const Sizes shape{query.size(0), query.size(1), query.size(2), value.size(3)};
  return {give_heads(call<kAttended>({p.dtype(), shape}, heads, p, wide_operand(value)), query),
          std::move(weights),
          at::Tensor(),
          at::Tensor(),
          query.size(2),
          key.size(2),
          std::move(kept),
          nothing,
          at::Tensor()};
}

// Summed over the axes along which a tensor of this shape was broadcast.
weft::Tensor summed_to(const weft::Tensor& x, at::IntArrayRef shape) {
  std::vector<int64_t> over;
  const int64_t more = x.ndim() - int64_t(shape.size());
  for (int64_t i = 0; i < x.ndim(); i++) {
    if (i < more || (shape[size_t(i - more)] == 1 && x.shape()[size_t(i)] != 1)) over.push_back(i);
  }
  return over.empty() ? x : x.sum(over, true).reshape(ints(shape));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& mask, std::array<bool, 4> wanted, const at::Tensor&,
    const at::Tensor& weights, const at::Tensor&, const at::Tensor&, int64_t, int64_t,
    double dropout_p, bool, const at::Tensor& kept, const at::Tensor&,
    std::optional<double> scale) {
  const Heads heads(query, key);
  const double factor = scale_of(query, scale);
  const weft::Tensor g = heads.of_queries(wide_operand(gradient));
  const weft::Tensor p = heads.of_queries(wide_operand(weights));
  const auto dropped = [&](const weft::Tensor& x) {
    if (dropout_p == 0) return x;
    return x.mul(heads.of_queries(handle(kept)).cast(x.dtype()))
        .mul(dropout_p == 1 ? 0.0 : 1 / (1 - dropout_p));
  };
  at::Tensor by_query, by_key, by_value, by_mask;
  if (wanted[2]) {
    const weft::Tensor by = dropped(p).transpose(-2, -1).matmul(g);
    by_value = give_heads(heads.summed(by), value);
  }
  if (!wanted[0] && !wanted[1] && !wanted[3]) return {by_query, by_key, by_value, by_mask};
  const weft::Tensor v = heads.of_shared(wide_operand(value));
  const weft::Tensor by_p = dropped(g.matmul(v.transpose(-2, -1)));
  const std::vector<int64_t> last{-1};
  // As narrow as what it is multiplied by: a product of two narrow factors.
  const weft::Tensor by_scores = p.mul(by_p.sub(by_p.mul(p).sum(last, true)))
                                     .cast(dtype_of(query.scalar_type()))
                                     .cast(by_p.dtype());
  if (wanted[0]) {
    const weft::Tensor k = heads.of_shared(wide_operand(key));
    by_query = give_heads(heads.merged(by_scores.matmul(k).mul(factor)), query);
  }
  if (wanted[1]) {
    const weft::Tensor q = heads.of_queries(wide_operand(query));
    const weft::Tensor by = by_scores.transpose(-2, -1).matmul(q).mul(factor);
    by_key = give_heads(heads.summed(by), key);
  }
  if (wanted[3] && mask.defined()) {
    by_mask = give(summed_to(heads.merged(by_scores), mask.sizes()), mask.scalar_type());
  }
  return {std::move(by_query), std::move(by_key), std::move(by_value), std::move(by_mask)};
}

// Which way PyTorch's attention goes: here, or by its formula of other operators.
int64_t choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const MaybeTensor& mask, double, bool, std::optional<double>, bool enable_gqa) {
  const auto is_here = [&](const at::Tensor& t) { return t.device() == query.device(); };
  bool fits = at::globalContext().userEnabledOverrideableSDP() && fit(query, key, value) &&
              is_here(key) && is_here(value) && c10::isFloatingType(query.scalar_type());
  fits = fits && (enable_gqa || query.sym_size(1) == key.sym_size(1));
  fits = fits && (!is_given(mask) || is_here(*mask)) && fits_as_mask(mask, query, key);
  return int64_t(fits ? at::SDPBackend::overrideable : at::SDPBackend::math);
}
int64_t choice_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const MaybeTensor& mask, double dropout_p, bool is_causal,
                  std::optional<double> scale, bool enable_gqa) {
  return choice(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_scaled_dot_product_fused_attention_overrideable, attention>(m);
  native<at::_ops::_scaled_dot_product_fused_attention_overrideable_backward, attention_backward>(
      m);
  native<at::_ops::_fused_sdp_choice, choice_of, Others::kGiven>(m);
}

#if WEFT_SHAPES_OF_ATTENTION
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> shapes_of_backward(
    const at::Tensor&, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& mask, std::array<bool, 4>, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt, double, bool, const at::Tensor&,
    const at::Tensor&, std::optional<double>) {
  return {at::empty_like(query), at::empty_like(key), at::empty_like(value),
          mask.defined() ? at::empty_like(mask) : at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {  // NOLINT
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(shapes_of_backward));
}
#endif

}  // namespace
}  // namespace weft::pytorch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &weft::pytorch::choice)
}  // namespace at::native
