// Negative log likelihood: of log-probabilities, that of the class of each row. The gradient finds
// classes by comparing: it is elementwise. Both fail where a class is none.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/core/Reduction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include "convert.h"
#include "formulas.h"
#include "native.h"
#include "one_type.h"
#include "operators.h"
#include "storage.h"
#include "structured.h"
#include "tensor/calls.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/positions.h"
#include "weft/dtype.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using MaybeTensor = std::optional<at::Tensor>;
using Two = std::array<weft::Tensor, 2>;

// What classes there are: along axis 1, or axis 0 of a vector.
struct Classes {
  int64_t rank, count, ignored;
  bool are_checked;  // those given are surely classes

  auto fields() { return std::tie(rank, count, ignored, are_checked); }
  int64_t axis() const { return rank == 1 ? 0 : 1; }
};
// Throws IndexError where the classes are in memory and one is none.
Classes classes_for(const at::Tensor& self, const weft::Tensor& target, int64_t ignored) {
  Classes classes{.rank = self.dim(), .count = 0, .ignored = ignored, .are_checked = false};
  classes.count = self.size(classes.axis());
  classes.are_checked = are_classes("nll_loss", target, classes.axis(), classes.count, ignored);
  return classes;
}

struct Rows {
  weft::Tensor classes;                 // of each row, any where it is ignored
  weft::Tensor counts;                  // whether it is not ignored
  std::optional<weft::Tensor> weights;  // of each row
};
Rows rows_of(const weft::Tensor& target, const std::optional<weft::Tensor>& weight,
             const Classes& among, DType type) {
  const weft::Tensor counts = target.cast(dtypes::int64).ne(among.ignored);
  const weft::Tensor classes =
      among.are_checked ? tensor_of(within(read(target.cast(dtypes::int64)), among.count))
                        : as_classes("nll_loss", target, among.axis(), among.count, among.ignored);
  if (!weight) return {classes, counts, {}};
  const weft::Tensor of_class = weight->cast(type).reshape({weight->numel()});
  return {classes, counts,
          weft::Tensor::where(
              counts, of_class.index_select(0, classes.flatten()).reshape(classes.shape()), 0.0)};
}

Two losses_of(const weft::Tensor& x, const weft::Tensor& target,
              const std::optional<weft::Tensor>& weight, int64_t reduction, const Classes& among) {
  Rows rows = rows_of(target, weight, among, x.dtype());
  const weft::Tensor& index = rows.classes;
  const weft::Tensor at_class =
      x.gather(among.axis(), x.ndim() == 1 ? index.reshape({1}) : index.unsqueeze(1));
  weft::Tensor losses = at_class.reshape(rows.classes.shape()).neg();
  if (rows.weights) losses = losses.mul(*rows.weights);
  losses = weft::Tensor::where(rows.counts, losses, 0.0);
  if (reduction == at::Reduction::None) {
    return {losses, weft::Tensor::zeros({}, x.dtype(), x.device())};
  }
  const weft::Tensor total = rows.weights ? rows.weights->sum() : rows.counts.cast(x.dtype()).sum();
  const weft::Tensor sum = losses.sum();
  return {reduction == at::Reduction::Mean ? sum.div(total) : sum, total};
}

// The loss, or the weight of all that was counted.
constexpr auto kLoss = row("nll_loss", [](bool is_weight, int64_t reduction, const Classes& among,
                                          const weft::Tensor& x, const weft::Tensor& target) {
  return losses_of(x, target, {}, reduction, among)[is_weight ? 1 : 0];
});

Two forward(const at::Tensor& self, const at::Tensor& target, const MaybeTensor& weight,
            int64_t reduction, int64_t ignored) {
  check_one_type(self, weight);
  const weft::Tensor x = wide_operand(self), t = operand(target);
  const Classes among = classes_for(self, t, ignored);
  if (is_given(weight)) {
    return losses_of(x, t, wide_operand(weight), reduction, among);
  }
  const Ints shape = reduction == at::Reduction::None ? t.shape() : Ints();
  return {call<kLoss>({x.dtype(), shape}, false, reduction, among, x, t),
          call<kLoss>({x.dtype(), {}}, true, reduction, among, x, t)};
}

weft::Tensor losses_pulled_back(const weft::Tensor& gradient, const weft::Tensor& target,
                                const std::optional<weft::Tensor>& weight,
                                const weft::Tensor& total_weight, int64_t reduction,
                                const Classes& among) {
  weft::Tensor g = gradient.neg();
  if (reduction == at::Reduction::Mean) g = g.div(total_weight);
  Rows rows = rows_of(target, weight, among, g.dtype());
  if (rows.weights) g = g.mul(*rows.weights);
  g = weft::Tensor::where(rows.counts, g, 0.0);
  const auto by_row = [&](const weft::Tensor& x) {
    if (among.rank == 1) return x.reshape({1});
    return x.ndim() == 0 ? x : x.unsqueeze(1);
  };
  const weft::Tensor place =
      positions(weft_device(), among.count, size_t(among.axis()), size_t(among.rank));
  return weft::Tensor::where(place.eq(by_row(rows.classes)), by_row(g), 0.0);
}

