// Functions of tensors whose kernels are found once and run again.
//
//   auto step = weft::jit([&](std::span<const weft::Tensor> in) {
//     weights.assign(weights - in[0] * 0.1);
//     return std::vector{weights.sum()};
//   });
//   float loss = step({gradient})[0].item<float>();
//
// The first call runs as it is, the second captures, later ones replay: the function itself is not
// called. What it gives, and what it writes, is the same in all of them. Where kernels serve other
// sizes, too, and have done much work, it is captured once more, with kernels for its sizes alone.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/tensor.h"

namespace weft {

struct JitRecipe;

// One captured call. Tensors that the function reads or writes without getting them are captured
// storages: a replay finds what they hold then, and writes to them.
class JitCapture {
 public:
  using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

  // Calls the function, and gives what it gives, computed. `capture` is empty where there is
  // nothing to replay. Throws JitError when the function asks for values on the way, keeps an
  // argument, or writes to memory that it has both as an argument and otherwise.
  // `before_giving_up` is called before an argument is said to be kept: owners may be garbage.
  struct Result;
  static Result run(std::span<const Tensor> inputs, const Function& function,
                    const std::function<void()>& before_giving_up = {});

  // The same for other inputs. Nothing, and nothing has happened, where these are not what was
  // captured: in number, shape, strides, dtype, device, in how they share memory with each other
  // and with captured storages; or where a captured storage is held by nobody else any more, so
  // that the function would find another one in its place; or where the capture is spent.
  std::optional<std::vector<Tensor>> replay(std::span<const Tensor> inputs) const;

  // Its kernels serve other sizes, too, and have done so much work that a capture made now would
  // have faster ones.
  bool is_spent() const;

  size_t kernels() const;

 private:
  explicit JitCapture(std::shared_ptr<const JitRecipe> recipe) : recipe_(std::move(recipe)) {}
  std::shared_ptr<const JitRecipe> recipe_;
};

struct JitCapture::Result {
  std::optional<JitCapture> capture;
  std::vector<Tensor> outputs;
};

// A function with its captures: the last few, for inputs of different kinds. Numbers that the
// function reads from outside are part of what is captured. Not thread-safe.
class Jit {
 public:
  using Function = JitCapture::Function;

  explicit Jit(Function function) : function_(std::move(function)) {}

  std::vector<Tensor> operator()(std::span<const Tensor> inputs);
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) {
    return (*this)(std::span(inputs.begin(), inputs.size()));
  }
  size_t captures() const { return captures_.size(); }
  // Forgets what was captured.
  void reset();

 private:
  Function function_;
  std::vector<JitCapture> captures_;  // most recently used last
  bool has_run_ = false;
};

inline Jit jit(Jit::Function function) { return Jit(std::move(function)); }

// This thread captures a function.
bool is_capturing();

}  // namespace weft
