// Tensors: lazy, and exactly as if they were not.
//
//   auto a = weft::arange(16).reshape({4, 4});
//   a({1, _}) = 5;
//   float s = a.sum().item<float>();
//
// Building runs nothing; values are computed when they are asked for (realize, bytes, data, item).
// Reading sees what was written before it, a result keeps the values that it was made from, and
// every view of a tensor sees every write to it.
//
// Errors are raised at the call, name the operation, and leave every tensor as it was: ShapeError,
// DTypeError, IndexError, and DeviceError where tensors of two devices meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/dtype.h"
#include "weft/index.h"    // IWYU pragma: export
#include "weft/number.h"   // IWYU pragma: export
#include "weft/options.h"  // IWYU pragma: export
#include "weft/ref.h"
#include "weft/scheduled_kernel.h"
#include "weft/view.h"

namespace weft {

enum class Op : uint8_t;  // ir/op.h
class Value;
void retain(Value* value) noexcept;
void release(Value* value) noexcept;

// Axes of a reduction; none given: all of them.
using Axes = std::optional<std::vector<int64_t>>;
// Two numbers per axis.
using Pairs = std::span<const std::pair<int64_t, int64_t>>;

// A handle: a view of a storage. Copies are further handles on the same memory. One that was moved
// from can only be assigned to or destroyed.
class Tensor {
 public:
  // ---- creation. The device is the default one where it is not given.
  static Tensor empty(Ints shape, DType dtype = dtypes::float32, std::string_view device = {});
  // Without a dtype: bool, int32 or float32, by the kind of the number.
  static Tensor full(Ints shape, Number value, std::optional<DType> dtype = {},
                     std::string_view device = {});
  static Tensor zeros(Ints shape, DType dtype = dtypes::float32, std::string_view device = {});
  static Tensor ones(Ints shape, DType dtype = dtypes::float32, std::string_view device = {});
  static Tensor arange(Number stop);
  static Tensor arange(Number start, Number stop, Number step = int64_t(1),
                       std::optional<DType> dtype = {}, std::string_view device = {});
  // Copies `bytes`: the elements in row-major order.
  static Tensor from_bytes(std::span<const std::byte> bytes, Ints shape, DType dtype,
                           std::string_view device = {});
  template <class T>
  static Tensor from(std::span<const T> elements, Ints shape, std::string_view device = {}) {
    return from_bytes(std::as_bytes(elements), shape, dtype_of<T>, device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> elements) {
    return from(std::span<const T>(elements.begin(), elements.size()), {int64_t(elements.size())});
  }

  static Tensor eye(int64_t n, std::optional<int64_t> m = {}, DType dtype = dtypes::float32,
                    std::string_view device = {});
  // `steps` numbers from start to stop, both included.
  static Tensor linspace(Number start, Number stop, int64_t steps, DType dtype = dtypes::float32,
                         std::string_view device = {});
  // Of this shape; of this dtype and device where they are not given.
  Tensor full_like(Number value, std::optional<DType> dtype = {},
                   std::string_view device = {}) const;
  Tensor empty_like(std::optional<DType> dtype = {}, std::string_view device = {}) const;
  Tensor zeros_like(std::optional<DType> dtype = {}, std::string_view device = {}) const;
  Tensor ones_like(std::optional<DType> dtype = {}, std::string_view device = {}) const;
  // Vectors (scalars count as vectors of one) as the coordinates of a grid: views. Axis i of the
  // grid is vector i; "xy" exchanges the first two.
  static std::vector<Tensor> meshgrid(std::span<const Tensor> vectors,
                                      std::string_view indexing = "ij");

  // ---- random: docs/tensor.md says which numbers. All draw from the generator of the device.
  // All generators begin anew.
  static void manual_seed(int64_t seed = 0);
  // The key of the generator of a device and its counter: a copy, uint64 of shape (2).
  static Tensor get_rng_state(std::string_view device = {});
  static void set_rng_state(const Tensor& state, std::string_view device = {});
  static Tensor rand(Ints shape, DType dtype = dtypes::float32, std::string_view device = {});
  static Tensor randn(Ints shape, DType dtype = dtypes::float32, std::string_view device = {});
  // Integers from low to high - 1.
  static Tensor randint(Ints shape, int64_t low = 0, int64_t high = 10, DType dtype = dtypes::int32,
                        std::string_view device = {});
  static Tensor uniform(Ints shape, double low = 0.0, double high = 1.0,
                        DType dtype = dtypes::float32, std::string_view device = {});
  static Tensor normal(Ints shape, double mean = 0.0, double std = 1.0,
                       DType dtype = dtypes::float32, std::string_view device = {});
  // From -1 to 1, over the square root of the number of elements.
  static Tensor scaled_uniform(Ints shape, DType dtype = dtypes::float32,
                               std::string_view device = {});
  // First weights of layers. The first axis counts outputs, all others inputs.
  static Tensor glorot_uniform(Ints shape, DType dtype = dtypes::float32,
                               std::string_view device = {});
  static Tensor kaiming_uniform(Ints shape, double a = 0.01, DType dtype = dtypes::float32,
                                std::string_view device = {});
  static Tensor kaiming_normal(Ints shape, double a = 0.01, DType dtype = dtypes::float32,
                               std::string_view device = {});
  Tensor rand_like(std::optional<DType> dtype = {}, std::string_view device = {}) const;
  Tensor randn_like(std::optional<DType> dtype = {}, std::string_view device = {}) const;
  // 0, 1, ... n - 1 in some order.
  static Tensor randperm(int64_t n, DType dtype = dtypes::int32, std::string_view device = {});
  // Indices along the last axis of a vector or a matrix, each as likely as its weight: int32. Not
  // one twice without replacement; then there are at least as many weights that are not 0.
  Tensor multinomial(int64_t num_samples = 1, bool replacement = false) const;
  // While is_training(): elements are 0 with probability p, the others over 1 - p. Else itself.
  Tensor dropout(double p = 0.5) const;
  static bool is_training();
  static void set_training(bool is_training);

  // ---- what it is
  DType dtype() const { return view_.dtype; }
  Ints shape() const { return view_.shape; }
  const View& view() const { return view_; }
  int64_t ndim() const { return int64_t(view_.rank()); }
  int64_t numel() const { return view_.numel(); }
  std::string device() const;
  bool is_contiguous() const;  // its elements lie in row-major order
  // Both are views of one memory.
  bool shares_memory_with(const Tensor& other) const { return storage_ == other.storage_; }
  // Its memory holds its values: reading them runs nothing.
  bool is_realized() const;

  // ---- elementwise: broadcast, promoted as in PyTorch; the result is new
  // Any unary op of ops.def but CAST and BITCAST. Functions of reals (SQRT, EXP, ...) give float32
  // of integers and bools.
  Tensor unary(Op op) const;
  // Any binary op. FDIV is true division; IDIV and MOD round down, as in Python, on floats too.
  Tensor binary(Op op, const Tensor& y) const;
  Tensor binary(Op op, Number y) const;
  Tensor reverse_binary(Op op, Number x) const;  // x op this
  static Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
  static Tensor where(const Tensor& condition, const Tensor& x, Number y);
  static Tensor where(const Tensor& condition, Number x, const Tensor& y);
  static Tensor where(const Tensor& condition, Number x, Number y);
  Tensor cast(DType dtype) const;     // itself where it has this dtype already
  Tensor bitcast(DType dtype) const;  // of the same width: a view

  Tensor add(const Tensor& y) const;
  Tensor sub(const Tensor& y) const;
  Tensor mul(const Tensor& y) const;
  Tensor div(const Tensor& y) const;
  Tensor add(Number y) const;
  Tensor sub(Number y) const;
  Tensor mul(Number y) const;
  Tensor div(Number y) const;
  Tensor neg() const;

  // ---- arithmetic: broadcast and promoted in the same way
  Tensor div(Operand y, Rounding rounding) const;
  Tensor mod(Operand y) const;   // the sign of y, as in Python
  Tensor fmod(Operand y) const;  // the sign of this, as in C
  // As C's pow. Integers stay integers; a negative power of them is 0 but for 1 and -1, and as a
  // number a DTypeError.
  Tensor pow(Operand y) const;
  Tensor reverse_pow(Number x) const;  // x to the power of this
  Tensor lt(Operand y) const;
  Tensor le(Operand y) const;
  Tensor gt(Operand y) const;
  Tensor ge(Operand y) const;
  Tensor eq(Operand y) const;
  Tensor ne(Operand y) const;
  Tensor maximum(Operand y) const;  // NaN wins
  Tensor minimum(Operand y) const;
  Tensor clamp(std::optional<Operand> least, std::optional<Operand> most) const;
  Tensor bitwise_and(Operand y) const;
  Tensor bitwise_or(Operand y) const;
  Tensor bitwise_xor(Operand y) const;
  Tensor bitwise_not() const;
  Tensor lshift(Operand y) const;  // 0 where y is negative or past the width
  Tensor rshift(Operand y) const;
  Tensor logical_not() const;
  Tensor abs() const;
  Tensor sign() const;               // -1, 0 or 1; NaN stays
  Tensor copysign(Operand y) const;  // the size of this with the sign of y
  Tensor square() const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;  // halves to even
  Tensor isnan() const;
  Tensor isfinite() const;
  Tensor isinf(bool detect_positive = true, bool detect_negative = true) const;
  // |this - other| <= atol + rtol |other|, or equal.
  Tensor isclose(Operand other, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false) const;
  bool allclose(Operand other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;           // computes it
  Tensor lerp(const Tensor& end, Operand weight) const;  // this + weight (end - this)
  Tensor logaddexp(Operand y) const;                     // log(exp(this) + exp(y))
  Tensor hypot(Operand y) const;

  // ---- functions of reals: float32 of integers and bools; to a few units in the last place
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor reciprocal() const;
  Tensor exp() const;
  Tensor exp2() const;
  Tensor expm1() const;
  Tensor log() const;
  Tensor log2() const;
  Tensor log10() const;
  Tensor log1p() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tan() const;
  Tensor asin() const;
  Tensor acos() const;
  Tensor atan() const;
  Tensor atan2(Operand x) const;  // the angle of (x, this)
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor tanh() const;
  Tensor asinh() const;
  Tensor acosh() const;
  Tensor atanh() const;
  Tensor erf() const;

  // ---- activations
  Tensor relu() const;
  Tensor relu6() const;
  Tensor leaky_relu(double neg_slope = 0.01) const;
  Tensor elu(double alpha = 1.0) const;
  Tensor celu(double alpha = 1.0) const;
  Tensor selu(double alpha = 1.67326, double gamma = 1.0507) const;
  Tensor gelu(Gelu kind = Gelu::kTanh) const;
  Tensor quick_gelu() const;  // x sigmoid(1.702 x)
  Tensor silu() const;        // x sigmoid(x)
  Tensor swish() const { return silu(); }
  Tensor mish() const;  // x tanh(softplus(x))
  Tensor sigmoid() const;
  Tensor logsigmoid() const;
  Tensor softplus(double beta = 1.0) const;  // log(1 + exp(beta x)) / beta
  Tensor softsign() const;
  Tensor hardsigmoid(double alpha = 1.0 / 6, double beta = 0.5) const;
  Tensor hardswish() const;
  Tensor hardtanh(double min_val = -1, double max_val = 1) const;
  // Along an axis; in `dtype` where one is given.
  Tensor softmax(int64_t axis = -1, std::optional<DType> dtype = {}) const;
  Tensor softmin(int64_t axis = -1, std::optional<DType> dtype = {}) const;
  Tensor log_softmax(int64_t axis = -1, std::optional<DType> dtype = {}) const;
  Tensor layernorm(const Axes& axes = std::vector<int64_t>{-1}, double eps = 1e-5) const;
  Tensor normalize(double p = 2.0, int64_t dim = 1, double eps = 1e-12) const;

  // ---- reductions by ADD, MUL, MAX, MIN, AND, OR, XOR
  Tensor reduce(Op op, const Axes& axes = {}, bool keepdim = false) const;
  Tensor sum(const Axes& axes = {}, bool keepdim = false) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false) const;
  Tensor min(const Axes& axes = {}, bool keepdim = false) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;
  Tensor sum(const Axes& axes, bool keepdim, DType dtype) const;  // added in this dtype
  Tensor prod(const Axes& axes, bool keepdim, DType dtype) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false) const;
  // The first place of the largest or smallest element, which is NaN where there is one; of the
  // flat tensor without an axis.
  Tensor argmax(std::optional<int64_t> axis = {}, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> axis = {}, bool keepdim = false) const;
  // Squares of the distances to the mean, over their count less the correction.
  Tensor var(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  Tensor std(const Axes& axes = {}, bool keepdim = false, double correction = 1) const;
  std::pair<Tensor, Tensor> var_mean(const Axes& axes = {}, bool keepdim = false,
                                     double correction = 1) const;
  std::pair<Tensor, Tensor> std_mean(const Axes& axes = {}, bool keepdim = false,
                                     double correction = 1) const;
  Tensor logsumexp(const Axes& axes = {}, bool keepdim = false) const;
  Tensor matmul(const Tensor& y) const;  // NumPy's rules for any rank

  // ---- along an axis, element by element
  Tensor cumsum(int64_t axis = 0) const;
  Tensor cumprod(int64_t axis) const;
  // The largest or smallest element so far, and its last place.
  std::pair<Tensor, Tensor> cummax(int64_t axis = 0) const;
  std::pair<Tensor, Tensor> cummin(int64_t axis = 0) const;
  Tensor logcumsumexp(int64_t axis = 0) const;
  // Values and their places: equal ones stay in order, NaN is larger than all.
  std::pair<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false) const;
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true) const;

