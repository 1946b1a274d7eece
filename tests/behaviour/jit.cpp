// A captured function gives, call after call, what the function gives.
#include "weft/jit.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "value/storage.h"
#include "weft/counters.h"
#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/small_vector.h"
#include "weft/tensor.h"
#include "weft/variable.h"

namespace weft {
namespace {

using test::counted;
using test::floats;
using test::Floats;
using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

TEST(Jit, replays_with_new_inputs_and_calls_nothing) {
  int calls = 0;
  Jit f = jit([&](In in) {
    calls++;
    return Out{in[0] * in[1] + 1, in[0].sum()};
  });
  for (int i = 0; i < 5; i++) {
    const float x = float(i);
    const Out out = f({floats({x, 2}), floats({3, x})});
    EXPECT_EQ(out[0].data<float>(), (Floats{3 * x + 1, 2 * x + 1}));
    EXPECT_EQ(out[1].item<float>(), x + 2);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, a_replay_runs_the_kernels_of_the_capture) {
  Jit f = jit([](In in) { return Out{in[0].sum() * 2}; });
  f({counted({4})});
  f({counted({4})});
  const Tensor x = counted({4});
  reset_counters();
  f({x});
  EXPECT_EQ(counters().kernels, 1U);
}

// On a device that runs nothing.
TEST(Jit, kernels_of_many_sizes_make_place_for_those_of_one) {
  int calls = 0;
  Jit f = jit([&](In in) {
    calls++;
    return Out{in[0].matmul(in[1])};
  });
  const auto square = [](int64_t n) {
    return Tensor::zeros({n, n}, dtypes::float32, "NULL").contiguous().realize();
  };
  const std::vector<int64_t> sizes = {100, 200, 40};
  std::vector<Tensor> inputs;
  for (const int64_t n : sizes) inputs.push_back(square(n));
  for (const Tensor& x : inputs) {
    x.matmul(x).realize();
    for (int i = 0; i < 10; i++) f({x, x});
  }
  EXPECT_EQ(f.captures(), 3U);
  // The first runs as it is; the second size is captured twice; the third does too little.
  EXPECT_EQ(calls, 1 + 1 + 2 + 1);
}

TEST(Jit, captured_storages_are_read_as_they_are_and_written) {
  Tensor w = floats({1, 2});
  Jit f = jit([&](In in) {
    w.assign(w + in[0]);
    return Out{w * 10};
  });
  float sum = 0;
  for (int i = 0; i < 6; i++) {
    if (i == 3) w.set({1}, 100.0);          // lazily, between calls
    if (i == 4) w.assign(w - 1).realize();  // in other memory or not
    sum += float(i) - (i == 4 ? 1.0F : 0.0F);
    const Out out = f({floats({float(i), 0})});
    EXPECT_EQ(w.at({0}).item<float>(), 1 + sum);
    EXPECT_EQ(out[0].at({0}).item<float>(), 10 * (1 + sum));
    EXPECT_EQ(w.at({1}).item<float>(), i < 3 ? 2 : i == 3 ? 100 : 99);
  }
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, what_is_written_alone_is_written_in_place) {
  Tensor cache = Tensor::zeros({64}).realize();
  Jit f = jit([&](In in) {
    cache.at({Slice{0, 2}}).assign(in[0]);
    return Out{};
  });
  for (int i = 0; i < 3; i++) f({floats({1, float(i)})});
  const void* const memory = cache.storage()->memory()->memory();
  f({floats({7, 8})});
  EXPECT_EQ(cache.storage()->memory()->memory(), memory);
  EXPECT_EQ(cache.at({1}).item<float>(), 8);
  EXPECT_EQ(cache.at({2}).item<float>(), 0);
}

TEST(Jit, lazy_readers_keep_what_a_replay_overwrites) {
  Tensor w = floats({1, 2});
  Jit f = jit([&](In in) {
    w.at({0}).assign(in[0].sum());
    return Out{};
  });
  std::vector<Tensor> readers, copies;
  for (int i = 0; i < 5; i++) {
    readers.push_back(w * 10);
    copies.push_back(w.clone());
    f({floats({float(i), 1})});
  }
  for (int i = 0; i < 5; i++) {
    const float before = i == 0 ? 1 : float(i);
    EXPECT_EQ(readers[size_t(i)].data<float>(), (Floats{before * 10, 20}));
    EXPECT_EQ(copies[size_t(i)].data<float>(), (Floats{before, 2}));
  }
}

TEST(Jit, outputs_that_live_are_not_overwritten) {
  Jit f = jit([](In in) { return Out{in[0] + 1}; });
  Out all;
  for (int i = 0; i < 5; i++) all.push_back(f({floats({float(i)})})[0]);
  for (int i = 0; i < 5; i++) EXPECT_EQ(all[size_t(i)].item<float>(), float(i + 1));
  for (int i = 0; i < 3; i++) all[0] = f({all[0]})[0];
  EXPECT_EQ(all[0].item<float>(), 4);
}

TEST(Jit, written_arguments) {
  Jit f = jit([](In in) {
    Tensor(in[0]).assign(in[0] * 2);
    return Out{in[0], in[0].at({Slice{1, {}}})};
  });
  for (int i = 0; i < 4; i++) {
    const Tensor x = floats({float(i), 1, 2});
    const Tensor reader = x + 0, view = x.at({Slice{0, 2}});
    const Out out = f({x});
    EXPECT_EQ(x.data<float>(), (Floats{2 * float(i), 2, 4}));
    EXPECT_EQ(view.data<float>(), (Floats{2 * float(i), 2}));
    EXPECT_EQ(reader.data<float>(), (Floats{float(i), 1, 2}));
    EXPECT_TRUE(out[0].shares_memory_with(x) && out[1].shares_memory_with(x));
    EXPECT_EQ(out[1].data<float>(), (Floats{2, 4}));
  }
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, shapes_dtypes_strides_and_shared_memory_are_told_apart) {
  const auto function = [](In in) {
    Tensor(in[0]).assign(in[1] + 1);
    return Out{in[1] * 2};
  };
  Jit f = jit(function);
  const auto check = [&](const Tensor& a, const Tensor& b, const Tensor& plain_a,
                         const Tensor& plain_b) {
    const Floats result = f({a, b})[0].data<float>();
    const std::vector<Tensor> plain = {plain_a, plain_b};
    EXPECT_EQ(result, function(plain)[0].data<float>());
    EXPECT_EQ(a.data<float>(), plain_a.data<float>());
    EXPECT_EQ(b.data<float>(), plain_b.data<float>());
  };
  for (int i = 0; i < 3; i++) {
    check(counted({4}), counted({4}), counted({4}), counted({4}));
    check(counted({2, 2}), counted({2, 2}), counted({2, 2}), counted({2, 2}));
    check(counted({4}).cast(dtypes::int32), counted({4}), counted({4}).cast(dtypes::int32),
          counted({4}));
    check(counted({2, 2}).transpose(), counted({2, 2}), counted({2, 2}).transpose(),
          counted({2, 2}));
    const Tensor one = counted({4}), other = counted({4});
    check(one, one, other, other);
    const Tensor left = counted({8}), right = counted({8});
    check(left.at({Slice{1, 5}}), left.at({Slice{0, 4}}), right.at({Slice{1, 5}}),
          right.at({Slice{0, 4}}));
    EXPECT_EQ(left.data<float>(), right.data<float>());
  }
}

TEST(Jit, runs_of_elements_are_one_kind_wherever_they_lie) {
  Tensor data = counted({8, 2}).realize();
  Jit f = jit([](In in) { return Out{in[0].sum(), in[0].at({1})}; });
  for (int64_t i = 0; i < 8; i++) {
    const Out out = f({data.at({i})});
    EXPECT_EQ(out[0].item<float>(), float(4 * i + 1));
    EXPECT_TRUE(out[1].shares_memory_with(data));
    EXPECT_EQ(out[1].item<float>(), float(2 * i + 1));
  }
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, writes_to_runs_of_elements_reach_the_storage) {
  Tensor data = counted({8, 2}).realize();
  Jit f = jit([](In in) {
    Tensor(in[0]).assign(in[0] + 100);
    return Out{in[0]};
  });
  for (int64_t i = 0; i < 5; i++) {
    const Tensor before = data * 1;
    const Out out = f({data.at({i})});
    EXPECT_EQ(data.at({i, 1}).item<float>(), float(2 * i + 101));
    EXPECT_EQ(out[0].at({0}).item<float>(), float(2 * i + 100));
    EXPECT_EQ(before.at({i, 1}).item<float>(), float(2 * i + 1));
  }
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, an_argument_that_is_captured_too) {
  Tensor w = floats({1, 2});
  Jit read = jit([&](In in) { return Out{in[0] + w}; });
  for (int i = 0; i < 4; i++) {
    const Tensor x = i % 2 == 0 ? w : floats({10, 20});
    EXPECT_EQ(read({x})[0].data<float>(), i % 2 == 0 ? (Floats{2, 4}) : (Floats{11, 22}));
  }
  Jit write = jit([&](In in) {
    w.assign(w + 1);
    return Out{in[0] + w};
  });
  const Tensor other = floats({0, 0});
  for (int i = 0; i < 3; i++) write({other});
  EXPECT_EQ(w.data<float>(), (Floats{4, 5}));
  EXPECT_NE(test::thrown<JitError>([&] { write({w}); }).find("argument 0 shares memory"),
            std::string::npos);
  EXPECT_EQ(w.data<float>(), (Floats{4, 5}));  // as it was
  EXPECT_EQ(write({other})[0].data<float>(), (Floats{5, 6}));
}

TEST(Jit, asking_for_values_while_captured_is_an_error) {
  const Tensor realized = floats({3});
  bool asks_known = false;
  Jit f = jit([&](In in) {
    const float x = asks_known ? realized.item<float>() : in[0].sum().item<float>();
    return Out{in[0] + x};
  });
  EXPECT_EQ(f({floats({1})})[0].item<float>(), 2);
  EXPECT_NE(test::thrown<JitError>([&] { f({floats({1})}); }).find("asks for values"),
            std::string::npos);
  asks_known = true;
  EXPECT_NE(test::thrown<JitError>([&] { f({floats({1})}); }).find("asks for values"),
            std::string::npos);
  EXPECT_EQ(realized.item<float>(), 3);  // not captured any more
}

TEST(Jit, a_function_that_throws_has_written_what_it_wrote) {
  Tensor w = floats({1});
  bool throws = false;
  Jit f = jit([&](In in) {
    w.assign(w + 1);
    Tensor(in[0]).assign(w * 2);
    if (throws) throw std::runtime_error("mine");
    return Out{};
  });
  const Tensor x = floats({0});
  f({x});
  throws = true;
  EXPECT_EQ(test::thrown<std::runtime_error>([&] { f({x}); }), "mine");
  EXPECT_EQ(w.item<float>(), 3);
  EXPECT_EQ(x.item<float>(), 6);
}

TEST(Jit, an_argument_that_is_kept_is_an_error) {
  std::optional<Tensor> kept;
  Jit f = jit([&](In in) {
    kept = in[0].at({Slice{1, {}}});
    return Out{in[0] + 1};
  });
  f({floats({1, 2})});
  EXPECT_NE(test::thrown<JitError>([&] { f({floats({1, 2})}); }).find("keeps an argument"),
            std::string::npos);
}

TEST(Jit, a_captured_tensor_that_is_another_one_now) {
  Tensor w = floats({1});
  Jit f = jit([&](In in) { return Out{in[0] + w}; });
  for (int i = 0; i < 3; i++) EXPECT_EQ(f({floats({1})})[0].item<float>(), 2);
  w = floats({5});
  for (int i = 0; i < 3; i++) EXPECT_EQ(f({floats({1})})[0].item<float>(), 6);
}

TEST(Jit, what_the_function_makes_from_data_is_made_once_and_kept) {
  Jit f = jit([](In in) {
    Tensor table = floats({1, 2, 3});
    table.at({0}).assign(in[0].sum());
    return Out{table, floats({7})};
  });
  for (int i = 0; i < 4; i++) {
    Out out = f({floats({float(i)})});
    EXPECT_EQ(out[0].data<float>(), (Floats{float(i), 2, 3}));
    EXPECT_EQ(out[1].item<float>(), 7);
    out[1].assign(0).realize();
  }
}

TEST(Jit, versions_handed_on) {
  Tensor a = floats({1}), b = floats({2});
  Jit f = jit([&](In) {
    const Tensor old = a.clone();
    a.assign(a + b);
    b.assign(old);
    return Out{b.clone(), a.reshape({1, 1})};
  });
  float x = 1, y = 2;
  for (int i = 0; i < 6; i++) {
    const Out out = f(std::vector<Tensor>{});
    const float sum = x + y;
    y = x;
    x = sum;
    EXPECT_EQ(a.item<float>(), x);
    EXPECT_EQ(b.item<float>(), y);
    EXPECT_EQ(out[0].item<float>(), y);
    EXPECT_EQ(out[1].item<float>(), x);
  }
}

TEST(Jit, a_captured_function_in_another_one) {
  Jit inner = jit([](In in) { return Out{in[0] * 2}; });
  Jit outer = jit([&](In in) { return Out{inner({in[0] + 1})[0] + 1}; });
  for (int i = 0; i < 4; i++)
    EXPECT_EQ(outer({floats({float(i)})})[0].item<float>(), 2.0F * float(i) + 3);
  EXPECT_EQ(inner.captures(), 0U);
}

TEST(Jit, of_no_elements_and_of_no_arguments) {
  Jit f = jit([](In in) { return Out{in[0] + 1, Tensor::ones({2}), Tensor::empty({0, 3})}; });
  for (int i = 0; i < 4; i++) {
    const Out out = f({Tensor::zeros({0})});
    EXPECT_EQ(out[0].numel(), 0);
    EXPECT_EQ(out[1].data<float>(), (Floats{1, 1}));
    EXPECT_TRUE(out[2].data<float>().empty());
  }
}

TEST(Jit, at_most_eight_captures) {
  Jit f = jit([](In in) { return Out{in[0] + 1}; });
  for (int64_t round = 0; round < 2; round++) {
    for (int64_t n = 1; n < 15; n++) EXPECT_EQ(f({counted({n})})[0].numel(), n);
  }
  EXPECT_EQ(f.captures(), 8U);
  f.reset();
  EXPECT_EQ(f.captures(), 0U);
}

TEST(Jit, one_capture_for_all_values_of_a_variable) {
  const Variable position("position", 0, 63);
  Tensor cache = Tensor::zeros({64, 2});
  int calls = 0;
  Jit f = jit([&](In in, std::span<const int64_t> at) {
    calls++;
    Tensor row = cache.at({at[0]});
    row.assign(in[0]);
    const Tensor past = cache.at({Slice{0, at[0] + 1}});
    return Out{past.sum(std::vector<int64_t>{0}), past * 2};
  });
  Floats expected{0, 0};
  for (int64_t i = 0; i < 64; i++) {
    const float x = float(i % 7);
    expected = {expected[0] + x, expected[1] + 1};
    const Out out = f({floats({x, 1})}, {position.bind(i)});
    EXPECT_EQ(out[0].data<float>(), expected) << i;
    ASSERT_EQ(Sizes(out[1].shape()), (Sizes{i + 1, 2}));
    EXPECT_EQ(out[1].at({i}).data<float>(), (Floats{2 * x, 2})) << i;
  }
  EXPECT_LE(calls, 6);
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, two_variables_in_any_order_of_values) {
  const Variable begin("begin", 0, 9), size("size", 1, 10);
  const Tensor x = counted({20});
  Jit f = jit(
      [&](In, std::span<const int64_t> v) { return Out{x.at({Slice{v[0], v[0] + v[1]}}).sum()}; });
  for (int64_t i = 0; i < 40; i++) {
    const int64_t b = i * 7 % 10, n = i * i % 7 + 2;
    const int64_t sum = n * b + n * (n - 1) / 2;
    EXPECT_EQ(f({}, {begin.bind(b), size.bind(n)})[0].item<float>(), float(sum));
  }
  EXPECT_EQ(f.captures(), 1U);
}

TEST(Jit, variables_are_checked) {
  EXPECT_THROW(Variable("n", 3, 2), ShapeError);
  EXPECT_THROW(Variable("", 1, 2), ShapeError);
  const Variable n("n", 2, 4);
  EXPECT_THROW(n.bind(1), ShapeError);
  EXPECT_THROW(n.bind(5), ShapeError);
  Jit f = jit([](In in, std::span<const int64_t> v) { return Out{in[0] * v[0]}; });
  EXPECT_THROW(f({counted({4})}, {n.bind(2), n.bind(3)}), JitError);
  EXPECT_EQ(f({floats({1})}, {n.bind(2)})[0].item<float>(), 2);
}

TEST(Jit, other_threads_read_one_version_or_the_other) {
  Tensor w = Tensor::zeros({1000}).realize();
  Jit f = jit([&](In) {
    w.assign(w + 1);
    return Out{};
  });
  std::thread reader([&] {
    for (int i = 0; i < 200; i++) {
      const Floats seen = Tensor(w).data<float>();
      EXPECT_EQ(seen.front(), seen.back());
    }
  });
  for (int i = 0; i < 50; i++) f(std::vector<Tensor>{});
  reader.join();
  EXPECT_EQ(w.at({999}).item<float>(), 50);
}

}  // namespace
}  // namespace weft
