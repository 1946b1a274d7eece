// Functions of many operations are one step until they are computed, and give what they would have
// given at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error.h"
#include "base/ref.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "schedule/schedule_cache.h"
#include "tensor/calls.h"
#include "tensor/operand.h"
#include "tests/unit/tensor_helpers.h"
#include "value/call.h"
#include "value/number_watch.h"
#include "value/row.h"
#include "value/value.h"
#include "weft/error.h"
#include "weft/gradient.h"
#include "weft/jit.h"
#include "weft/tensor.h"
#include "weft/view.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;

TEST(RecordedCalls, wait_until_they_are_computed) {
  const Tensor x = floats({0.5F, -1, 2});
  const int64_t waiting = waiting_values(), pending = pending_values();
  const Tensor y = x.tanh();
  EXPECT_EQ(waiting_values(), waiting + 1);
  EXPECT_GT(pending_values(), pending + 16);  // it counts as what it will be
  const Floats values = y.data<float>();
  for (size_t i = 0; i < 3; i++) {
    EXPECT_FLOAT_EQ(values[i], std::tanh(x.data<float>()[i]));
  }
  EXPECT_EQ(waiting_values(), waiting);
  EXPECT_EQ(pending_values(), pending);
}

TEST(RecordedCalls, are_freed_without_being_computed) {
  const int64_t waiting = waiting_values(), pending = pending_values();
  {
    Tensor x = counted({4}).realize();
    for (int i = 0; i < 1000; i++) x = x.erf();
    EXPECT_EQ(waiting_values(), waiting + 1000);
  }
  EXPECT_EQ(waiting_values(), waiting);
  EXPECT_EQ(pending_values(), pending);
}

TEST(RecordedCalls, read_what_was_there) {
  Tensor x = floats({1, 2}).realize();
  const Tensor y = x.sigmoid();
  x.assign(floats({7, 8}));
  EXPECT_FLOAT_EQ(y.data<float>()[0], 1 / (1 + std::exp(-1.0F)));
  EXPECT_EQ(x.data<float>(), (Floats{7, 8}));
}

// Through views, and with writes that read them.
TEST(RecordedCalls, keep_what_they_were_computed_from) {
  Tensor x = floats({1, 2, 3, 4}).realize(), row = x.at({Slice{1, 3}});
  const Tensor before = row.tanh(), sorted = x.sort(0, true).first;
  x.set({1}, 9);
  const Tensor between = row.tanh();
  row.update(Op::ADD, before);
  const Tensor after = row.sigmoid();
  x.assign(x.neg());
  const auto near = [](const Tensor& t, const std::vector<double>& expected) {
    const Floats values = t.data<float>();
    for (size_t i = 0; i < values.size(); i++) EXPECT_NEAR(values[i], expected[i], 1e-6);
  };
  const double first = 9 + std::tanh(2.0), second = 3 + std::tanh(3.0);
  near(after, {1 / (1 + std::exp(-first)), 1 / (1 + std::exp(-second))});
  near(x, {-1, -first, -second, -4});
  near(between, {std::tanh(9.0), std::tanh(3.0)});
  near(before, {std::tanh(2.0), std::tanh(3.0)});
  near(sorted, {4, 3, 2, 1});
}

TEST(RecordedCalls, stand_on_each_other) {
  const Tensor x = floats({3, 1, 2}).realize();
  const auto [values, places] = x.tanh().sort(0, true);
  EXPECT_EQ(places.data<int32_t>(), (std::vector<int32_t>{0, 2, 1}));
  EXPECT_FLOAT_EQ(values.data<float>()[2], std::tanh(1.0F));
}

// Nobody needs a gradient of x in advance: it is asked for by the tensor.
TEST(RecordedCalls, have_gradients_by_what_they_are_of) {
  const Tensor x = floats({0.5F, -1}), targets[] = {x};
  const Tensor by = x.mul(2.0).tanh().sum().gradient(targets)[0];
  for (size_t i = 0; i < 2; i++) {
    const float t = std::tanh(2 * x.data<float>()[i]);
    EXPECT_NEAR(by.data<float>()[i], 2 * (1 - t * t), 1e-6);
  }
}