  // ---- losses. Classes are along axis 1, or 0 of a tensor of one axis.
  Tensor binary_crossentropy(const Tensor& y, Reduction reduction = Reduction::kMean) const;
  Tensor binary_crossentropy_logits(const Tensor& y, Reduction reduction = Reduction::kMean,
                                    std::optional<Tensor> pos_weight = {}) const;
  // y: classes as integers, or probabilities in this tensor's shape.
  Tensor cross_entropy(const Tensor& y, Reduction reduction = Reduction::kMean,
                       double label_smoothing = 0.0) const;
  Tensor nll_loss(const Tensor& y, std::optional<Tensor> weight = {},
                  std::optional<int64_t> ignore_index = {},
                  Reduction reduction = Reduction::kMean) const;
  // Classes are along the last axis.
  Tensor sparse_categorical_crossentropy(const Tensor& y, int64_t ignore_index = -1,
                                         double label_smoothing = 0.0,
                                         Reduction reduction = Reduction::kMean) const;

  // ---- views: they share memory wherever PyTorch's would
  Tensor reshape(Ints shape) const;  // one -1 is worked out; a copy where no view can do it
  Tensor permute(Ints order) const;
  Tensor transpose(int64_t a = 1, int64_t b = 0) const;
  Tensor flip(Ints axes) const;
  Tensor expand(Ints shape) const;  // -1 keeps a size; new axes come first
  Tensor shrink(Pairs begin_end) const;
  Tensor shrink(std::initializer_list<std::pair<int64_t, int64_t>> begin_end) const {
    return shrink(Pairs(begin_end.begin(), begin_end.size()));
  }
  Tensor unfold(int64_t axis, int64_t size, int64_t step) const;
  Tensor diagonal(int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1) const;
  // Relative to the storage, whatever this view of it is.
  Tensor as_strided(Ints shape, Ints strides, int64_t offset = 0) const;
  // With tensors among the indices it is a copy, by NumPy's rules: they broadcast against each
  // other, and ints are such tensors beside them. One of bools is realised: how many elements there
  // are depends on it. An index that is out of bounds is an IndexError: at the call where the
  // integers are in memory, else when the values are read.
  Tensor at(Indices index) const;
  Tensor at(std::initializer_list<Index> index) const {
    return at(Indices(index.begin(), index.size()));
  }
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;
  Tensor squeeze(std::optional<int64_t> axis = {}) const;
  Tensor unsqueeze(int64_t axis) const;