constexpr auto kLossBackward =
    row("nll_loss_backward", [](int64_t reduction, const Classes& among, const weft::Tensor& g,
                                const weft::Tensor& target, const weft::Tensor& total) {
      return losses_pulled_back(g, target, {}, total, reduction, among);
    });

weft::Tensor backward(const at::Tensor& gradient, const at::Tensor& self, const at::Tensor& target,
                      const MaybeTensor& weight, int64_t reduction, int64_t ignored,
                      const at::Tensor& total_weight) {
  check_one_type(self, gradient);
  check_one_type(self, weight);
  check_one_type(self, total_weight);
  const weft::Tensor g = wide_operand(gradient), t = operand(target);
  const Classes among = classes_for(self, t, ignored);
  const weft::Tensor total = wide_operand(total_weight);
  if (is_given(weight)) {
    return losses_pulled_back(g, t, wide_operand(weight), total, reduction, among);
  }
  return call<kLossBackward>({g.dtype(), ints(self.sizes())}, reduction, among, g, t, total);
}

Two nll_forward(const Shaped&, const at::Tensor& self, const at::Tensor& target,
                const MaybeTensor& weight, int64_t reduction, int64_t ignored) {
  if (self.numel() == 0 || target.numel() == 0) {  // nothing to add up
    const weft::Tensor zero = number(0, self.scalar_type());
    return {reduction == at::Reduction::Mean ? zero.div(zero) : zero, zero};
  }
  return forward(self, target, weight, reduction, ignored);
}
weft::Tensor nll_backward(const Shaped&, const at::Tensor& gradient, const at::Tensor& self,
                          const at::Tensor& target, const MaybeTensor& weight, int64_t reduction,
                          int64_t ignored, const at::Tensor& total_weight) {
  return backward(gradient, self, target, weight, reduction, ignored, total_weight);
}

// ---- of planes: (n, classes, height, width)

void check_planes(const at::Tensor& self, const at::Tensor& target, const MaybeTensor& weight) {
  TORCH_CHECK(target.dim() == 3, "only batches of spatial targets supported (3D tensors) but got ",
              "targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got ",
              "input of dimension: ", self.dim());
  TORCH_CHECK(!is_given(weight) || weight->numel() == self.size(1), "weight tensor should be ",
              "defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) &&
                  self.size(3) == target.size(2),
              "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
}

std::tuple<at::Tensor, at::Tensor> nll2d_forward(const at::Tensor& self, const at::Tensor& target,
                                                 const MaybeTensor& weight, int64_t reduction,
                                                 int64_t ignored) {
  check_planes(self, target, weight);
  const c10::ScalarType type = self.scalar_type();
  if (target.numel() == 0 && reduction == at::Reduction::None) {
    at::Tensor total = empty({}, type);
    put(total, number(0, type));
    return {empty(target.sizes(), type), total};
  }
  Two both = target.numel() == 0 ? nll_forward({{}, {}}, self, target, weight, reduction, ignored)
                                 : forward(self, target, weight, reduction, ignored);
  return {give(std::move(both[0]), type), give(std::move(both[1]), type)};
}
std::tuple<at::Tensor&, at::Tensor&> nll2d_forward_out(const at::Tensor& self,
                                                       const at::Tensor& target,
                                                       const MaybeTensor& weight, int64_t reduction,
                                                       int64_t ignored, at::Tensor& output,
                                                       at::Tensor& total) {
  auto [loss, weights] = nll2d_forward(self, target, weight, reduction, ignored);
  at::native::resize_output(output, loss.sizes());
  at::native::resize_output(total, weights.sizes());
  put(output, handle(loss));
  put(total, handle(weights));
  return {output, total};
}
at::Tensor nll2d_backward(const at::Tensor& gradient, const at::Tensor& self,
                          const at::Tensor& target, const MaybeTensor& weight, int64_t reduction,
                          int64_t ignored, const at::Tensor& total_weight) {
  check_planes(self, target, weight);
  TORCH_CHECK(reduction == at::Reduction::None ? gradient.sizes() == target.sizes()
                                               : gradient.dim() <= 1 && gradient.numel() == 1,
              "nll_loss2d_backward: unexpected shape of grad_output ", gradient.sizes());
  TORCH_CHECK(total_weight.numel() == 1, "expected total_weight to be a single element tensor, ",
              "got: ", total_weight.sizes());
  if (self.numel() == 0) return empty(self.sizes(), self.scalar_type());
  return give(backward(gradient, self, target, weight, reduction, ignored, total_weight)
                  .expand(ints(self.sizes())),
              self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // NOLINT
  structured<at::meta::structured_nll_loss_forward, nll_forward, at::_ops::nll_loss_forward,
             at::_ops::nll_loss_forward_output>(m);
  structured<at::meta::structured_nll_loss_backward, nll_backward, at::_ops::nll_loss_backward,
             at::_ops::nll_loss_backward_grad_input>(m);
  native<at::_ops::nll_loss2d_forward, nll2d_forward>(m);
  native<at::_ops::nll_loss2d_forward_output, nll2d_forward_out>(m);
  native<at::_ops::nll_loss2d_backward, nll2d_backward>(m);
}

}  // namespace
}  // namespace weft::pytorch
