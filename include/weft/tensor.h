// Tensors: lazy, and exactly as if they were not.
//
//   auto a = weft::Tensor::arange(16).reshape({4, 4});
//   a.set({1}, 5.0);                    // a[1] = 5
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
#include "weft/ref.h"
#include "weft/scheduled_kernel.h"
#include "weft/view.h"

namespace weft {

enum class Op : uint8_t;  // ir/op.h
class Storage;
class Value;
void retain(Storage* storage) noexcept;
void release(Storage* storage) noexcept;
void retain(Value* value) noexcept;
void release(Value* value) noexcept;

// a[1], a[2:7:2], a[None], a[...]
struct Slice {
  std::optional<int64_t> start = std::nullopt, stop = std::nullopt;
  int64_t step = 1;
};
struct NewAxis {};
struct Ellipsis {};
// a[t]: integers name elements of an axis, negative ones from its end; bools those that are true.
class Tensor;
struct ByTensor {
  Ref<Storage> storage;
  View view;
  ByTensor(const Tensor& tensor);  // NOLINT: a tensor is an index
};
using Index = std::variant<int64_t, Slice, NewAxis, Ellipsis, ByTensor>;
using Indices = std::span<const Index>;

// A number of a program: it has no dtype of its own beyond its kind (it is "weak").
using Number = std::variant<bool, int64_t, double>;

// Axes of a reduction; none given: all of them.
using Axes = std::optional<std::vector<int64_t>>;
// Two numbers per axis.
using Pairs = std::span<const std::pair<int64_t, int64_t>>;

// One element: its dtype and its bits, as ir/scalar.h has them.
struct Element {
  DType dtype;
  uint64_t bits = 0;

  double as_double() const;
  int64_t as_int() const;  // floats truncate and saturate, NaN is 0
  Element cast(DType to) const;
  template <class T>
  T as() const {
    if constexpr (std::is_same_v<T, bool>) {
      return cast(dtypes::bool_).bits != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      return T(as_double());
    } else {
      return T(cast(dtype_of<T>).bits);
    }
  }
};

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

  // ---- reductions by ADD, MUL, MAX, MIN, AND, OR, XOR
  Tensor reduce(Op op, const Axes& axes = {}, bool keepdim = false) const;
  Tensor sum(const Axes& axes = {}, bool keepdim = false) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false) const;
  Tensor min(const Axes& axes = {}, bool keepdim = false) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;
  Tensor matmul(const Tensor& y) const;  // NumPy's rules for any rank

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
  Tensor scatter(int64_t dim, const Tensor& index, Number src,
                 std::optional<Op> reduce = {}) const;
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
  Tensor one_hot(int64_t num_classes) const;

  // ---- writes: lazy, through any view; all views of the memory see them
  Tensor& assign(const Tensor& value);  // broadcast and cast to this
  Tensor& assign(Number value);
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

inline ByTensor::ByTensor(const Tensor& tensor)
    : storage(tensor.storage()), view(tensor.view()) {}

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
