// Programs of views, writes and reads give what eager evaluation gives, in whatever order their
// results are asked for, and building them runs nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "ir/op.h"
#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "value/value.h"
#include "weft/weft.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;

// A tensor that a program leaves behind, and what it must hold.
struct Left {
  Tensor tensor;
  Floats expected;
};

struct Program {
  std::string name;
  std::function<std::vector<Left>()> build;
};
std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }

Floats numbers(int64_t from, int64_t count) {
  Floats result(static_cast<size_t>(count));
  std::iota(result.begin(), result.end(), float(from));
  return result;
}

Slice from(int64_t start) { return {.start = start}; }
Slice to(int64_t stop) { return {.stop = stop}; }

// N kept small: the reference evaluator is slow.
constexpr int64_t kN = 40;

std::vector<Left> fill_one_by_one(Tensor a) {
  for (int64_t i = 0; i < kN; i++) a.set({i}, i);
  return {{a, numbers(0, kN)}};
}

std::vector<Left> add_to_the_one_before() {
  Tensor a = Tensor::zeros({kN});
  for (int64_t i = 1; i < kN; i++) a.set({i}, a.at({i - 1}) + 1);
  return {{a, numbers(0, kN)}};
}

std::vector<Left> add_to_one_element() {
  Tensor a = counted({4});
  for (int64_t i = 0; i < kN; i++) a.at({0}).update(Op::ADD, 1);
  return {{a, {float(kN), 1, 2, 3}}, {a.at({0}), {float(kN)}}};
}

std::vector<Left> from_the_first_element() {
  Tensor a = counted({kN});
  a.set({0}, 7);
  for (int64_t i = 1; i < kN; i++) a.set({i}, a.at({0}) + i);
  return {{a, numbers(7, kN)}};
}

std::vector<Left> assign_through_permute() {
  Tensor a = Tensor::empty({4, 4});
  const Tensor b = Tensor::arange(16).reshape({4, 4});
  Tensor ret = a.permute({1, 0});
  ret.assign(b);
  Floats transposed;
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 4; k++) transposed.push_back(float(4 * k + i));
  }
  return {{ret, numbers(0, 16)}, {a, transposed}};
}

std::vector<Left> result_keeps_old_values() {
  Tensor a = counted({4});
  const Tensor r = a * 10;
  a.set({to(2)}, 9);
  return {{a, {9, 9, 2, 3}}, {r, {0, 10, 20, 30}}};
}

std::vector<Left> result_needed_again() {
  Tensor x = counted({4});
  const Tensor r = x * 10;
  x.set({0}, 1);
  const Tensor z = r + x;
  return {{z, {1, 11, 22, 33}}, {r, {0, 10, 20, 30}}, {x, {1, 1, 2, 3}}};
}

std::vector<Left> three_sums() {
  Tensor t = counted({6});
  const Tensor s0 = t.sum();
  t.set({to(3)}, 1);
  const Tensor s1 = t.sum();
  t.set({from(3)}, 2);
  const Tensor s2 = t.sum();
  return {{s0, {15}}, {s1, {15}}, {s2, {9}}, {t, {1, 1, 1, 2, 2, 2}}};
}

std::vector<Left> both_from_the_old() {
  Tensor a = counted({4}), b = counted({4}) + 10;
  const Tensor new_a = a + b, new_b = a * 2;
  a.assign(new_a);
  b.assign(new_b);
  return {{a, {10, 12, 14, 16}}, {b, {0, 2, 4, 6}}};
}

std::vector<Left> swap() {
  Tensor a = counted({4}), b = counted({4}) + 10;
  const Tensor old = a.clone();
  a.assign(b);
  b.assign(old);
  a.set({0}, 5);
  return {{a, {5, 11, 12, 13}}, {b, {0, 1, 2, 3}}, {old, {0, 1, 2, 3}}};
}

std::vector<Left> shift_by_one() {
  Tensor a = counted({8});
  a.at({from(1)}).assign(a.at({to(-1)}));
  return {{a, {0, 0, 1, 2, 3, 4, 5, 6}}};
}

