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
//
// Variables that are bound to other values in each call (variable.h) are arguments, too: after a
// few calls with different values one capture serves all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/tensor.h"
#include "weft/variable.h"

namespace weft {

class JitGeneral;
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
  //
  // `variables` are those whose values the function uses: it makes the same graph for other values,
  // with other sizes and offsets in it, and asks nothing else about them.
  struct Result;
  static Result run(std::span<const Tensor> inputs, const Function& function,
                    const std::function<void()>& before_giving_up = {},
                    std::span<const VariableValue> variables = {});

  // The same for other inputs. Nothing, and nothing has happened, where these are not what was
  // captured: in number, shape, strides, dtype, device, in how they share memory with each other
  // and with captured storages; or where a captured storage is held by nobody else any more, so
  // that the function would find another one in its place; or where the capture is spent.
  // `values` are those of the variables, in their order: others than were captured are served by
  // what merged() gives.
  std::optional<std::vector<Tensor>> replay(std::span<const Tensor> inputs,
                                            std::span<const int64_t> values = {}) const;

  // One capture for all values of the variables, of several with different values, the newest last.
  // Nothing where those do not differ in what follows from the values, or are too few to say. Where
  // the function would do something else for a value, that one is not served.
  static std::optional<JitCapture> merged(std::span<const JitCapture* const> captures);
  // Serves all calls that the other one does.
  bool replaces(const JitCapture& other) const;

  // Its kernels serve other sizes, too, and have done so much work that a capture made now would
  // have faster ones.
  bool is_spent() const;

  size_t kernels() const;

 private:
  explicit JitCapture(std::shared_ptr<const JitRecipe> recipe,
                      std::shared_ptr<const JitGeneral> general = {})
      : recipe_(std::move(recipe)), general_(std::move(general)) {}
  std::shared_ptr<const JitRecipe> recipe_;
  std::shared_ptr<const JitGeneral> general_;  // null: of one call
};

struct JitCapture::Result {
  std::optional<JitCapture> capture;
  std::vector<Tensor> outputs;
};

// A function with its captures: the last few, for inputs of different kinds. Numbers that the
// function reads from outside are part of what is captured. Not thread-safe.
//
// A function of variables gets their values, in the order of the call. It uses them as sizes,
// offsets and numbers in tensors: a choice that it makes by one in C++ is made once, as that of a
// number from outside.
class Jit {
 public:
  using Function = JitCapture::Function;
  using FunctionOfVariables =
      std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const int64_t>)>;

  explicit Jit(Function function);
  explicit Jit(FunctionOfVariables function) : function_(std::move(function)) {}

  // Throws JitError where one variable has two values.
  std::vector<Tensor> operator()(std::span<const Tensor> inputs,
                                 std::span<const VariableValue> variables = {});
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs,
                                 std::initializer_list<VariableValue> variables = {}) {
    return (*this)(std::span(inputs.begin(), inputs.size()),
                   std::span(variables.begin(), variables.size()));
  }
  size_t captures() const { return captures_.size(); }
  // Forgets what was captured.
  void reset();

 private:
  void add(JitCapture capture, std::span<const VariableValue> variables);

  // A capture, and the variables of its calls.
  struct Captured {
    JitCapture capture;
    std::vector<Variable> variables;
  };
  FunctionOfVariables function_;
  std::vector<Captured> captures_;  // most recently used last
  bool has_run_ = false;
};

inline Jit jit(Jit::Function function) { return Jit(std::move(function)); }
inline Jit jit(Jit::FunctionOfVariables function) { return Jit(std::move(function)); }

// This thread captures a function.
bool is_capturing();

}  // namespace weft
