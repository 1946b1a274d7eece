// Gradients from C++: through writes, views, realised values, and without them.
#include <cstdint>
#include <initializer_list>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ir/op.h"
#include "weft/weft.h"

namespace weft::test {
namespace {

using Floats = std::vector<float>;

Tensor leaf(std::initializer_list<float> elements) {
  return Tensor::from(elements).set_requires_grad();
}

Floats grad(const Tensor& x) { return x.grad()->data<float>(); }

TEST(Gradients, EachUseHasTheVersionThatItRead) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * x;
  const Tensor before = (y * y).sum();
  y.set({0}, 10.0);
  (before + y.sum()).backward();
  EXPECT_EQ(grad(x), (Floats{4, 36, 114}));
}

TEST(Gradients, AfterValues) {
  const Tensor x = leaf({1, 2});
  const Tensor loss = (x * x * x).sum();
  EXPECT_EQ(loss.item<float>(), 9);
  loss.backward();
  EXPECT_EQ(grad(x), (Floats{3, 12}));
}

TEST(Gradients, OfGradients) {
  const Tensor x = leaf({2});
  const Tensor first = (x * x * x).sum().gradient({x})[0];
  const Tensor second = first.sum().gradient({x})[0];
  EXPECT_EQ(first.item<float>(), 12);
  EXPECT_EQ(second.item<float>(), 12);
  EXPECT_EQ(second.sum().gradient({x})[0].item<float>(), 6);
}

TEST(Gradients, StepsWithoutThem) {
  Tensor w = leaf({3, 5});
  for (int i = 0; i < 3; i++) {
    w.set_grad({});
    (w * w).sum().backward();
    const NoGrad off;
    w.assign(w - *w.grad() * 0.25);
    w.realize();
  }
  EXPECT_EQ(w.data<float>(), (Floats{0.375, 0.625}));
  EXPECT_TRUE(w.requires_grad());
  EXPECT_TRUE(w.is_leaf());
}

TEST(Gradients, MemoryThatTheyDoNotReadIsFreed) {
  const Tensor x = Tensor::ones({1 << 16}).set_requires_grad();
  Tensor sum = x + 1.0;
  sum.realize();
  const int64_t before = live().bytes;
  for (int i = 0; i < 10; i++) {
    Tensor next = sum + 1.0;
    next.realize();
    sum = next;
  }
  EXPECT_EQ(live().bytes, before);
  sum.sum().backward();
  EXPECT_EQ(grad(x)[7], 1);
}

TEST(Gradients, DieWithTheirTensors) {
  const int64_t values = live().values, bytes = live().bytes;
  {
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = (x * x).unary(Op::EXP);
    const Tensor loss = (y * y).sum();
    loss.item();
    loss.backward();
    x.grad()->bytes();
  }
  EXPECT_EQ(live().values, values);
  EXPECT_EQ(live().bytes, bytes);
}

TEST(Gradients, LongChains) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100'000; i++) y = y + x;
  EXPECT_EQ(y.item<float>(), 100'001);
  y.backward();
  EXPECT_EQ(grad(x), (Floats{100'001}));
}

TEST(Gradients, OfThreads) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor shared = x * x;
  std::vector<std::thread> threads;
  std::vector<Floats> results(8);
  for (Floats& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; i++) {
        Tensor y = shared * 3.0;
        y.realize();
        const Tensor mine = y.sum().gradient({x})[0];
        result = mine.data<float>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Floats& result : results) EXPECT_EQ(result, (Floats{6, 12, 18, 24}));
}

TEST(Gradients, WhatHasNone) {
  EXPECT_THROW(Tensor::from({1, 2}).set_requires_grad(), DTypeError);
  EXPECT_THROW(Tensor::ones({2}).backward(), ShapeError);
  EXPECT_THROW(Tensor::ones({1}).backward(), Error);
  const Tensor x = leaf({1});
  EXPECT_THROW((x * x).gradient({Tensor::ones({1})}), Error);
}

}  // namespace
}  // namespace weft::test