TEST(RecordedCalls, are_opened_at_once_where_a_gradient_passes) {
  const int64_t waiting = waiting_values();
  Tensor x = floats({0.5F, -1});
  x.set_requires_grad();
  const Tensor y = x.tanh();
  EXPECT_EQ(waiting_values(), waiting);
  const NoGrad off;
  const Tensor z = x.tanh();
  EXPECT_EQ(waiting_values(), waiting + 1);
  EXPECT_EQ(y.data<float>(), z.data<float>());
}

// What was recorded without gradients passes none, when it is opened as when it waits.
TEST(RecordedCalls, pass_no_gradient_that_was_off) {
  const Tensor x = floats({0.5F, -1}), targets[] = {x};
  const auto gradient_of_recorded = [&](auto function) {
    std::optional<Tensor> y;
    {
      const NoGrad off;
      y = function(x);
    }
    return y->add(x).sum().gradient(targets)[0].template data<float>();
  };
  EXPECT_EQ(gradient_of_recorded([](const Tensor& t) { return t.tanh(); }), (Floats{1, 1}));
  EXPECT_EQ(gradient_of_recorded([](const Tensor& t) { return t.tanh().realize(); }),
            (Floats{1, 1}));
}

TEST(RecordedCalls, are_opened_at_once_where_sizes_are_noted) {
  const Tensor x = counted({100}).realize();
  NumberWatch noted;
  const NumberWatch::Scope watched(&noted);
  const int64_t waiting = waiting_values();
  const Tensor y = x.tanh(), places = x.argsort();
  EXPECT_EQ(waiting_values(), waiting);
  EXPECT_NE(std::ranges::find(noted.exact, 100), noted.exact.end());  // a network for as many
}

TEST(RecordedCalls, note_no_sizes_when_they_are_opened) {
  const Tensor places = counted({100}).argsort();
  NumberWatch noted;
  const NumberWatch::Scope watched(&noted);
  EXPECT_EQ(places.data<int32_t>()[99], 99);
  EXPECT_TRUE(noted.exact.empty() && noted.at_most.empty());
}

TEST(RecordedCalls, are_bounded_by_what_they_will_be) {
  const test::Setting bound(config().most_pending_values, pending_values() + 500);
  Tensor x = floats({0.5F}).realize(), y = x.clone().realize();
  float expected = 0.5F;
  for (int i = 0; i < 100; i++) {
    x = x.sigmoid();
    y.update(Op::ADD, x);
    expected = 1 / (1 + std::exp(-expected));
    EXPECT_LE(pending_values(), config().most_pending_values + 200);  // one more than the bound
  }
  EXPECT_NEAR(x.item<float>(), expected, 1e-6);
}

TEST(RecordedCalls, of_no_elements) {
  const int64_t waiting = waiting_values();
  const Tensor none = Tensor::zeros({0, 3});
  EXPECT_TRUE(none.tanh().softmax(1).data<float>().empty());
  EXPECT_TRUE(none.sort(1).second.data<int32_t>().empty());
  EXPECT_TRUE(Tensor::randn({2, 0}).data<float>().empty());
  EXPECT_EQ(waiting_values(), waiting);
}

TEST(RecordedCalls, have_one_schedule_in_all_steps) {
  clear_schedule_cache();
  Tensor state = counted({8, 16}).mul(0.01).realize();
  const auto step = [&] {
    const Tensor drawn = Tensor::randn({8, 16}), x = state.add(drawn).gelu().softmax(1);
    const Tensor best = x.topk(3, 1).second.cast(dtypes::float32).mean();
    state.assign(state.mul(0.9).add(x.cumsum(1).mul(0.1)).add(best.mul(1e-3))).realize();
  };
  for (int i = 0; i < 3; i++) step();
  const uint64_t misses = schedule_cache_counts().misses;
  for (int i = 0; i < 5; i++) step();
  EXPECT_EQ(schedule_cache_counts().misses, misses);
}