  // ---- new values
  Tensor pad(Pairs before_after, Number value = 0.0) const;  // a negative number takes away
  Tensor pad(std::initializer_list<std::pair<int64_t, int64_t>> before_after,
             Number value = 0.0) const {
    return pad(Pairs(before_after.begin(), before_after.size()), value);
  }
  Tensor roll(Ints shifts, const Axes& axes = {}) const;  // no axes: of the flat tensor
  static Tensor cat(std::span<const Tensor> parts, int64_t axis = 0);
  static Tensor cat(std::initializer_list<Tensor> parts, int64_t axis = 0) {
    return cat(std::span(parts.begin(), parts.size()), axis);
  }
  Tensor clone() const;
  Tensor contiguous() const;  // itself where it is contiguous already

  // ---- elements that integers name, as in PyTorch; the result is new
  // result[i][j][k] = this[index[i][j][k]][j][k] for dim 0, and so on.
  Tensor gather(int64_t dim, const Tensor& index) const;
  // This, with src[i][j][k] at [index[i][j][k]][j][k] for dim 0, and so on; of two at one place the
  // last one stays. With an op (ADD, MUL, MAX, MIN) they are combined with what is there.
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& src,
                 std::optional<Op> reduce = {}) const;
  Tensor scatter(int64_t dim, const Tensor& index, Number src, std::optional<Op> reduce = {}) const;
  // By "sum", "prod", "mean", "amax" or "amin"; without itself, only of what src has for a place.
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self = true) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor take(const Tensor& index) const;  // of the elements in row-major order
  // This, with alpha * source added to the places of dim that a one-dimensional index names.
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source,
                   Number alpha = int64_t(1)) const;
  Tensor index_put(Indices index, const Tensor& value, bool accumulate = false) const;
  Tensor masked_fill(const Tensor& mask, Number value) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  // The elements where a mask holds, in row-major order. With a size it is not realised: so many of
  // them, and fill_value behind the last.
  Tensor masked_select(const Tensor& mask, std::optional<int64_t> size = {},
                       Number fill_value = int64_t(0)) const;
  // Where elements are not 0: a row of places on all axes for each, int32.
  Tensor nonzero(std::optional<int64_t> size = {}, Number fill_value = int64_t(0)) const;
  Tensor one_hot(int64_t num_classes) const;

  // The same values on another device, copied when they are computed; itself on this one.
  Tensor to(std::string_view device) const;

  // ---- parts and arrangements
  // Views of parts along an axis: of the sizes given, of one size (the last one may be smaller), or
  // about as large as each other.
  std::vector<Tensor> split(Ints sizes, int64_t axis = 0) const;
  std::vector<Tensor> split(int64_t size, int64_t axis = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t axis = 0) const;
  static Tensor stack(std::span<const Tensor> parts, int64_t axis = 0);
  static Tensor stack(std::initializer_list<Tensor> parts, int64_t axis = 0) {
    return stack(std::span(parts.begin(), parts.size()), axis);
  }
  Tensor repeat(Ints repeats) const;  // all of it, along every axis; new axes come first
  // Every element, so often; without an axis of the flat tensor.
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> axis = {}) const;
  Tensor unflatten(int64_t axis, Ints sizes) const;
  Tensor movedim(Ints from, Ints to) const;  // the other axes keep their order: a view
  // At the end of every axis, to these sizes; -1 keeps one.
  Tensor pad_to(Ints shape, Number value = 0.0) const;
  Tensor shrink_to(Ints shape) const;
  // How pad finds the elements around: mirrored at the outermost, the outermost, the other end.
  enum class PadMode : uint8_t { kReflect, kReplicate, kCircular };
  Tensor pad(Pairs before_after, PadMode mode) const;
  // "b (h w) c -> b c h w": axes named, split and merged; `sizes` of names that are not known.
  using NamedSizes = std::span<const std::pair<std::string, int64_t>>;
  Tensor rearrange(std::string_view formula, NamedSizes sizes = {}) const;
  // What lies above, or below, a diagonal of the last two axes is 0.
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor diag(int64_t diagonal = 0) const;  // a matrix of a vector, the vector of a matrix (a view)
  // This handle becomes one on what `x` is, of the same shape.
  Tensor& replace(const Tensor& x);

  // ---- products
  // "ij,jk->ik": products summed over the indices that the result does not have. Operands are
  // multiplied from the left to the right.
  static Tensor einsum(std::string_view formula, std::span<const Tensor> operands,
                       std::optional<DType> dtype = {});
  // this @ weight + bias, with a weight of (inputs, outputs); this * weight of a vector.
  Tensor linear(const Tensor& weight, const std::optional<Tensor>& bias = {},
                std::optional<DType> dtype = {}) const;

  // ---- windows over the last axes
  Tensor avg_pool2d(const PoolOptions& options = {}) const;
  Tensor max_pool2d(const PoolOptions& options = {}) const;
  // The largest, and where it is in its plane (the last axes as one), int32.
  std::pair<Tensor, Tensor> max_pool2d_with_indices(const PoolOptions& options = {}) const;
  // Its inverse as far as there is one: elements at their indices in planes of `output_size`, by
  // default the smallest that max_pool2d makes as many of; all else is 0.
  Tensor max_unpool2d(const Tensor& indices, const PoolOptions& options = {},
                      const std::optional<std::vector<int64_t>>& output_size = {}) const;
  // The last axes at other sizes, between the elements that are there; with align_corners the
  // outermost stay where they are.
  Tensor interpolate(Ints size, Interpolation mode = Interpolation::kLinear,
                     bool align_corners = false) const;
  // (n, inputs, ...) by (outputs, inputs / groups, ...): as many axes as the weight has.
  Tensor conv2d(const Tensor& weight, const std::optional<Tensor>& bias = {},
                const ConvOptions& options = {}) const;
  // Its gradient: the weight is (inputs, outputs / groups, ...).
  Tensor conv_transpose2d(const Tensor& weight, const std::optional<Tensor>& bias = {},
                          const ConvOptions& options = {}) const;

  // ---- normalisation and attention
  // (this - mean) * invstd * weight + bias along the axes, whose shape the arguments have.
  Tensor batchnorm(const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                   const Tensor& mean, const Tensor& invstd, Ints axes = {1}) const;
  struct AttentionOptions;
  // softmax(this @ key^T / sqrt(size)) @ value; a query that nothing is left of gives 0.
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                      const AttentionOptions& options) const;

  // ---- linear algebra of (..., m, n)
  // Q (m, m), orthogonal, and R (m, n), upper triangular; reduced: (m, k), (k, n), k = min(m, n).
  enum class QrMode : uint8_t { kComplete, kReduced };
  std::pair<Tensor, Tensor> qr(QrMode mode = QrMode::kComplete) const;
  struct Svd;
  // U diag(S) V^T with S descending; U and V of all columns or of min(m, n).
  Svd svd(bool full_matrices = true) const;

  // ---- writes: lazy, through any view; all views of the memory see them
  Tensor& assign(const Tensor& value);  // broadcast and cast to this
  Tensor& assign(Number value);
  // a({1, _}) as a tensor, and to be written to (indexed.h).
  Indexed operator()(std::initializer_list<Index> index) const;
  // a[index] = value. Of elements that tensors name twice the last one stays.
  void set(Indices index, const Tensor& value);
  void set(Indices index, Number value);
  void set(std::initializer_list<Index> index, const Tensor& value) {
    set(Indices(index.begin(), index.size()), value);
  }
  void set(std::initializer_list<Index> index, Number value) {
    set(Indices(index.begin(), index.size()), value);
  }
  Tensor& update(Op op, const Tensor& y);  // this = this op y, in this dtype and shape
  Tensor& update(Op op, Number y);

  // ---- gradients: of floats, by reverse mode; each use counts with the values that it read
  // Whether gradients are collected: asked for, or computed from such tensors. What they read is
  // then kept when values are computed.
  bool requires_grad() const;
  Tensor& set_requires_grad(bool required = true);
  // Not computed from tensors that require gradients, or made one that does.
  bool is_leaf() const;
  // The same memory, seen without a gradient: by reads through it none passes, and a write leaves
  // the gradient of what it overwrites as it was.
  Tensor detach() const;
  // Adds the gradient of this, of one element or weighted by `gradient`, to grad() of every tensor
  // that it was computed from and that requires one.
  void backward(const std::optional<Tensor>& gradient = {}) const;
  // By each of the targets, which may be any tensors that this was computed from: a tensor that
  // requires gradients counts as it was made, another as it is now, wherever it was used. The
  // results can be differentiated again.
  std::vector<Tensor> gradient(std::span<const Tensor> targets,
                               const std::optional<Tensor>& gradient = {}) const;
  std::vector<Tensor> gradient(std::initializer_list<Tensor> targets) const {
    return gradient(std::span(targets.begin(), targets.size()));
  }
  // What backward() collected; none before it.
  std::optional<Tensor> grad() const;
  void set_grad(const std::optional<Tensor>& grad);
  // The same results with a gradient of one's own by the inputs, which they count as computed from,
  // and which backward() may read in turn. Where gradients are off, the results detached.
  struct BackwardCall;
  using Backward = std::function<std::vector<std::optional<Tensor>>(const BackwardCall&)>;
  static std::vector<Tensor> with_gradient(std::span<const Tensor> results,
                                           std::span<const Tensor> inputs, Backward backward);
  Tensor contiguous_backward() const;  // itself; its gradient is put in memory of its own

  // ---- values
  // Computes them. As an assignment it may change the handle: threads that realise and use one at
  // the same time have copies of it.
  Tensor& realize();
  static void realize(std::span<Tensor* const> tensors);  // together, in one schedule
  // The elements in row-major order.
  std::vector<std::byte> bytes() const;
  template <class T>
  std::vector<T> data() const;  // cast to T
  Element item() const;         // of a tensor of one element
  template <class T>
  T item() const {
    return item().template as<T>();
  }

  // The kernels that realize() would run now, in order, and how many; nothing runs.
  std::vector<ScheduledKernel> schedule() const;
  static std::vector<ScheduledKernel> schedule(std::span<const Tensor* const> tensors);
  size_t kernel_count() const;
  static size_t kernel_count(std::span<const Tensor* const> tensors);

  // ---- for weft's own code
  // Where this is the only handle on a larger storage that is not realised, it gets a storage of
  // what it sees: the rest needs no values. Views, values and strides stay.
  Tensor& leave_rest();
  // A handle to read the values of, by a thread that shares this one with others.
  Tensor snapshot() const;
  Tensor(Ref<Storage> storage, View view) : storage_(std::move(storage)), view_(std::move(view)) {}
  const Ref<Storage>& storage() const { return storage_; }
  // Another view of the same memory.
  Tensor viewed(View view) const;
  bool is_detached() const { return is_detached_; }

 private:
  Ref<Storage> storage_;
  View view_;
  bool is_detached_ = false;
};

