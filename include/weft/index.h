// What stands between the brackets of a[...].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "weft/ref.h"
#include "weft/view.h"

namespace weft {

class Storage;
void retain(Storage* storage) noexcept;
void release(Storage* storage) noexcept;

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
class Indexed;

}  // namespace weft