TEST(RecordedCalls, are_opened_by_one_of_several_threads) {
  const Tensor x = counted({20}).mul(0.1).realize();
  for (int round = 0; round < 20; round++) {
    const Tensor y = x.tanh(), z = y.sort(0, true).first.erf();
    const Tensor targets[] = {x};
    const std::function<void()> work[] = {
        [&] { EXPECT_EQ(y.sum().item<float>(), x.tanh().sum().item<float>()); },
        [&] { EXPECT_NEAR(z.at({0}).item<float>(), std::erf(std::tanh(1.9F)), 1e-6); },
        [&] {  // 3, or 2 past a y that has been computed
          const Tensor by = x.mul(2.0).tanh().add(y).sum().gradient(targets)[0];
          EXPECT_NEAR(by.at({0}).item<float>(), 2.5, 0.5 + 1e-6);
        },
        [&] { EXPECT_NEAR(y.add(z).at({19}).item<float>(), std::tanh(1.9F), 1e-6); }};
    std::vector<std::thread> threads;
    threads.reserve(std::size(work));
    for (const auto& part : work) threads.emplace_back(part);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(RecordedCalls, are_as_many_kernels_as_their_bodies) {
  Tensor x = counted({100}).realize(), leaf = x.clone();
  leaf.set_requires_grad();
  EXPECT_EQ(x.gelu().kernel_count(), 1U);
  EXPECT_EQ(x.sort().first.kernel_count(), leaf.sort().first.kernel_count());
  EXPECT_EQ(Tensor::randn({100}).kernel_count(), 1U);
}

TEST(RecordedCalls, are_captured) {
  Jit f = jit([](std::span<const Tensor> in) {
    return std::vector<Tensor>{in[0].tanh().argsort(), Tensor::rand({2})};
  });
  Floats before;
  for (int i = 0; i < 4; i++) {
    const float last = float(i % 2) * 5;
    const std::vector<Tensor> out = f({floats({1, 3, last})});
    EXPECT_EQ(out[0].data<int32_t>(),
              i % 2 == 0 ? (std::vector<int32_t>{2, 0, 1}) : (std::vector<int32_t>{0, 1, 2}));
    EXPECT_NE(out[1].data<float>(), before);
    before = out[1].data<float>();
  }
}

// What was recorded before the function is a constant of it, waiting or not.
TEST(RecordedCalls, are_read_by_a_capture) {
  const Tensor x = floats({3, 1, 2}).realize(), before = x.tanh(), places = x.argsort();
  Jit f = jit([&](std::span<const Tensor> in) {
    return std::vector<Tensor>{in[0].mul(before).erf(), x.take(places)};
  });
  for (int i = 0; i < 4; i++) {
    const std::vector<Tensor> out = f({floats({float(i), 1, 1})});
    EXPECT_NEAR(out[0].data<float>()[0], std::erf(float(i) * std::tanh(3.0F)), 1e-6);
    EXPECT_EQ(out[1].data<float>(), (Floats{1, 2, 3}));
  }
}

TEST(RecordedCalls, are_captured_with_gradients_and_writes) {
  Tensor w = floats({0.5F, -0.25F}).realize(), count = floats({0}).realize();
  w.set_requires_grad();
  Jit f = jit([&](std::span<const Tensor> in) {
    const Tensor loss = w.mul(in[0].tanh()).sigmoid().sum(), targets[] = {w};
    const Tensor by = loss.gradient(targets)[0];
    const NoGrad off;
    count.update(Op::ADD, in[0].softmax(0).sum());
    return std::vector<Tensor>{by, in[0].sigmoid()};
  });
  for (int i = 0; i < 4; i++) {
    const float x = 0.1F * float(i + 1), t = std::tanh(x);
    const std::vector<Tensor> out = f({floats({x, x})});
    const float s = 1 / (1 + std::exp(-0.5F * t));
    EXPECT_NEAR(out[0].data<float>()[0], s * (1 - s) * t, 1e-6);
    EXPECT_NEAR(out[1].data<float>()[1], 1 / (1 + std::exp(-x)), 1e-6);
    EXPECT_NEAR(count.item<float>(), float(i + 1), 1e-5);
  }
}

// A formula that ends in a view gives a tensor of its own, recorded as a call or not.
TEST(RecordedCalls, are_memory_of_their_own) {
  for (const bool has_gradient : {false, true}) {
    Tensor x = floats({1, 2, 3, 4}).reshape({2, 2}).realize();
    if (has_gradient) x.set_requires_grad();
    Tensor sums = x.cumsum(0);
    const Tensor flat = sums.reshape({4});
    const NoGrad off;
    sums.set({int64_t(0), int64_t(0)}, 9.0);
    EXPECT_EQ(flat.data<float>(), (Floats{9, 2, 4, 6}));
  }
}

// An index that is computed: out of range it fails what was computed with it.
TEST(RecordedCalls, check_indices) {
  const Tensor x = floats({1, 2, 3}).realize();
  const Tensor i = test::counted({2}).cast(dtypes::int32);
  EXPECT_EQ(x.take(i.add(int64_t(1))).data<float>(), (Floats{2, 3}));
  EXPECT_THROW(x.take(i.add(int64_t(2))).realize(), IndexError);
  EXPECT_THROW(x.reshape({3, 1}).gather(0, i.add(int64_t(2)).reshape({2, 1})).realize(),
               IndexError);
}

TEST(RecordedCalls, have_a_name_and_attributes) {
  const Tensor x = counted({4, 3}).realize();
  EXPECT_EQ(text_of_call(*read(x.tanh())), "tanh");
  EXPECT_EQ(text_of_call(*read(x.softmax(1))), "softmax(1)");
  EXPECT_EQ(text_of_call(*read(x.cumsum(0))), "scan(ADD, 0)");
  const Ref<Value> a = read(x.cumsum(0)), b = read(x.cumsum(0)), c = read(x.cumsum(1));
  EXPECT_NE(a.get(), b.get());
  EXPECT_EQ(a->row(), b->row());
  EXPECT_TRUE(std::ranges::equal(a->numbers(), b->numbers()));
  EXPECT_EQ(a->row(), c->row());
  EXPECT_FALSE(std::ranges::equal(a->numbers(), c->numbers()));
  EXPECT_EQ(read(x.neg())->row(), nullptr);
}

struct Options {
  int64_t times = 0;
  bool is_moved = false;
  double by = 0;
  std::optional<int64_t> cut;
  std::array<int32_t, 2> pair{};

  auto fields() { return std::tie(times, is_moved, by, cut, pair); }
};

constexpr auto kOfAllKinds =
    row("of_all_kinds", [](Ints shape, const Options& o, Op op, DType dtype, const Sizes& sizes,
                           const Tensor& x, const Tensor& y) {
      const Tensor joined = x.mul(o.times).add(o.is_moved ? o.by : 0.0).binary(op, y);
      const Tensor rounded = joined.reshape(sizes).cast(dtype).add(int64_t(o.pair[1]));
      return rounded.add(o.cut.value_or(100)).reshape(shape);
    });

TEST(RecordedCalls, keep_attributes_of_all_kinds) {
  const Tensor x = floats({1, 2, 3, 4}).realize(), y = floats({3, 3, 3, 3}).realize();
  const Options options{.times = 2, .is_moved = true, .by = 0.25, .cut = {}, .pair = {7, -8}};
  Options cut = options;
  cut.cut = -5;
  const auto called = [&](const Options& o) {
    return call<kOfAllKinds>({dtypes::int64, {4}}, o, Op::MAX, dtypes::int32, Sizes{2, 2}, x, y);
  };
  const Tensor first = called(options), second = called(cut);
  const std::string rest = "}, MAX, int32, [2, 2])";
  EXPECT_EQ(text_of_call(*read(first)), "of_all_kinds({2, true, 0.25, none, [7, -8]" + rest);
  EXPECT_EQ(text_of_call(*read(second)), "of_all_kinds({2, true, 0.25, -5, [7, -8]" + rest);
  EXPECT_EQ(first.data<int64_t>(), (std::vector<int64_t>{95, 96, 98, 100}));
  EXPECT_EQ(second.data<int64_t>(), (std::vector<int64_t>{-10, -9, -7, -5}));
}

constexpr auto kOfAnotherShape =
    row("of_another_shape", [](int64_t by, const Tensor& x) { return x.repeat({by}); });

TEST(RecordedCalls, name_the_row_whose_body_has_another_shape) {
  const Tensor x = floats({1, 2}).realize();
  Tensor y = call<kOfAnotherShape>({dtypes::float32, {2}}, 3, x);
  try {
    y.realize();
    FAIL() << "nothing was thrown";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("of_another_shape(3) gives float32 (6)"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace weft
