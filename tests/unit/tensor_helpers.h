// Short names for the tests of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/tensor.h"

namespace weft::test {

using Floats = std::vector<float>;

inline Tensor floats(const Floats& elements) {
  return Tensor::from(std::span<const float>(elements), {int64_t(elements.size())});
}
// 0, 1, 2, ... in memory.
inline Tensor counted(Ints shape) {
  Floats elements(
      size_t(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>())));
  std::iota(elements.begin(), elements.end(), 0.0F);
  return Tensor::from(std::span<const float>(elements), shape);
}

// A member of the configuration for the time of a test.
template <class T>
class Setting {
 public:
  Setting(T& member, T value) : member_(member), before_(std::exchange(member, std::move(value))) {}
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { member_ = before_; }

 private:
  T& member_;
  T before_;
};

// What a call throws, as text; empty when it throws nothing of this kind.
template <class Kind, class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const Kind& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft::test
