// Losses. A class is chosen by comparing its number with all of them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "ir/dtype.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "tensor/places.h"
#include "tensor/term.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kSum ? losses.sum() : losses.mean();
}

void check_same_shape(std::string_view what, const Tensor& x, const Tensor& y) {
  if (Sizes(x.shape()) == Sizes(y.shape())) return;
  throw ShapeError(fmt::format("[{}] the shapes of both are the same; given are {} and {}", what,
                               text_of_shape(x.shape()), text_of_shape(y.shape())));
}

// The axis of classes, and that there is one of `classes` for each row of x.
size_t class_axis(std::string_view what, const Tensor& x, const Tensor& classes) {
  const size_t rank = x.shape().size(), axis = rank > 1 ? 1 : 0;
  Sizes rows(x.shape());
  if (rank > 0) rows.erase(axis);
  if (rank == 0 || rows != Sizes(classes.shape())) {
    throw ShapeError(fmt::format("[{}] {} has classes of shape {}; given are {}", what,
                                 text_of_shape(x.shape()), text_of_shape(rows),
                                 text_of_shape(classes.shape())));
  }
  return axis;
}

// x at the class of each row: (n, classes, ...) and (n, ...) -> (n, ...).
Tensor at_class(const Tensor& x, const Tensor& classes, size_t axis) {
  const Tensor is_class = places_along(x, axis).eq(classes.unsqueeze(int64_t(axis)));
  return Tensor::where(is_class, x, 0.0).sum(std::vector<int64_t>{int64_t(axis)});
}

// Of log-probabilities. Rows of the class that is ignored count nothing.
Tensor negative_likelihood(std::string_view what, const Tensor& x, const Tensor& y, size_t axis,
                           const std::optional<Tensor>& weight, std::optional<int64_t> ignored,
                           Reduction reduction) {
  const Tensor classes = as_classes(what, y.dtype().is_bool() ? y.cast(dtypes::uint8) : y,
                                    int64_t(axis), x.shape()[axis], ignored);
  Tensor losses = at_class(x, classes, axis).neg();
  std::optional<Tensor> weights;  // of rows
  if (weight) {
    Sizes shape(x.shape().size(), 1);
    shape[axis] = x.shape()[axis];
    weights = at_class(weight->cast(x.dtype()).reshape(shape).expand(x.shape()), classes, axis);
    losses = losses.mul(*weights);
  }
  if (ignored) {
    const Tensor counts = y.ne(*ignored);
    losses = Tensor::where(counts, losses, 0.0);
    weights = weights ? Tensor::where(counts, *weights, 0.0) : counts.cast(x.dtype());
  }
  if (reduction != Reduction::kMean || !weights) return reduced(losses, reduction);
  return losses.sum().div(weights->sum());
}

Tensor computed(const Tensor& x) { return x.cast(computing_dtype(real_dtype(x.dtype()))); }

void check_smoothing(std::string_view what, double smoothing) {
  if (smoothing >= 0 && smoothing <= 1) return;
  throw ShapeError(
      fmt::format("[{}] label_smoothing is from 0 to 1; given is {}", what, smoothing));
}

// Rows with classes as integers. Smoothing is a mean over all classes.
Tensor of_classes(std::string_view what, const Tensor& log_probabilities, const Tensor& y,
                  size_t axis, double smoothing, std::optional<int64_t> ignored,
                  Reduction reduction) {
  const Tensor& x = log_probabilities;
  Tensor loss = negative_likelihood(what, x, y, axis, {}, ignored, reduction);
  if (smoothing == 0) return loss;
  Tensor spread = x.mean(std::vector<int64_t>{int64_t(axis)}).neg();
  if (ignored) {
    const Tensor counts = y.ne(*ignored);
    spread = Tensor::where(counts, spread, 0.0);
    spread = reduction == Reduction::kMean ? spread.sum().div(counts.sum().cast(x.dtype()))
                                           : reduced(spread, reduction);
  } else {
    spread = reduced(spread, reduction);
  }
  return loss.mul(1 - smoothing).add(spread.mul(smoothing));
}

}  // namespace

