// Random formulas of rows: reductions that depend on others over the same axis.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "tests/fuzz/choices.h"

namespace weft::fuzz {

// Maxima, sums of exponentials, spreads and products with them, of scores that are read or products
// themselves, with masks, biases, infinities and NaN. The same choices give the same formula in any
// dtype.
class RandomRows {
 public:
  RandomRows(Arena& arena, Choices& choices, DType type)
      : arena_(arena), c_(choices), type_(type) {}

  UOp make() {
    groups_ = c_.between(1, 3), rows_ = c_.between(4, 20), along_ = c_.between(8, 60);
    wide_ = c_.between(1, 5);
    is_special_ = c_.one_in(3);
    std::vector<UOp> outputs{contiguous(formula(scores()))};
    if (c_.one_in(6)) outputs.push_back(contiguous(formula(scores())));
    return sink(arena_, outputs);
  }

  std::map<int64_t, Array> buffers(DType type) const {
    std::map<int64_t, Array> out;
    for (const auto& [id, numbers] : numbers_) {
      out[id] = Array::of_doubles(type, {int64_t(numbers.size())}, numbers);
    }
    return out;
  }

 private:
  using Sizes = std::vector<Dim>;

  UOp input(const Sizes& shape, bool may_be_special) {
    int64_t size = 1;
    for (const Dim d : shape) size *= d.value();
    const int64_t id = int64_t(numbers_.size()) + 1;
    std::vector<double>& numbers = numbers_[id];
    const double scale = c_.one_in(8) ? 20 : 1, shift = c_.one_in(6) ? 30 : 0;
    const bool is_special = may_be_special && is_special_;
    for (int64_t i = 0; i < size; i++) {
      double x = (double(c_.below(257)) - 128) / 64 * scale + shift;
      if (is_special && c_.one_in(20)) x = special();
      numbers.push_back(x);
    }
    if (may_be_special && c_.one_in(6)) {  // a row of nothing
      for (int64_t i = 0; i < along_ && i < size; i++) numbers[size_t(i)] = -kInfinity;
    }
    return reshape(buffer(arena_, type_, size, "CPU", id), shape);
  }
  double special() {
    const double all[] = {kInfinity, -kInfinity, -kInfinity, std::nan("")};
    return all[c_.below(c_.one_in(3) ? 4 : 3)];
  }

  // x with axes of size 1 in front, as large as `shape`.
  static UOp broadcast(UOp x, const Sizes& shape) {
    const Shape own = shape_of(x);
    Sizes sizes(shape.size() - own.size(), Dim(1));
    sizes.insert(sizes.end(), own.begin(), own.end());
    return expand(reshape(x, sizes), shape);
  }
  UOp number(double value) const { return constant(arena_, type_, value); }
  Sizes scores_shape() const { return {groups_, rows_, along_}; }

  // sum over e of a[g, i, e] b[g, j, e]
  static UOp product(UOp a, UOp b, int64_t g, int64_t n, int64_t m, int64_t e) {
    const UOp left = expand(reshape(a, Sizes{g, n, 1, e}), Sizes{g, n, m, e});
    const UOp right = expand(reshape(b, Sizes{g, 1, m, e}), Sizes{g, n, m, e});
    const int64_t last[] = {3};
    return reshape(reduce_axis(Op::ADD, left * right, last), Sizes{g, n, m});
  }

  UOp scores() {
    const Sizes shape = scores_shape();
    const int64_t turned[] = {0, 2, 1};
    UOp x;
    if (c_.one_in(2)) {
      const int64_t e = c_.between(1, 4);
      x = product(input({groups_, rows_, e}, false), input({groups_, along_, e}, false), groups_,
                  rows_, along_, e);
    } else if (c_.one_in(2)) {
      x = permute(input({groups_, along_, rows_}, true), turned);  // along an outer axis
    } else {
      x = input(shape, true);
    }
    if (c_.one_in(2)) x = x * number(0.125);
    if (c_.one_in(3)) x = x + broadcast(input({rows_, along_}, true), shape);
    if (c_.one_in(4)) {
      x = where(broadcast(input({rows_, along_}, false), shape) < number(0.5), x,
                number(-kInfinity));
    }
    if (c_.one_in(4)) {  // row i knows of elements up to i
      const UOp i = expand(reshape(iota(arena_, dtypes::int32, rows_), Sizes{1, rows_, 1}), shape);
      const UOp j = broadcast(iota(arena_, dtypes::int32, along_), shape);
      const UOp first = constant(arena_, dtypes::int32, int64_t(c_.below(4)));
      x = where(i + first < j, number(-kInfinity), x);
    }
    return x;
  }

  UOp over(Op op, UOp x) const {
    const int64_t last[] = {2};
    return reduce_axis(op, x, last);
  }
  UOp each(UOp x) const { return expand(x, scores_shape()); }

  UOp base_of(UOp most) {
    const UOp lowest = equal(most, number(-kInfinity));
    switch (c_.below(3)) {
      case 0: return most;
      case 1: return where(lowest, number(0), most);
      default: return where(lowest | equal(most, number(kInfinity)), number(0), most);
    }
  }

  UOp formula(UOp x) {
    const UOp most = over(Op::MAX, x), base = base_of(most);
    const Op function = c_.one_in(5) ? Op::EXP2 : Op::EXP;
    const UOp powers = unary(function, x - each(base)), sum = over(Op::ADD, powers);
    const UOp safe = where(equal(sum, number(0)), number(1), sum);
    const auto values = [&] { return input({groups_, wide_, along_}, false); };
    const auto weighted = [&](UOp weights) {
      return product(weights, values(), groups_, rows_, wide_, along_);
    };
    const UOp result_shape_sum = expand(sum, Sizes{groups_, rows_, wide_});
    switch (c_.below(9)) {
      case 0: return weighted(powers / each(sum));
      case 1: return weighted(powers) / result_shape_sum;
      case 2: return weighted(powers / each(safe));
      case 3: return unary(Op::LOG2, sum) + base;
      case 4: return powers / each(sum);
      case 5: return weighted(powers / each(sum)) + weighted(powers) * number(0.5);
      case 6: return sum + most;
      case 7: return over(Op::ADD, x) * over(Op::ADD, x * x);
      default: {
        const UOp mean = over(Op::ADD, x) * number(1.0 / double(along_));
        const UOp distance = x - each(mean);
        const UOp spread = over(Op::ADD, distance * distance);
        return c_.one_in(2) ? spread : distance * each(unary(Op::RECIP, spread + number(1)));
      }
    }
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  Arena& arena_;
  Choices& c_;
  DType type_;
  int64_t groups_ = 1, rows_ = 1, along_ = 1, wide_ = 1;
  bool is_special_ = false;
  std::map<int64_t, std::vector<double>> numbers_;
};

}  // namespace weft::fuzz
