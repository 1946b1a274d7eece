// Random tensor graphs of whole numbers that are small enough for every float to hold them, and
// every sum of them: any order of summation gives the same bits. Sizes are around those of vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "ir/scalar.h"
#include "ir/shape.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/random_tensor_graph.h"

namespace weft::fuzz {

class RandomExactGraph {
 public:
  RandomExactGraph(Arena& arena, Choices& choices) : arena_(arena), c_(choices) {}

  GraphAndBuffers make() {
    type_ = type();
    add(input());
    if (c_.one_in(2)) add(input());
    if (c_.one_in(3)) {
      if (const std::optional<Value> product = matmul()) add(*product);
    }
    for (uint64_t i = c_.below(5) + 1; i > 0; i--) add(step(pick()));
    if (c_.one_in(5)) add(first_ones(pick()));  // nothing else can be done to a symbolic size
    std::vector<UOp> outputs{contiguous(values_.back().node)};
    if (c_.one_in(3)) outputs.push_back(contiguous(values_[c_.below(values_.size())].node));
    return {sink(arena_, outputs), std::move(buffers_)};
  }

 private:
  using Sizes = std::vector<Dim>;

  // A node, and a number that no element of it is larger than.
  struct Value {
    UOp node;
    int64_t most;
  };

  DType type() {
    constexpr DType types[] = {dtypes::float32, dtypes::float32, dtypes::float32, dtypes::float64,
                               dtypes::float16, dtypes::int32,   dtypes::int8,    dtypes::bfloat16};
    return types[c_.below(std::size(types))];
  }
  static int64_t most_of(DType type) {
    if (!type.is_float()) return int64_t(1) << 40;  // integers wrap
    if (type == dtypes::float64) return int64_t(1) << 50;
    if (type == dtypes::float32) return int64_t(1) << 23;
    return type == dtypes::float16 ? 1 << 10 : 1 << 7;
  }
  int64_t size() {
    constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 19, 31, 32, 33, 67};
    return sizes[c_.below(std::size(sizes))];
  }

  static Sizes sizes(UOp n) { return {shape_of(n).begin(), shape_of(n).end()}; }
  static int64_t count(const Sizes& sizes) {
    int64_t out = 1;
    for (const Dim d : sizes) out *= d.value();
    return out;
  }

  static int64_t most_elements(UOp n) {
    int64_t out = 1;
    for (const Dim d : sizes(n)) out *= d.is_int() ? d.value() : bounds(d.node()).hi;
    return out;
  }

  void add(const Value& v) {
    if (most_elements(v.node) <= 4000 && sizes(v.node).size() <= 4) values_.push_back(v);
  }
  Value pick() { return values_[c_.one_in(2) ? values_.size() - 1 : c_.below(values_.size())]; }

  Value input() {
    Sizes shape;
    for (uint64_t i = 1 + c_.below(3); i > 0; i--) {
      shape.emplace_back(size());
      if (count(shape) > 2000) shape.pop_back();
    }
    return input(shape);
  }
  Value input(const Sizes& shape) {
    const auto id = int64_t(buffers_.size());
    std::vector<int64_t> numbers;
    for (int64_t i = count(shape); i > 0; i--) numbers.push_back(c_.between(-3, 3));
    const auto total = int64_t(numbers.size());
    buffers_[id] = Array::of_ints(type_, {total}, numbers);
    return {reshape(buffer(arena_, type_, total, "REF", id), shape), 3};
  }

