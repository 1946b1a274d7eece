// A few places as slices, or one by one.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/ref.h"
#include "engine/foreign_memory.h"
#include "tensor/chosen.h"
#include "tensor/operand.h"
#include "value/movement.h"
#include "value/storage.h"
#include "value/value.h"
#include "value/view.h"
#include "weft/gradient.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

// That are no progression, and written one by one.
constexpr size_t kMostApart = 4;
// Of one tensor of numbers: larger ones are not looked through.
constexpr int64_t kMostPlaces = 64;

// Where the only tensor among the indices stands, and the axis of x that it names. None where ints
// stand beside it, which count as tensors.
struct Only {
  size_t at;
  size_t axis;
};
std::optional<Only> only_tensor(const Tensor& x, Indices index) {
  size_t used = 0, tensors = 0;
  for (const Index& i : index) {
    if (std::holds_alternative<int64_t>(i)) return {};
    tensors += std::holds_alternative<ByTensor>(i);
    used += std::holds_alternative<ByTensor>(i) || std::holds_alternative<Slice>(i);
  }
  if (tensors != 1 || used > x.view().rank()) return {};
  size_t axis = 0, ellipses = 0;
  std::optional<Only> found;
  for (size_t k = 0; k < index.size(); k++) {
    if (std::holds_alternative<ByTensor>(index[k])) found = {k, axis};
    axis += std::holds_alternative<ByTensor>(index[k]) || std::holds_alternative<Slice>(index[k]);
    if (!std::holds_alternative<Ellipsis>(index[k])) continue;
    axis += x.view().rank() - used;
    ellipses++;
  }
  return ellipses > 1 ? std::nullopt : found;
}

// first, first + step, ...; none where they are not, or an element is there twice.
std::optional<Slice> progression(const std::vector<int64_t>& places) {
  const int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  if (step == 0) return {};
  for (size_t i = 1; i < places.size(); i++) {
    if (places[i] - places[i - 1] != step) return {};
  }
  const int64_t past = places.back() + (step > 0 ? 1 : -1);
  return Slice{places[0], past < 0 ? std::nullopt : std::optional(past), step};
}

// Writes a value of the target's shape, or a scalar.
void write(const Tensor& target, Ref<Value> value) {
  const GradMode mode(gradients_are_on() && !target.is_detached());
  WriteThrough through(*target.storage());
  target.storage()->write(target.view(), std::move(value));
  through.finish();
}

}  // namespace

bool write_few(const Tensor& x, Indices index, const Ref<Value>& value) {
  const std::optional<Only> only = only_tensor(x, index);
  if (!only) return false;
  const auto& by = std::get<ByTensor>(index[only->at]);
  const Tensor numbers{by.storage, by.view};
  if (numbers.ndim() != 1 || numbers.numel() == 0 || numbers.numel() > kMostPlaces) return false;
  const std::optional<std::vector<int64_t>> places =
      places_at_hand("index", numbers, int64_t(only->axis), x.shape()[only->axis]);
  if (!places) return false;
  const std::optional<Slice> slice = progression(*places);
  if (!slice && places->size() > kMostApart) return false;
  check_same_device("index", x, numbers);
  check_not_expanded("index", x);
  std::vector<Index> basic(index.begin(), index.end());
  basic[only->at] = slice ? Index(*slice) : Index(Slice{});
  const Tensor part = x.viewed(basic_view(x.view(), basic));
  // The axis of the part that the places are on: of those before it, ellipses and new ones count.
  size_t axis = only->axis;
  for (size_t k = 0; k < only->at; k++) axis += std::holds_alternative<NewAxis>(index[k]);
  Sizes to(part.shape());
  to[axis] = int64_t(places->size());
  Sizes own(value->shape());
  while (own.size() > to.size() && own[0] == 1) own.erase(0);  // as NumPy does
  check_broadcasts_to("index", own, to);
  Ref<Value> fits = as_operand(cast_value(reshaped(value, own), x.dtype()), to);
  keep_bound(*x.storage());  // before the writes: what fails has changed nothing
  if (slice) {
    write(part, std::move(fits));
    return true;
  }
  for (size_t k = 0; k < places->size(); k++) {
    std::vector<Index> one(axis + 1, Slice{});
    one[axis] = Slice{.start = (*places)[k], .stop = (*places)[k] + 1};
    Ref<Value> piece = fits;
    if (!fits->shape().empty()) {
      View view = contiguous_view(x.dtype(), to);
      view.offset += int64_t(k) * view.strides[axis];
      view.shape[axis] = 1;
      piece = view_of(fits, view);
    }
    write(part.at(one), std::move(piece));
  }
  return true;
}

}  // namespace weft