// log is bounded below by -100, as in PyTorch.
Tensor Tensor::binary_crossentropy(const Tensor& y, Reduction reduction) const {
  check_same_shape("binary_crossentropy", *this, y);
  constexpr double least = -100;
  const Tensor p = computed(*this), t = y.cast(p.dtype());
  const Tensor yes = p.log().clamp(least, {}), no = (1.0 - p).log().clamp(least, {});
  const Tensor losses = (t * yes + (1.0 - t) * no).neg();
  return reduced(losses, reduction).cast(real_dtype(dtype()));
}

// y softplus(-x) w + (1 - y) softplus(x)
Tensor Tensor::binary_crossentropy_logits(const Tensor& y, Reduction reduction,
                                          std::optional<Tensor> pos_weight) const {
  check_same_shape("binary_crossentropy_logits", *this, y);
  const Tensor x = computed(*this), t = y.cast(x.dtype());
  Tensor yes = t * x.neg().softplus();
  if (pos_weight) yes = yes * pos_weight->cast(x.dtype());
  const Tensor losses = yes + (1.0 - t) * x.softplus();
  return reduced(losses, reduction).cast(real_dtype(dtype()));
}

Tensor Tensor::cross_entropy(const Tensor& y, Reduction reduction, double label_smoothing) const {
  check_smoothing("cross_entropy", label_smoothing);
  constexpr int64_t ignored = -100;  // as in PyTorch
  const auto axis = int64_t(ndim() > 1 ? 1 : 0);
  const Tensor x = computed(*this).log_softmax(axis);
  const DType result = real_dtype(dtype());
  if (!y.dtype().is_float()) {
    const size_t along = class_axis("cross_entropy", *this, y);
    return of_classes("cross_entropy", x, y, along, label_smoothing, ignored, reduction)
        .cast(result);
  }
  check_same_shape("cross_entropy", *this, y);
  const double share = label_smoothing / double(x.shape()[size_t(axis)]);
  const Tensor target = y.cast(x.dtype()).mul(1 - label_smoothing).add(share);
  const Tensor losses = (target * x).sum(std::vector<int64_t>{axis}).neg();
  return reduced(losses, reduction).cast(result);
}

Tensor Tensor::nll_loss(const Tensor& y, std::optional<Tensor> weight,
                        std::optional<int64_t> ignore_index, Reduction reduction) const {
  const size_t axis = class_axis("nll_loss", *this, y);
  if (weight && (weight->ndim() != 1 || weight->shape()[0] != shape()[axis])) {
    throw ShapeError(fmt::format("[nll_loss] {} has weights of shape ({}); given are {}",
                                 text_of_shape(shape()), shape()[axis],
                                 text_of_shape(weight->shape())));
  }
  return negative_likelihood("nll_loss", computed(*this), y, axis, weight, ignore_index, reduction)
      .cast(real_dtype(dtype()));
}

Tensor Tensor::sparse_categorical_crossentropy(const Tensor& y, int64_t ignore_index,
                                               double label_smoothing, Reduction reduction) const {
  constexpr const char* what = "sparse_categorical_crossentropy";
  check_smoothing(what, label_smoothing);
  if (ndim() == 0 || Sizes(shape().first(shape().size() - 1)) != Sizes(y.shape())) {
    throw ShapeError(fmt::format("[{}] the classes of {} are along its last axis; given are {}",
                                 what, text_of_shape(shape()), text_of_shape(y.shape())));
  }
  const Tensor x = computed(*this).log_softmax(-1);
  return of_classes(what, x, y, shape().size() - 1, label_smoothing, ignore_index, reduction)
      .cast(real_dtype(dtype()));
}

}  // namespace weft