std::vector<Left> subtract_own_element() {
  Tensor a = counted({8});
  a.update(Op::SUB, a.at({Slice{7, 8}}));
  return {{a, numbers(-7, 8)}};
}

std::vector<Left> assign_rolled() {
  Tensor a = counted({8});
  a.assign(a.roll({1}));
  return {{a, {7, 0, 1, 2, 3, 4, 5, 6}}};
}

std::vector<Left> assign_transposed() {
  Tensor a = counted({3, 3});
  a.assign(a.transpose());
  return {{a, {0, 3, 6, 1, 4, 7, 2, 5, 8}}};
}

std::vector<Left> write_every_other_column() {
  Tensor a = counted({2, 4});
  a.set({Slice{}, Slice{.step = 2}}, 5);
  return {{a, {5, 1, 5, 3, 5, 5, 5, 7}},
          {a.at({Slice{}, Slice{.start = 1, .step = 2}}), {1, 3, 5, 7}}};
}

std::vector<Left> write_through_flatten() {
  Tensor a = counted({2, 3});
  Tensor v = a.flatten();
  v.set({Slice{1, 3}}, 5);
  return {{a, {0, 5, 5, 3, 4, 5}}, {v, {0, 5, 5, 3, 4, 5}}};
}

std::vector<Left> alias_of_a_result() {
  const Tensor x = counted({4});
  Tensor y = x * 2;
  const Tensor z = y.at({to(1)});
  y.set({0}, 99);
  return {{z, {99}}, {y, {99, 2, 4, 6}}, {x, {0, 1, 2, 3}}};
}

std::vector<Left> reads_between_writes() {
  Tensor a = counted({6});
  const Tensor before = a.at({Slice{1, 4}}) + 0;
  a.set({Slice{2, 5}}, 10);
  const Tensor inside = a.at({Slice{2, 4}}) + 0;
  const Tensor across = a.at({Slice{1, 4}}) + 0;
  const Tensor outside = a.at({to(2)}) + 0;
  a.at({Slice{0, 3}}).assign(a.at({Slice{3, 6}}));
  return {{before, {1, 2, 3}},
          {inside, {10, 10}},
          {across, {1, 10, 10}},
          {outside, {0, 1}},
          {a, {10, 10, 5, 10, 10, 5}}};
}

std::vector<Left> overlapping_write() {
  Tensor a = counted({5});
  a.unfold(0, 2, 1).assign(counted({4, 2}));
  return {{a, {0, 2, 4, 6, 7}}};
}

std::vector<Left> roll_many_times() {
  Tensor x = counted({4});
  Floats expected = numbers(0, 4);
  for (int i = 0; i < 16; i++) {
    x = x + x.roll({1});
    Floats next(4);
    for (size_t k = 0; k < 4; k++) next[k] = expected[k] + expected[(k + 3) % 4];
    expected = next;
  }
  return {{x, expected}};
}

std::vector<Left> matrix_used_twice() {
  const Tensor a = counted({3, 3});
  const Tensor h = a.matmul(a);
  const Tensor sum = h.sum(), most = h.max();
  return {{sum, {486}}, {most, {111}}, {h, {15, 18, 21, 42, 54, 66, 69, 90, 111}}};
}

std::vector<Left> clones_part_ways() {
  Tensor a = counted({4}) + 1;
  Tensor b = a.clone();
  a.set({0}, 7);
  b.set({1}, 8);
  const Tensor c = b.clone();
  b.set({2}, 9);
  return {{a, {7, 2, 3, 4}}, {b, {1, 8, 9, 4}}, {c, {1, 8, 3, 4}}};
}

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"fill_empty", [] { return fill_one_by_one(Tensor::empty({kN})); }},
      {"fill_zeros", [] { return fill_one_by_one(Tensor::zeros({kN})); }},
      {"fill_realized", [] { return fill_one_by_one(counted({kN})); }},
      {"fill_ints", [] { return fill_one_by_one(Tensor::empty({kN}, dtypes::int32)); }},
      {"add_to_the_one_before", add_to_the_one_before},
      {"add_to_one_element", add_to_one_element},
      {"from_the_first_element", from_the_first_element},
      {"assign_through_permute", assign_through_permute},
      {"result_keeps_old_values", result_keeps_old_values},
      {"result_needed_again", result_needed_again},
      {"three_sums", three_sums},
      {"both_from_the_old", both_from_the_old},
      {"swap", swap},
      {"shift_by_one", shift_by_one},
      {"subtract_own_element", subtract_own_element},
      {"assign_rolled", assign_rolled},
      {"assign_transposed", assign_transposed},
      {"write_every_other_column", write_every_other_column},
      {"write_through_flatten", write_through_flatten},
      {"alias_of_a_result", alias_of_a_result},
      {"reads_between_writes", reads_between_writes},
      {"overlapping_write", overlapping_write},
      {"roll_many_times", roll_many_times},
      {"matrix_used_twice", matrix_used_twice},
      {"clones_part_ways", clones_part_ways},
  };
  return all;
}

