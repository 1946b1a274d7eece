// A graph that torch.compile hands over, as kernels that are found once and run again.
#include "compiled_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "storage.h"
#include "value/storage.h"
#include "weft/interrupt.h"
#include "weft/jit.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

using Tensors = CompiledGraph::Tensors;
constexpr int64_t kMostCaptures = 8;  // past them inputs change too often to be worth it

bool is_on_device(const at::Tensor& t) { return t.defined() && t.device().is_privateuseone(); }

// The tensors of the device among these.
std::vector<weft::Tensor> handles(const Tensors& tensors) {
  std::vector<weft::Tensor> result;
  for (const at::Tensor& t : tensors) {
    if (is_on_device(t)) result.push_back(handle(t));
  }
  return result;
}

// Tensors of PyTorch on storages of weft: those on one storage share theirs.
class Wrapper {
 public:
  void know(const weft::Tensor& weft_tensor, const at::Tensor& tensor) {
    storages_.try_emplace(weft_tensor.storage().get(), tensor.storage());
  }
  at::Tensor wrap(const weft::Tensor& tensor, c10::ScalarType type) {
    const Storage* const key = tensor.storage().get();
    auto at = storages_.find(key);
    if (at == storages_.end()) {
      at = storages_.emplace(key, storage_around(tensor.storage())).first;
    }
    return tensor_on(at->second, tensor.view(), type);
  }

 private:
  std::map<const Storage*, c10::Storage> storages_;
};

Tensors wrap_results(std::span<const weft::Tensor> results, const Tensors& inputs,
                     std::span<const std::optional<c10::ScalarType>> types) {
  Wrapper wrapper;
  for (const at::Tensor& t : inputs) {
    if (is_on_device(t)) wrapper.know(handle(t), t);
  }
  Tensors wrapped;
  wrapped.reserve(types.size());
  size_t next = 0;
  for (const std::optional<c10::ScalarType>& type : types) {
    wrapped.push_back(type ? wrapper.wrap(results[next++], *type) : at::Tensor());
  }
  return wrapped;
}

}  // namespace

CompiledGraph::Tensors CompiledGraph::operator()(const Tensors& inputs) {
  // What a tensor of the CPU holds would be a number of the captured graph.
  const bool fits = std::ranges::all_of(
      inputs, [](const at::Tensor& t) { return !t.defined() || is_on_device(t); });
  if (capture_ && fits) {
    if (std::optional<Tensors> results = replay(inputs)) return *std::move(results);
  }
  calls_++;
  if (can_capture_ && fits && calls_ > 1 && captures_ < kMostCaptures) {
    if (std::optional<Tensors> results = capture(inputs)) return *std::move(results);
  }
  return run_(inputs);
}

std::optional<CompiledGraph::Tensors> CompiledGraph::capture(const Tensors& inputs) {
  std::vector<std::optional<c10::ScalarType>> types;
  bool are_all_on_device = true;
  const auto function = [&](std::span<const weft::Tensor> proxies) {
    Wrapper wrapper;
    Tensors arguments;
    arguments.reserve(inputs.size());
    size_t next = 0;
    for (const at::Tensor& t : inputs) {
      arguments.push_back(is_on_device(t) ? wrapper.wrap(proxies[next++], t.scalar_type()) : t);
    }
    const Tensors results = run_(arguments);
    std::vector<weft::Tensor> recorded;
    types.clear();
    for (const at::Tensor& t : results) {
      types.emplace_back();
      if (!t.defined()) continue;
      are_all_on_device &= is_on_device(t);
      if (!is_on_device(t)) continue;
      types.back() = t.scalar_type();
      recorded.push_back(handle(t));
    }
    return recorded;
  };
  captures_++;
  try {
    JitCapture::Result result = JitCapture::run(handles(inputs), function);
    if (!are_all_on_device) {
      can_capture_ = false;
      return {};
    }
    capture_ = std::move(result.capture);
    result_types_ = types;
    return wrap_results(result.outputs, inputs, types);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {
    can_capture_ = false;  // it asks for values, or fails: then it fails again as it runs
    return {};
  }
}

std::optional<CompiledGraph::Tensors> CompiledGraph::replay(const Tensors& inputs) const {
  std::optional<std::vector<weft::Tensor>> results = capture_->replay(handles(inputs));
  if (!results) return {};
  return wrap_results(*results, inputs, result_types_);
}

}  // namespace weft::pytorch
