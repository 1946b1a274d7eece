// A network of two layers learns the exclusive or, its steps captured by a jit.
#include <cstdio>
#include <span>
#include <vector>

#include "weft/weft.h"

using weft::Tensor;

int main() {
  Tensor::manual_seed(7);
  const Tensor x = weft::tensor({0, 0, 0, 1, 1, 0, 1, 1}).reshape({4, 2});
  const Tensor y = weft::tensor({0, 1, 1, 0}).reshape({4, 1});
  std::vector<Tensor> weights = {weft::randn({2, 8}), weft::zeros({8}), weft::randn({8, 1}),
                                 weft::zeros({1})};
  for (Tensor& w : weights) w.set_requires_grad();

  weft::Jit step = weft::jit([&](std::span<const Tensor> in) {
    const Tensor hidden = (in[0].matmul(weights[0]) + weights[1]).tanh();
    const Tensor error = (hidden.matmul(weights[2]) + weights[3]).sigmoid() - y;
    const Tensor loss = (error * error).mean();
    for (Tensor& w : weights) w.set_grad({});
    loss.backward();
    const weft::NoGrad off;
    for (Tensor& w : weights) w.assign(w - *w.grad() * 2.0);
    return std::vector{loss};
  });

  float loss = 1;
  for (int i = 0; i < 1000; i++) {
    loss = step({x})[0].item<float>();
    if (i % 250 == 0) std::printf("step %4d  loss %.4f\n", i, double(loss));
  }
  std::printf("at last    loss %.4f\n", double(loss));
  return loss < 0.01F ? 0 : 1;
}