class TensorPrograms : public testing::TestWithParam<std::tuple<Program, int>> {
 protected:
  std::vector<Left> build() const { return std::get<0>(GetParam()).build(); }

 private:
  test::Setting<int> schedule_{config().schedule, std::get<1>(GetParam())};
};

void expect_all(const std::vector<Left>& left) {
  for (size_t i = 0; i < left.size(); i++) {
    EXPECT_EQ(left[i].tensor.data<float>(), left[i].expected) << "result " << i;
  }
}

TEST_P(TensorPrograms, read_in_every_order) {
  const size_t count = build().size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  do {
    const std::vector<Left> left = build();
    for (const size_t i : order) {
      ASSERT_EQ(left[i].tensor.data<float>(), left[i].expected) << "result " << i;
    }
    expect_all(left);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(TensorPrograms, realized_together) {
  std::vector<Left> left = build();
  std::vector<Tensor*> all;
  for (Left& l : left) all.push_back(&l.tensor);
  Tensor::realize(all);
  const uint64_t kernels = counters().kernels;
  for (const Left& l : left) {
    EXPECT_TRUE(l.tensor.is_realized());
    EXPECT_EQ(l.tensor.bytes().size(), size_t(l.tensor.numel()) * 4);
  }
  EXPECT_EQ(counters().kernels, kernels);
  expect_all(left);
}

TEST_P(TensorPrograms, building_runs_nothing) {
  const uint64_t kernels = counters().kernels;
  const std::vector<Left> left = build();
  EXPECT_EQ(counters().kernels, kernels);
}

// A low bound on pending values realises results while the program is built.
TEST_P(TensorPrograms, realized_on_the_way) {
  for (const int64_t bound : {0, 1, 2, 3, 5, 8, 13}) {
    std::vector<Left> left;
    {
      const test::Setting low(config().most_pending_values, pending_values() + bound);
      left = build();
    }
    expect_all(left);
  }
}

TEST_P(TensorPrograms, one_result_alone) {
  const size_t count = build().size();
  for (size_t i = 0; i < count; i++) {
    Left left = build()[i];  // the others are gone
    EXPECT_EQ(left.tensor.data<float>(), left.expected) << "result " << i;
  }
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Program, int>>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) == 0 ? "_unscheduled" : "");
}

INSTANTIATE_TEST_SUITE_P(All, TensorPrograms,
                         testing::Combine(testing::ValuesIn(programs()), testing::Values(0, 1)),
                         name_of_case);

// ------------------------------------------------------------------------- realised in between

class TensorRealizes : public testing::TestWithParam<int> {
  test::Setting<int> schedule_{config().schedule, GetParam()};
};

TEST_P(TensorRealizes, what_a_result_needs_is_not_destroyed) {
  Tensor x = counted({3});
  x.assign(x + 1).realize();
  const Tensor r = x * 10;
  x.assign(x + 1).realize();
  EXPECT_EQ(r.data<float>(), (Floats{10, 20, 30}));
  EXPECT_EQ(x.data<float>(), (Floats{2, 3, 4}));
}