inline ByTensor::ByTensor(const Tensor& tensor) : storage(tensor.storage()), view(tensor.view()) {}

struct Tensor::AttentionOptions {
  std::optional<Tensor> mask = std::nullopt;  // bool: what takes part; else added
  double dropout_p = 0.0;
  bool is_causal = false;
  bool enable_gqa = false;  // fewer heads of keys and values than of queries
};

struct Tensor::Svd {
  Tensor u, s, vt;
};

// What a user's gradient is called with, to give one by each input; none: it is 0.
struct Tensor::BackwardCall {
  std::span<const Tensor> gradients;  // by each result
  // The values of result i with the gradient of results: a backward that reads them can be
  // differentiated again. One that held the results themselves would hold itself.
  std::function<Tensor(const Tensor& values, size_t i)> as_result;
};

Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator-(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);
Tensor operator/(const Tensor& x, const Tensor& y);
Tensor operator+(const Tensor& x, Number y);
Tensor operator-(const Tensor& x, Number y);
Tensor operator*(const Tensor& x, Number y);
Tensor operator/(const Tensor& x, Number y);
Tensor operator+(Number x, const Tensor& y);
Tensor operator-(Number x, const Tensor& y);
Tensor operator*(Number x, const Tensor& y);
Tensor operator/(Number x, const Tensor& y);
Tensor operator-(const Tensor& x);

template <class T>
std::vector<T> Tensor::data() const {
  const std::vector<std::byte> from = cast(dtype_of<T>).bytes();
  std::vector<T> to(from.size() / sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    for (size_t i = 0; i < to.size(); i++) to[i] = from[i] != std::byte(0);
  } else if (!from.empty()) {
    std::memcpy(to.data(), from.data(), from.size());
  }
  return to;
}

}  // namespace weft
