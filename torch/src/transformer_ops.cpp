// Layers of transformers as one operator: what torch.nn does while it does not train.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/library.h>

#include "formulas.h"
#include "native.h"
#include "operators.h"
#include "storage.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;

constexpr double kNever = -std::numeric_limits<double>::infinity();

weft::Tensor linear(const weft::Tensor& x, const weft::Tensor& weight, const weft::Tensor& bias) {
  return x.matmul(weight.transpose(0, 1)).add(bias);
}

// What attention does not see, beside scores of (batch, heads, queries, keys). Kinds: 0 for
// (queries, keys), 1 for (batch, keys), 2 for all axes.
weft::Tensor hidden(const at::Tensor& mask, std::optional<int64_t> kind) {
  weft::Tensor m = operand(mask).cast(dtypes::bool_);
  if (mask.dim() == 2 && kind == 1) return m.reshape({mask.size(0), 1, 1, mask.size(1)});
  return m;
}

struct Projection {
  weft::Tensor weight, bias;

  weft::Tensor part(const weft::Tensor& x, int64_t i, int64_t size) const {
    return linear(x, weight.shrink({{i * size, (i + 1) * size}, {0, weight.shape()[1]}}),
                  bias.shrink({{i * size, (i + 1) * size}}));
  }
};

void check_heads(int64_t embed_dim, int64_t heads) {
  TORCH_CHECK(heads > 0 && embed_dim % heads == 0,
              "`embed_dim` must divide evenly by `num_heads`, got ", embed_dim, " and ", heads);
}

struct Attended {
  weft::Tensor y, weights;
};
Attended attend(const weft::Tensor& query, const weft::Tensor& key, const weft::Tensor& value,
                int64_t size, int64_t heads, const Projection& in, const Projection& out,
                const MaybeTensor& mask, std::optional<int64_t> kind) {
  const int64_t head_size = size / heads;
  const auto in_heads = [&](const weft::Tensor& x) {
    return x.unflatten(-1, {heads, head_size}).permute({0, 2, 1, 3});
  };
  const weft::Tensor q = in_heads(in.part(query, 0, size)), k = in_heads(in.part(key, 1, size)),
                     v = in_heads(in.part(value, 2, size));
  weft::Tensor scores = q.matmul(k.transpose(-2, -1)).mul(1 / std::sqrt(double(head_size)));
  if (is_given(mask)) scores = weft::Tensor::where(hidden(*mask, kind), kNever, scores);
  const weft::Tensor weights = scores.softmax(-1);
  const weft::Tensor merged = weights.matmul(v).permute({0, 2, 1, 3}).flatten(2, 3);
  return {linear(merged, out.weight, out.bias), weights};
}

std::tuple<at::Tensor, at::Tensor> multi_head_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t embed_dim,
    int64_t heads, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
    const at::Tensor& proj_weight, const at::Tensor& proj_bias, const MaybeTensor& mask,
    bool need_weights, bool average, std::optional<int64_t> mask_type) {
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim,
              " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(key.dim() == 3, "expected 3-D `key`, got ", key.dim(), "-D tensor");
  TORCH_CHECK(value.dim() == 3, "expected 3-D `value`, got ", value.dim(), "-D tensor");
  check_heads(embed_dim, heads);
  const c10::ScalarType type = query.scalar_type();
  const auto [y, weights] =
      attend(wide_operand(query), wide_operand(key), wide_operand(value), embed_dim, heads,
             {wide_operand(qkv_weight), wide_operand(qkv_bias)},
             {wide_operand(proj_weight), wide_operand(proj_bias)}, mask, mask_type);
  at::Tensor kept;
  if (need_weights) kept = give(average ? weights.mean(std::vector<int64_t>{1}) : weights, type);
  return {give(y, type), std::move(kept)};
}

weft::Tensor normalized(const weft::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        double eps) {
  return x.layernorm(std::vector<int64_t>{-1}, eps)
      .mul(wide_operand(weight))
      .add(wide_operand(bias));
}

at::Tensor encoder_layer(const at::Tensor& src, int64_t embed_dim, int64_t heads,
                         const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                         const at::Tensor& proj_weight, const at::Tensor& proj_bias, bool use_gelu,
                         bool norm_first, double eps, const at::Tensor& norm_weight_1,
                         const at::Tensor& norm_bias_1, const at::Tensor& norm_weight_2,
                         const at::Tensor& norm_bias_2, const at::Tensor& ffn_weight_1,
                         const at::Tensor& ffn_bias_1, const at::Tensor& ffn_weight_2,
                         const at::Tensor& ffn_bias_2, const MaybeTensor& mask,
                         std::optional<int64_t> mask_type) {
  TORCH_CHECK(src.dim() == 3 && src.size(2) == embed_dim, "expected a source of (batch, length, ",
              embed_dim, "), got ", src.sizes());
  check_heads(embed_dim, heads);
  const weft::Tensor x = wide_operand(src);
  const weft::Tensor seen = norm_first ? normalized(x, norm_weight_1, norm_bias_1, eps) : x;
  weft::Tensor y =
      attend(seen, seen, seen, embed_dim, heads, {wide_operand(qkv_weight), wide_operand(qkv_bias)},
             {wide_operand(proj_weight), wide_operand(proj_bias)}, mask, mask_type)
          .y.add(x);
  if (!norm_first) y = normalized(y, norm_weight_1, norm_bias_1, eps);
  const weft::Tensor fed = norm_first ? normalized(y, norm_weight_2, norm_bias_2, eps) : y;
  const weft::Tensor inner = linear(fed, wide_operand(ffn_weight_1), wide_operand(ffn_bias_1));
  const weft::Tensor active = use_gelu ? inner.gelu(Gelu::kErf) : inner.relu();
  y = linear(active, wide_operand(ffn_weight_2), wide_operand(ffn_bias_2)).add(y);
  if (!norm_first) y = normalized(y, norm_weight_2, norm_bias_2, eps);
  return give(std::move(y), src.scalar_type());
}

// Tensors of the device are not nested: torch.nn asks this before it makes one.
bool is_left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  native<at::_ops::_native_multi_head_attention, multi_head_attention>(m);
  native<at::_ops::_transformer_encoder_layer_fwd, encoder_layer>(m);
  native<at::_ops::_nested_tensor_from_mask_left_aligned, is_left_aligned, Others::kGiven>(m);
}

}  // namespace
}  // namespace weft::pytorch