TEST_P(TensorRealizes, nothing_is_computed_twice) {
  Tensor x = counted({3}) + 5;
  Tensor y = x + 1;
  x.realize();
  const uint64_t kernels = counters().kernels;
  x.realize();
  EXPECT_EQ(counters().kernels, kernels);
  y.realize();
  EXPECT_EQ(counters().kernels, kernels + 1);
  EXPECT_EQ(y.data<float>(), (Floats{6, 7, 8}));
}

TEST_P(TensorRealizes, a_result_with_a_reduction_is_kept) {
  const Tensor a = counted({3, 3});
  const Tensor h = a.matmul(a);
  EXPECT_EQ(h.sum().item<float>(), 486);
  EXPECT_TRUE(h.is_realized());
}

TEST_P(TensorRealizes, storages_on_the_way_are_filled) {
  const Tensor x = counted({3});
  const Tensor y = x * 2;
  Tensor z = y + 1;
  z.realize();
  EXPECT_TRUE(y.is_realized());
}

TEST_P(TensorRealizes, a_lone_view_is_realised_alone) {
  Tensor y = (counted({100, 2}) * 2).at({7});
  y.realize();
  EXPECT_EQ(y.storage()->numel(), 2);
  EXPECT_EQ(y.data<float>(), (Floats{28, 30}));
}

TEST_P(TensorRealizes, realising_a_lone_view_changes_no_alias) {
  for (const bool realizes : {false, true}) {
    Tensor y = (counted({3, 5}) * 1).at({Slice{.step = -1}, Slice{1, 4}});
    if (realizes) y.realize();
    y.reshape({9}).assign(0);  // a copy: no strides make a view of it
    y.at({0}).assign(7);
    EXPECT_EQ(y.data<float>(), (Floats{7, 7, 7, 6, 7, 8, 1, 2, 3}));
    EXPECT_EQ(y.as_strided({2}, {5}, 3).data<float>(), (Floats{3, 8}));
  }
}

TEST_P(TensorRealizes, writes_are_in_place_where_nobody_sees_it) {
  const bool is_scheduled = GetParam() != 0;  // else results are always in new memory
  Tensor x = counted({4});
  const void* memory = x.storage()->version()->buffer()->memory();
  x.set({1}, 7);
  x.realize();
  EXPECT_EQ(x.storage()->version()->buffer()->memory() == memory, is_scheduled);
  memory = x.storage()->version()->buffer()->memory();
  const Tensor r = x * 10;
  x.set({2}, 8);
  x.realize();
  EXPECT_NE(x.storage()->version()->buffer()->memory(), memory);
  EXPECT_EQ(x.data<float>(), (Floats{0, 7, 8, 3}));
  EXPECT_EQ(r.data<float>(), (Floats{0, 70, 20, 30}));
}

TEST_P(TensorRealizes, empty_tensors) {
  Tensor e = Tensor::zeros({0, 3}) + 1;
  EXPECT_EQ(e.sum().item<float>(), 0);
  EXPECT_EQ(e.prod({{0}}).data<float>(), (Floats{1, 1, 1}));
  e.set({Ellipsis{}, 0}, 5);
  EXPECT_TRUE(e.bytes().empty());
  EXPECT_EQ(Tensor::cat({e, counted({1, 3})}).data<float>(), (Floats{0, 1, 2}));
  EXPECT_EQ(e.pad({{1, 0}, {0, 0}}, 4).data<float>(), (Floats{4, 4, 4}));
  EXPECT_EQ(Tensor::empty({0}).matmul(Tensor::empty({0})).item<float>(), 0);
}

TEST_P(TensorRealizes, many_axes) {
  Sizes shape(30, 1);
  shape[2] = shape[20] = 2;
  Tensor x = counted(shape);
  x.transpose(2, 20).at({Ellipsis{}, NewAxis{}}).update(Op::MUL, 10);
  std::vector<Index> second(3, Slice{});
  second[2] = 1;
  x.set(second, -1);
  EXPECT_EQ(x.data<float>(), (Floats{0, 10, -1, -1}));
  EXPECT_EQ(x.sum().item<float>(), 8);
}

INSTANTIATE_TEST_SUITE_P(All, TensorRealizes, testing::Values(0, 1));

}  // namespace
}  // namespace weft
