// A graph that torch.compile hands over, as kernels that are found once and run again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "weft/jit.h"

namespace weft::pytorch {

// `run` does the graph, operator by operator, on tensors of the device. The first call runs it, the
// second captures what it records, later ones replay that: `run` is not called. Inputs that are not
// as they were are captured anew; a graph that needs values on the way is run each time.
class CompiledGraph {
 public:
  using Tensors = std::vector<at::Tensor>;
  // Results that are no tensors have none.
  using Run = std::function<Tensors(const Tensors&)>;

  explicit CompiledGraph(Run run) : run_(std::move(run)) {}

  Tensors operator()(const Tensors& inputs);
  int64_t kernels() const { return capture_ ? int64_t(capture_->kernels()) : 0; }
  bool is_captured() const { return capture_.has_value(); }

 private:
  std::optional<Tensors> capture(const Tensors& inputs);
  std::optional<Tensors> replay(const Tensors& inputs) const;

  Run run_;
  std::optional<JitCapture> capture_;
  std::vector<std::optional<c10::ScalarType>> result_types_;
  int64_t calls_ = 0, captures_ = 0;
  bool can_capture_ = true;
};

}  // namespace weft::pytorch
