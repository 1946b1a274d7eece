// Each movement op against a computation of indices written out here, on random shapes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/arena.h"
#include "ir/array.h"
#include "ir/build.h"
#include "ir/dim.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/shape.h"
#include "tests/unit/evaluate_helpers.h"

namespace weft::test {
namespace {

using Sizes = std::vector<int64_t>;
using Coordinates = std::vector<int64_t>;

std::vector<Dim> dims(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

// The coordinates of element `flat`, by division.
Coordinates coordinates_of(int64_t flat, const Sizes& shape) {
  Coordinates out(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) out[i] = flat % shape[i];
  return out;
}
int64_t flat_of(const Coordinates& at, const Sizes& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); i++) flat = flat * shape[i] + at[i];
  return flat;
}

class EvaluateMovement : public testing::Test {
 protected:
  static constexpr int kRounds = 40;

  int64_t pick(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
  Sizes random_shape(int64_t least = 1) {
    Sizes shape;
    for (int64_t i = pick(0, 4); i > 0; i--) shape.push_back(pick(least, 4));
    return shape;
  }
  // A buffer of 1, 2, 3, ... under this shape.
  UOp numbered(const Sizes& shape) {
    const int64_t size = product(shape);
    std::vector<int64_t> numbers(size_t(size), 0);
    std::iota(numbers.begin(), numbers.end(), int64_t(1));
    bindings_.buffers[1] = ints(numbers);
    return reshape(buffer(arena_, dtypes::int32, size, "CPU", 1), dims(shape));
  }
  // n has this shape, and at every coordinate the number of the source's coordinates: 0 for none.
  template <class Source>
  void expect(UOp n, const Sizes& shape, const Sizes& source_shape, Source&& source) {
    const Array got = evaluate(n, bindings_).at(0);
    ASSERT_EQ(got.shape, shape);
    Sizes inferred;
    for (const Dim& d : shape_of(n)) inferred.push_back(d.value());
    EXPECT_EQ(inferred, shape);
    std::vector<int64_t> want;
    for (int64_t i = 0; i < product(shape); i++) {
      const Coordinates from = source(coordinates_of(i, shape));
      want.push_back(from.empty() && !source_shape.empty() ? 0 : flat_of(from, source_shape) + 1);
    }
    EXPECT_EQ(got.ints(), want);
  }

  Arena arena_;
  Bindings bindings_;
  std::mt19937_64 random_{7};
};

TEST_F(EvaluateMovement, Reshape) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes from = random_shape();
    Sizes to{1, product(from), 1};
    if (round % 2 == 0) to.assign(from.rbegin(), from.rend());
    expect(reshape(numbered(from), dims(to)), to, from,
           [&](const Coordinates& at) { return coordinates_of(flat_of(at, to), from); });
  }
}

TEST_F(EvaluateMovement, Permute) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes from = random_shape();
    std::vector<int64_t> order(from.size());
    std::iota(order.begin(), order.end(), int64_t(0));
    std::shuffle(order.begin(), order.end(), random_);
    Sizes to;
    for (int64_t axis : order) to.push_back(from[size_t(axis)]);
    expect(permute(numbered(from), order), to, from, [&](const Coordinates& at) {
      Coordinates source(at.size());
      for (size_t i = 0; i < at.size(); i++) source[size_t(order[i])] = at[i];
      return source;
    });
  }
}

TEST_F(EvaluateMovement, Expand) {
  for (int round = 0; round < kRounds; round++) {
    Sizes from = random_shape(), to = from;
    for (size_t i = 0; i < from.size(); i++) {
      if (pick(0, 1) == 0) continue;
      from[i] = 1;
      to[i] = pick(1, 5);
    }
    expect(expand(numbered(from), dims(to)), to, from, [&](Coordinates at) {
      for (size_t i = 0; i < at.size(); i++) at[i] = from[i] == 1 ? 0 : at[i];
      return at;
    });
  }
}

TEST_F(EvaluateMovement, Pad) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes from = random_shape();
    std::vector<std::pair<Dim, Dim>> around;
    Sizes to, before;
    for (int64_t s : from) {
      before.push_back(pick(0, 2));
      const int64_t after = pick(0, 2);
      around.emplace_back(before.back(), after);
      to.push_back(before.back() + s + after);
    }
    expect(pad(numbered(from), around), to, from, [&](Coordinates at) -> Coordinates {
      for (size_t i = 0; i < at.size(); i++) {
        at[i] -= before[i];
        if (at[i] < 0 || at[i] >= from[i]) return {};
      }
      return at;
    });
  }
}

