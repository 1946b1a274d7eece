// Random graphs of reductions over any axes, used along any others: views, broadcasts, arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/shape.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

class RandomReductions {
 public:
  // At most `most` elements; integers, or float32 without values.
  RandomReductions(Arena& arena, Choices& choices, int64_t most, DType type)
      : arena_(arena), c_(choices), most_(most), type_(type) {}

  UOp make() {
    int64_t left = most_;
    for (uint64_t rank = 1 + c_.below(4); rank > 0; rank--) {
      const int64_t size = c_.between(1, c_.one_in(3) ? std::min<int64_t>(4, left) : left);
      shape_.push_back(size);
      left /= size;
    }
    for (size_t i = shape_.size(); i-- > 1;) std::swap(shape_[i], shape_[c_.below(i + 1)]);
    for (int64_t id = 1, last = 1 + int64_t(c_.below(2)); id <= last; id++) add_buffer(id);
    for (uint64_t i = 2 + c_.below(12); i > 0; i--) add(step(pick()));
    std::vector<UOp> outputs{contiguous(values_.back())};
    for (uint64_t i = c_.below(3); i > 0; i--) outputs.push_back(contiguous(pick()));
    return sink(arena_, outputs);
  }

  std::map<int64_t, Array> buffers() const {
    std::map<int64_t, Array> out;
    for (const auto& [id, size] : sizes_) {
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < size; i++) numbers.push_back((i * 7 + id) % 19 - 9);
      out[id] = Array::of_ints(type_, {size}, numbers);
    }
    return out;
  }

 private:
  using Sizes = std::vector<Dim>;

  void add_buffer(int64_t id) {
    Sizes sizes = shape_;
    for (Dim& d : sizes) d = c_.one_in(6) ? Dim(1) : d;
    int64_t size = 1;
    for (const Dim d : sizes) size *= d.value();
    sizes_[id] = size;
    add(reshape(buffer(arena_, type_, size, "REF", id), sizes));
  }

  static int64_t elements(UOp n) {
    int64_t size = 1;
    for (const Dim d : shape_of(n)) size *= d.value();
    return size;
  }
  void add(UOp n) {
    if (elements(n) <= 4 * most_ && elements(n) > 0) values_.push_back(n);
  }
  UOp pick() {
    const size_t back = std::min(c_.below(values_.size()), c_.below(values_.size()));
    return values_[values_.size() - 1 - back];
  }

  UOp step(UOp x) {
    switch (c_.below(8)) {
      case 0:
      case 1: return reduced(x);
      case 2:
      case 3:
      case 4: return binary(x, pick());
      case 5: return type_.is_float() && c_.one_in(2) ? unary(Op::EXP, x) : -x;
      case 6: return moved(x);
      default: return binary(reduced(x), x);  // as in softmax
    }
  }

  UOp reduced(UOp x) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape_of(x).size(); i++) {
      if (c_.one_in(2)) axes.push_back(int64_t(i));
    }
    if (axes.empty()) axes.push_back(int64_t(c_.below(shape_of(x).size())));
    return reduce_axis(c_.one_in(3) ? Op::MAX : Op::ADD, x, axes);
  }

  // Where the shapes broadcast.
  UOp binary(UOp x, UOp y) {
    const Shape a = shape_of(x), b = shape_of(y);
    Sizes sizes;
    for (size_t i = 0; i < a.size() && a.size() == b.size(); i++) {
      if (!a[i].is(1) && !b[i].is(1) && a[i] != b[i]) return x + x;
      sizes.push_back(a[i].is(1) ? b[i] : a[i]);
    }
    if (sizes.size() != a.size()) return x + x;
    const auto fit = [&](UOp n) {
      return Sizes(shape_of(n).begin(), shape_of(n).end()) == sizes ? n : expand(n, sizes);
    };
    x = fit(x), y = fit(y);
    switch (c_.below(3)) {
      case 0: return x + y;
      case 1: return x * y;
      default: return x - y;
    }
  }

  UOp moved(UOp x) {
    const Sizes sizes(shape_of(x).begin(), shape_of(x).end());
    const size_t rank = sizes.size();
    switch (c_.below(4)) {
      case 0: {
        std::vector<int64_t> order(rank);
        for (size_t i = 0; i < rank; i++) order[i] = int64_t(i);
        for (size_t i = rank; i-- > 1;) std::swap(order[i], order[c_.below(i + 1)]);
        return permute(x, order);
      }
      case 1: {
        std::vector<int64_t> axes{int64_t(c_.below(rank))};
        return flip(x, axes);
      }
      case 2: {
        std::vector<std::pair<Dim, Dim>> padding(rank, {Dim(0), Dim(0)});
        padding[c_.below(rank)] = {Dim(c_.between(0, 2)), Dim(c_.between(0, 2))};
        return pad(x, padding);
      }
      default: {
        std::vector<std::pair<Dim, Dim>> box;
        for (const Dim d : sizes) {
          const int64_t begin = c_.one_in(2) ? 0 : c_.between(0, d.value() - 1);
          box.emplace_back(begin, d);
        }
        return shrink(x, box);
      }
    }
  }

  Arena& arena_;
  Choices& c_;
  int64_t most_;
  DType type_;
  Sizes shape_;
  std::map<int64_t, int64_t> sizes_;
  std::vector<UOp> values_;
};

}  // namespace weft::fuzz