  std::optional<Value> matmul() {
    const int64_t m = size(), k = size(), n = size();
    if (m * k * n > 12'000 || 9 * k > most_of(type_)) return std::nullopt;
    Value a = input(c_.one_in(3) ? Sizes{k, m} : Sizes{m, k});
    Value b = input(c_.one_in(3) ? Sizes{n, k} : Sizes{k, n});
    constexpr int64_t swap[] = {1, 0};
    if (sizes(a.node)[0].value() != m || sizes(a.node)[1].value() != k) {
      a.node = permute(a.node, swap);
    }
    if (sizes(b.node)[0].value() != k || sizes(b.node)[1].value() != n) {
      b.node = permute(b.node, swap);
    }
    const Sizes all{m, k, n};
    const UOp left = expand(reshape(a.node, Sizes{m, k, 1}), all);
    const UOp right = expand(reshape(b.node, Sizes{1, k, n}), all);
    constexpr int64_t axis[] = {1};
    return Value{reshape(reduce_axis(Op::ADD, left * right, axis), Sizes{m, n}), 9 * k};
  }

  Value step(const Value& x) {
    switch (c_.below(8)) {
      case 0:
      case 1:
      case 2: return reduced(x);
      case 3: return moved(x);
      case 4: return moved(moved(x));
      case 5: return with_number(x);
      default: return with_other(x);
    }
  }

  Value reduced(const Value& x) {
    std::vector<int64_t> axes;
    int64_t times = 1;
    for (size_t i = 0; i < sizes(x.node).size(); i++) {
      if (c_.one_in(3)) continue;
      axes.push_back(int64_t(i));
      times *= sizes(x.node)[i].value();
    }
    if (times == 0) return x;
    Value out = x;
    if (c_.one_in(2) && x.most * times <= most_of(x.node.dtype())) {
      out = {reduce_axis(Op::ADD, x.node, axes), x.most * times};
    } else {
      out = {reduce_axis(c_.one_in(2) ? Op::MAX : Op::MIN, x.node, axes), x.most};
    }
    if (c_.one_in(2)) return out;
    out.node = expand(out.node, sizes(x.node));
    return 2 * out.most <= most_of(type_) ? Value{x.node - out.node, x.most + out.most} : out;
  }

  // The first n along an axis, of a size that is a variable, or their sum.
  Value first_ones(const Value& x) {
    const Sizes s = sizes(x.node);
    if (s.empty()) return x;
    const size_t axis = c_.below(s.size());
    const int64_t most = s[axis].value();
    if (most < 2) return x;
    const UOp n = bind(variable(arena_, "n", 1, most), index_const(arena_, c_.between(1, most)));
    std::vector<std::pair<Dim, Dim>> box;
    for (size_t i = 0; i < s.size(); i++) box.emplace_back(0, i == axis ? Dim(n) : s[i]);
    const UOp part = shrink(x.node, box);
    const std::vector<int64_t> axes{int64_t(axis)};
    if (c_.one_in(2)) return {max(part, constant_of(part.dtype(), 1)), x.most};
    const bool can_sum = x.most * most <= most_of(part.dtype());
    return {reduce_axis(can_sum ? Op::ADD : Op::MAX, part, axes), x.most * most};
  }

  Value moved(const Value& x) {
    const Sizes s = sizes(x.node);
    const size_t rank = s.size();
    if (rank == 0) return {reshape(x.node, Sizes{1}), x.most};
    switch (c_.below(6)) {
      case 0: {
        std::vector<int64_t> order(rank);
        for (size_t i = 0; i < rank; i++) order[i] = int64_t(i);
        for (size_t i = rank; i-- > 1;) std::swap(order[i], order[c_.below(i + 1)]);
        return {permute(x.node, order), x.most};
      }
      case 1: {
        const std::vector<int64_t> axes{int64_t(c_.below(rank))};
        return {flip(x.node, axes), x.most};
      }
      case 2: {
        std::vector<std::pair<Dim, Dim>> box;
        for (const Dim d : s) {
          const int64_t begin = c_.between(0, d.value() / 2);
          box.emplace_back(begin, c_.between(begin, d.value()));
        }
        return {shrink(x.node, box), x.most};
      }
      case 3: {
        std::vector<std::pair<Dim, Dim>> padding;
        for (size_t i = 0; i < rank; i++) padding.emplace_back(c_.between(0, 3), c_.between(0, 3));
        return {pad(x.node, padding), x.most};
      }
      case 4: {
        const int64_t total = count(s), stride = c_.between(1, 3);
        if (total == 0) return x;
        return {strided_view(x.node, Sizes{(total - 1) / stride + 1}, Sizes{stride}, 0), x.most};
      }
      default: {
        Sizes one = s;
        one.insert(one.begin() + ptrdiff_t(c_.below(rank + 1)), Dim(1));
        Sizes wide = one;
        for (Dim& d : wide) d = d.is(1) ? Dim(c_.between(1, 5)) : d;
        return {expand(reshape(x.node, one), wide), x.most};
      }
    }
  }

  Value with_number(const Value& x) {
    const UOp number = constant_of(x.node.dtype(), c_.between(-3, 3));
    const int64_t room = most_of(x.node.dtype());
    switch (c_.below(4)) {
      case 0: return {max(x.node, number), x.most + 3};
      case 1: return x.most + 3 <= room ? Value{x.node + number, x.most + 3} : x;
      case 2: return x.most * 3 <= room ? Value{x.node * number, x.most * 3} : x;
      default: return {where(x.node < number, x.node, number), x.most + 3};
    }
  }
  UOp constant_of(DType dtype, int64_t v) {
    if (dtype.is_float()) return constant(arena_, dtype, double(v));
    return constant_bits(arena_, dtype, bits_of_int(dtype, v));
  }

  Value with_other(const Value& x) {
    Value y = pick();
    if (sizes(y.node) != sizes(x.node)) y = input(sizes(x.node));
    const int64_t room = most_of(x.node.dtype());
    switch (c_.below(4)) {
      case 0: return x.most + y.most <= room ? Value{x.node + y.node, x.most + y.most} : x;
      case 1: return x.most * y.most <= room ? Value{x.node * y.node, x.most * y.most} : x;
      case 2: return {max(x.node, y.node), x.most + y.most};
      default: return {where(x.node < y.node, y.node, x.node), x.most + y.most};
    }
  }

  Arena& arena_;
  Choices& c_;
  DType type_;
  std::vector<Value> values_;
  std::map<int64_t, Array> buffers_;
};

}  // namespace weft::fuzz