TEST_F(EvaluateMovement, Shrink) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes from = random_shape();
    std::vector<std::pair<Dim, Dim>> box;
    Sizes to, begins;
    for (int64_t s : from) {
      begins.push_back(pick(0, s));
      const int64_t end = pick(begins.back(), s);
      box.emplace_back(begins.back(), end);
      to.push_back(end - begins.back());
    }
    expect(shrink(numbered(from), box), to, from, [&](Coordinates at) {
      for (size_t i = 0; i < at.size(); i++) at[i] += begins[i];
      return at;
    });
  }
}

TEST_F(EvaluateMovement, Flip) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes from = random_shape();
    std::vector<int64_t> axes;
    for (size_t i = 0; i < from.size(); i++) {
      if (pick(0, 1) == 1) axes.push_back(int64_t(i));
    }
    expect(flip(numbered(from), axes), from, from, [&](Coordinates at) {
      for (int64_t axis : axes) at[size_t(axis)] = from[size_t(axis)] - 1 - at[size_t(axis)];
      return at;
    });
  }
}

TEST_F(EvaluateMovement, View) {
  for (int round = 0; round < kRounds; round++) {
    const Sizes to = random_shape();
    Sizes strides;
    int64_t least = 0, most = 0;
    for (int64_t s : to) {
      strides.push_back(pick(-3, 3));
      (strides.back() < 0 ? least : most) += strides.back() * (s - 1);
    }
    const int64_t offset = pick(0, 2) - least;
    const Sizes from{2, (offset + most) / 2 + 1};
    expect(strided_view(numbered(from), dims(to), dims(strides), offset), to, from,
           [&](const Coordinates& at) {
             int64_t flat = offset;
             for (size_t i = 0; i < at.size(); i++) flat += at[i] * strides[i];
             return coordinates_of(flat, from);
           });
  }
}

TEST_F(EvaluateMovement, ChainsCompose) {
  const std::vector<int64_t> swap{1, 0}, first{0};
  const std::vector<std::pair<Dim, Dim>> around{{1, 0}, {0, 1}};
  const UOp n = pad(flip(permute(numbered({2, 3}), swap), first), around);
  // 1 2 3   swapped  1 4   flipped  3 6   padded  0 0 0
  // 4 5 6            2 5            2 5           3 6 0
  //                  3 6            1 4           2 5 0 / 1 4 0
  EXPECT_EQ(evaluate(n, bindings_).at(0).ints(),
            (std::vector<int64_t>{0, 0, 0, 3, 6, 0, 2, 5, 0, 1, 4, 0}));
}

TEST_F(EvaluateMovement, SymbolicSizesComeFromVariables) {
  const UOp n = variable(arena_, "n", 1, 8);
  const UOp x = buffer(arena_, dtypes::int32, n * 2, "CPU", 1);
  bindings_.buffers[1] = ints({1, 2, 3, 4, 5, 6});
  bindings_.variables["n"] = 3;
  const std::vector<Dim> shape{2, n};
  const std::vector<std::pair<Dim, Dim>> box{{1, 2}, {0, Dim(n - 1)}};
  const Array got = evaluate(shrink(reshape(x, shape), box), bindings_).at(0);
  EXPECT_EQ(got, Array::of_ints(dtypes::int32, {1, 2}, {4, 5}));
}

TEST_F(EvaluateMovement, ErrorsNameTheNode) {
  const UOp x = numbered({2, 3}), n = variable(arena_, "n", 1, 9);
  bindings_.variables["n"] = 4;
  const std::vector<Dim> shape{n, 2}, one_stride{2};
  const UOp bad_reshape = reshape(x, shape);
  EXPECT_NE(error_of<ShapeError>([&] {
              evaluate(bad_reshape, bindings_);
            }).find("RESHAPE: 6 elements against 8"),
            std::string::npos);
  const std::vector<Dim> size{n};
  const UOp far = arena_.make(Op::VIEW, dtypes::int32, {x, n, index_const(arena_, 2), n});
  EXPECT_NE(error_of<IndexError>([&] { evaluate(far, bindings_); }).find("VIEW: element (1)"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::test
