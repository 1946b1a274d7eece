// Operations of users in C++: gradients that they give, kernels that they write, and what a
// recording sees of a run.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/build.h"
#include "ir/dtype.h"
#include "ir/node.h"
#include "tensor/custom_kernel.h"
#include "tensor/recording.h"
#include "tests/unit/tensor_helpers.h"
#include "weft/weft.h"

namespace weft::test {
namespace {

using Gradients = std::vector<std::optional<Tensor>>;

Tensor leaf(std::initializer_list<float> elements) {
  return Tensor::from(elements).set_requires_grad();
}

// x * x, whose gradient is said to be ten times what it is.
Tensor square(const Tensor& x) {
  std::optional<Tensor> values;
  {
    const NoGrad off;
    values = x * x;
  }
  const Tensor results[] = {*values}, inputs[] = {x};
  return Tensor::with_gradient(results, inputs, [x](const Tensor::BackwardCall& call) {
    return Gradients{call.gradients[0] * x * 20.0};
  })[0];
}

TEST(WithGradient, GivesTheGradientThatItIsTold) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = square(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_EQ(y.data<float>(), (Floats{1, 4, 9}));
  (y * 2.0).sum().backward();
  EXPECT_EQ(x.grad()->data<float>(), (Floats{40, 80, 120}));
}

TEST(WithGradient, IsDifferentiatedAgain) {
  const Tensor x = leaf({3});
  const Tensor first = square(x).sum().gradient({x})[0];
  EXPECT_EQ(first.item<float>(), 60);
  EXPECT_EQ(first.sum().gradient({x})[0].item<float>(), 20);
}

TEST(WithGradient, IsCalledOnceForSeveralResults) {
  const Tensor x = leaf({1, 2});
  const Tensor results[] = {x.detach() * 2.0, x.detach() * 3.0}, inputs[] = {x};
  int calls = 0;
  const std::vector<Tensor> y =
      Tensor::with_gradient(results, inputs, [&](const Tensor::BackwardCall& call) {
        calls++;
        return Gradients{call.gradients[0] * 2.0 + call.gradients[1] * 3.0};
      });
  (y[0].sum() + (y[1] * y[1]).sum()).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(x.grad()->data<float>(), (Floats{2 + 18, 2 + 36}));
}

TEST(WithGradient, WithoutGradientsResultsAreDetached) {
  const Tensor x = leaf({1, 2});
  const NoGrad off;
  EXPECT_FALSE(square(x).requires_grad());
}

TEST(WithGradient, RefusesWhatDoesNotFit) {
  const Tensor x = leaf({1, 2});
  const Tensor results[] = {x.detach()}, inputs[] = {x};
  const auto loss_with = [&](Gradients by) {
    return Tensor::with_gradient(results, inputs, [by](const auto&) { return by; })[0].sum();
  };
  EXPECT_EQ(thrown<ShapeError>([&] { loss_with({}).backward(); }),
            "[function] its backward gave 0 gradients for 1 tensors");
  EXPECT_NE(thrown<ShapeError>([&] { loss_with({Tensor::ones({3})}).backward(); }).find("(3)"),
            std::string::npos);
  EXPECT_FALSE(x.grad());
}

// ---------------------------------------------------------------------------------------- kernels

// Twice an input of n elements.
Graph doubling(int64_t n) {
  auto arena = std::make_shared<Arena>();
  const UOp out = define_global(*arena, dtypes::float32, n, 0);
  const UOp in = define_global(*arena, dtypes::float32, n, 1);
  const UOp i = range(*arena, n, 0);
  const UOp value = load(index(in, i)) * constant(*arena, dtypes::float32, 2.0);
  return {arena, sink(end(index(out, i).assign(value), i))};
}

Tensor doubled(const Tensor& x) {
  const CustomOutput outputs[] = {{Sizes(x.shape()), dtypes::float32}};
  const Tensor inputs[] = {x};
  return custom_kernel(doubling(x.numel()), "doubled", outputs, inputs, {})[0];
}

TEST(CustomKernels, AreLazyAndReadTheInputsOfTheCall) {
  Tensor x = floats({1, 2, 3, 4});
  const Tensor y = doubled(x + 1.0);
  EXPECT_FALSE(y.is_realized());
  x.assign(0.0);
  EXPECT_EQ((y + 1.0).data<float>(), (Floats{5, 7, 9, 11}));
  EXPECT_TRUE(y.is_realized());
}

TEST(CustomKernels, AreListedAndCounted) {
  const Tensor y = doubled(doubled(floats({1, 2})));
  const std::vector<ScheduledKernel> kernels = y.schedule();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "doubled");
  EXPECT_EQ(kernels[1].buffers, 2U);
  EXPECT_EQ(y.kernel_count(), 2U);
  EXPECT_EQ(y.data<float>(), (Floats{4, 8}));
  EXPECT_EQ(y.kernel_count(), 0U);
}

TEST(CustomKernels, AreCaptured) {
  Tensor state = floats({0, 0});
  Jit step([&](std::span<const Tensor> inputs) {
    state.set({0}, doubled(inputs[0]).at({1}));
    return std::vector<Tensor>{doubled(state + inputs[0])};
  });
  for (int i = 0; i < 5; i++) {
    const auto k = float(i);
    const Tensor inputs[] = {floats({k, 1})};
    EXPECT_EQ(step(inputs)[0].data<float>(), (Floats{2 * (2 + k), 2}));
  }
  EXPECT_EQ(state.data<float>(), (Floats{2, 0}));
}

TEST(CustomKernels, HaveMemoryOfTheirOwnAlone) {
  const CustomOutput outputs[] = {{Sizes{2}, dtypes::float32}};
  const std::string text =
      thrown<SpecError>([&] { custom_kernel(doubling(2), "doubled", outputs, {}, {}); });
  EXPECT_EQ(text, "[custom_kernel] there is no memory 1; outputs and inputs are 0 to 0");
}

// -------------------------------------------------------------------------------------- recordings

TEST(Recordings, SeeOperationsAndUndoWrites) {
  Tensor x = floats({1, 2});
  const Tensor view = x.at({0});
  int noted = 0;
  Recording recording(Recording::Mode::kEager, [&] { noted++; });
  recording.start();
  EXPECT_TRUE(is_recording());
  const Tensor y = x + 1.0;
  x.set({0}, 9.0);
  recording.stop();
  EXPECT_FALSE(is_recording());
  EXPECT_EQ(noted, int(recording.operations().size()));
  ASSERT_EQ(recording.changed().size(), 1U);
  EXPECT_TRUE(y.is_realized());
  EXPECT_EQ(Recording::tensor_of_result(recording.operations()[0].result).data<float>(),
            (Floats{2, 3}));
  EXPECT_EQ(view.item<float>(), 9);
  recording.undo();
  EXPECT_EQ(view.item<float>(), 1);
  EXPECT_EQ(x.data<float>(), (Floats{1, 2}));
}

TEST(Recordings, UndoGradients) {
  const Tensor x = leaf({1, 2});
  Recording recording(Recording::Mode::kKept, {});
  recording.start();
  (x * x).sum().backward();
  recording.stop();
  EXPECT_EQ(x.grad()->data<float>(), (Floats{2, 4}));
  recording.undo_in_own_memory();
  EXPECT_FALSE(x.grad());
  EXPECT_EQ(x.data<float>(), (Floats{1, 2}));
}

TEST(Recordings, DoNotCountWhatTheRunMade) {
  Recording recording(Recording::Mode::kKept, {});
  recording.start();
  Tensor made = Tensor::zeros({3});
  made.set({1}, 5.0);
  recording.stop();
  EXPECT_TRUE(recording.changed().empty());
  EXPECT_EQ(made.data<float>(), (Floats{0, 5, 0}));
}

}  // namespace
}  // namespace weft::test
