// a[..., t, ...]: NumPy's rules for indices that are tensors, one by one or together with others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/movement.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

Tensor tensor_in(const ByTensor& by) { return {by.storage, by.view}; }

void check_mask(const Tensor& mask, Ints shape, size_t axis) {
  for (size_t k = 0; k < mask.shape().size(); k++) {
    if (mask.shape()[k] == shape[axis + k]) continue;
    throw IndexError(
        fmt::format("[index] a mask of shape {} does not fit {}: axis {} has size {}, not {}",
                    text_of_shape(mask.shape()), text_of_shape(shape), axis + k, shape[axis + k],
                    mask.shape()[k]));
  }
}

// Goes through the indices: what is no tensor makes a view; of each tensor is noted which axis of
// it that names.
class Chooser {
 public:
  Chooser(const Tensor& x, Indices index) : x_(x), index_(index) { count_used(); }

  Chosen run() {
    for (const Index& i : index_) std::visit([&](const auto& each) { add(each); }, i);
    View view = basic_view(x_.view(), basic_);
    Sizes order, sizes;
    for (const size_t axis : axes_) sizes.push_back(view.shape[axis]);
    const bool is_front = is_apart_;
    const size_t first = is_front ? 0 : first_;
    if (is_front) {
      for (const size_t axis : axes_) order.push_back(int64_t(axis));
      for (size_t i = 0; i < view.rank(); i++) {
        if (std::ranges::find(axes_, i) == axes_.end()) order.push_back(int64_t(i));
      }
    }
    Tensor target = x_.viewed(std::move(view));
    if (is_front) target = target.permute(order);
    if (indices_.size() == 1 && indices_[0]) {
      Ref<Value> only = index_of("index", *indices_[0], named_[0], sizes[0]);
      return {std::move(target), int64_t(first), int64_t(first) + 1, std::move(only)};
    }
    std::vector<Places> places;
    Sizes shape;
    for (size_t k = 0; k < indices_.size(); k++) {
      places.push_back(indices_[k] ? places_of("index", *indices_[k], named_[k], sizes[k])
                                   : Places{given_[k]});
      shape = k == 0 ? Sizes(places[k].index->shape())
                     : broadcast_shapes("index", shape, places[k].index->shape());
    }
    return {std::move(target), int64_t(first), int64_t(first + axes_.size()),
            merged_places(places, sizes, shape)};
  }

 private:
  void count_used() {
    size_t ellipses = 0;
    for (const Index& i : index_) {
      if (const auto* by = std::get_if<ByTensor>(&i)) {
        used_ += by->view.dtype.is_bool() ? by->view.rank() : 1;
      } else {
        used_ += std::holds_alternative<int64_t>(i) || std::holds_alternative<Slice>(i);
        ellipses += std::holds_alternative<Ellipsis>(i);
      }
    }
    if (ellipses > 1) throw IndexError("[index] there is more than one ellipsis");
    if (used_ > x_.view().rank()) {
      throw IndexError(
          fmt::format("[index] {} indices are too many for {}", used_, text_of_shape(x_.shape())));
    }
  }

  // Tensors, and ints beside them, stand together or apart.
  void note_tensor() {
    if (!seen_) first_ = out_;
    if (is_past_) is_apart_ = true;
    seen_ = true;
  }
  void note_other() { is_past_ = seen_; }

  void add(int64_t i) {
    note_tensor();
    basic_.emplace_back(i);
    from_++;
  }
  void add(const Slice& slice) {
    note_other();
    basic_.emplace_back(slice);
    from_++, out_++;
  }
  void add(NewAxis) {
    note_other();
    basic_.emplace_back(NewAxis{});
    out_++;
  }
  void add(Ellipsis) {
    note_other();
    const size_t count = x_.view().rank() - used_;
    for (size_t i = 0; i < count; i++) basic_.emplace_back(Slice{});
    from_ += count, out_ += count;
  }
  void add(const ByTensor& by) {
    note_tensor();
    const Tensor t = tensor_in(by);
    if (t.dtype().is_bool()) return add_mask(t);
    name_axis(t, {});
    basic_.emplace_back(Slice{});
    from_++;
  }

