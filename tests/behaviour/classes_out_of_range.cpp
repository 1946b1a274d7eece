// Classes that do not exist: losses, one_hot and gradients throw, and never give data.
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/tensor_helpers.h"
#include "weft/weft.h"

namespace weft::test {
namespace {

using Loss = std::function<Tensor(const Tensor&, const Tensor&)>;

Tensor logits() { return counted({3, 4}); }
Tensor in_memory(int32_t bad) { return Tensor::from({0, bad, 1}); }
Tensor computed_later(int32_t bad) { return in_memory(bad).add(Tensor::from({0, 0, 0})); }

const std::array<Loss, 4> kLosses = {
    [](const Tensor& x, const Tensor& y) { return x.cross_entropy(y); },
    [](const Tensor& x, const Tensor& y) { return x.cross_entropy(y, Reduction::kSum, 0.1); },
    [](const Tensor& x, const Tensor& y) { return x.nll_loss(y, floats({1, 2, 3, 4})); },
    [](const Tensor& x, const Tensor& y) { return x.sparse_categorical_crossentropy(y); },
};

TEST(ClassesOutOfRange, InMemoryTheCallThrows) {
  for (const Loss& loss : kLosses) {
    EXPECT_THROW(loss(logits(), in_memory(4)), IndexError);
    EXPECT_THROW(loss(logits(), in_memory(-2)), IndexError);
  }
  EXPECT_EQ(thrown<IndexError>([] { logits().cross_entropy(in_memory(7)); }),
            "[cross_entropy] 7 is out of bounds of axis 1 with size 4");
  EXPECT_THROW(in_memory(4).one_hot(4), IndexError);
  EXPECT_THROW(in_memory(-1).one_hot(4), IndexError);
}

TEST(ClassesOutOfRange, ComputedLaterEveryReadThrows) {
  for (const int32_t bad : {4, -2}) {
    for (const Loss& loss : kLosses) {
      const Tensor lost = loss(logits(), computed_later(bad));
      EXPECT_THROW(lost.item<float>(), IndexError);
      EXPECT_THROW(lost.item<float>(), IndexError);
    }
    EXPECT_THROW(computed_later(bad).one_hot(4).data<int32_t>(), IndexError);
  }
}

TEST(ClassesOutOfRange, TheGradientThrowsThoughNobodyReadsTheLoss) {
  for (const Loss& loss : kLosses) {
    Tensor x = logits();
    x.set_requires_grad(true);
    loss(x, computed_later(9)).backward();
    EXPECT_THROW(x.grad()->data<float>(), IndexError);
    EXPECT_EQ(x.data<float>(), logits().data<float>());
  }
}

TEST(ClassesOutOfRange, WhatIsIgnoredIsNoError) {
  for (const Tensor& y : {in_memory(-7), computed_later(-7)}) {
    const float kept = floats({0, 9}).mean().neg().item<float>();
    EXPECT_EQ(logits().nll_loss(y, {}, -7).item<float>(), kept);
    EXPECT_THROW(logits().nll_loss(y, {}, -8).item<float>(), IndexError);
  }
}

}  // namespace
}  // namespace weft::test