  void add_mask(const Tensor& mask) {
    check_mask(mask, x_.shape(), from_);
    if (mask.shape().empty()) {  // a new axis: of one place, or of none
      const bool is_true = mask.item<bool>();
      basic_.emplace_back(NewAxis{});
      const std::vector<int64_t> zeros(is_true ? 1 : 0, 0);
      name_axis({}, read(Tensor::from<int64_t>(zeros, {int64_t(zeros.size())}, mask.device())));
      return;
    }
    for (const std::vector<int64_t>& places : true_places(mask)) {
      name_axis({}, read(Tensor::from<int64_t>(places, {int64_t(places.size())}, mask.device())));
      basic_.emplace_back(Slice{});
      from_++;
    }
  }

  // The next axis of the view.
  void name_axis(std::optional<Tensor> index, Ref<Value> given) {
    axes_.push_back(out_++);
    named_.push_back(int64_t(from_));
    indices_.push_back(std::move(index));
    given_.push_back(std::move(given));
  }

  const Tensor& x_;
  Indices index_;
  size_t used_ = 0;  // axes of x that indices stand for
  size_t from_ = 0;  // axes of x, and of the view, so far
  size_t out_ = 0;
  std::vector<Index> basic_;
  bool seen_ = false, is_past_ = false, is_apart_ = false;
  size_t first_ = 0;            // where the first tensor stands in the view
  std::vector<size_t> axes_;    // of the view, that tensors name
  std::vector<int64_t> named_;  // the same of x
  std::vector<std::optional<Tensor>> indices_;
  std::vector<Ref<Value>> given_;  // places that are known to be in range
};

}  // namespace

std::vector<std::vector<int64_t>> true_places(const Tensor& mask) {
  const std::vector<std::byte> bits = mask.bytes();
  const auto shape = mask.shape();
  const size_t rank = shape.size();
  std::vector<std::vector<int64_t>> out(rank);
  if (rank == 0) return out;
  const size_t count = bits.size() - size_t(std::ranges::count(bits, std::byte(0)));
  // One more: the last axis is written at every element, and goes on at those that are true.
  out.back().resize(count + 1);
  for (size_t k = 0; k + 1 < rank; k++) out[k].reserve(count);
  const auto row = size_t(shape[rank - 1]);
  Sizes at(rank);
  size_t found = 0;
  for (size_t first = 0; first < bits.size(); first += row) {
    const size_t before = found;
    for (size_t i = 0; i < row; i++) {
      out.back()[found] = int64_t(i);
      found += bits[first + i] == std::byte(0) ? 0 : 1;
    }
    for (size_t k = 0; k + 1 < rank; k++) out[k].insert(out[k].end(), found - before, at[k]);
    for (size_t k = rank - 1; k-- > 0;) {
      if (++at[k] < shape[k]) break;
      at[k] = 0;
    }
  }
  out.back().resize(count);
  return out;
}

bool has_tensors(Indices index) {
  return std::ranges::any_of(index,
                             [](const Index& i) { return std::holds_alternative<ByTensor>(i); });
}

Chosen choose(const Tensor& x, Indices index) {
  for (const Index& i : index) {
    if (const auto* by = std::get_if<ByTensor>(&i)) {
      check_same_device("index", x, tensor_in(*by));
    }
  }
  return Chooser(x, index).run();
}

bool write_by_mask(const Tensor& x, Indices index, const Ref<Value>& value) {
  if (index.size() != 1) return false;
  const auto* by = std::get_if<ByTensor>(index.data());
  if (by == nullptr || !by->view.dtype.is_bool() || by->view.rank() > x.view().rank()) return false;
  if (has_overlap(x.view())) return false;  // what is not true is not written
  const Tensor mask = tensor_in(*by);
  const size_t rest = x.view().rank() - by->view.rank();
  Sizes own(value->shape());
  while (own.size() > rest && own[0] == 1) own.erase(0);
  if (own.size() > rest) return false;  // one for each that is true
  check_same_device("index", x, mask);
  check_mask(mask, x.shape(), 0);
  check_not_expanded("index", x);
  check_broadcasts_to("index", own, x.shape().subspan(by->view.rank()));
  Sizes wide(mask.shape());
  for (size_t i = 0; i < rest; i++) wide.push_back(1);
  const Ref<Value> condition = broadcast(reshaped(read(mask), wide), x.shape());
  const Ref<Value> fits = cast_value(reshaped(value, own), x.dtype());
  Ref<Value> result =
      apply(Op::WHERE, x.dtype(), x.shape(), condition, as_operand(fits, x.shape()), read(x));
  Tensor target = x;
  target.assign(tensor_of(std::move(result)));
  return true;
}

}  // namespace weft
