// A call of an operator by PyTorch's CPU kernel, on copies of its operands.
#include "on_cpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "storage.h"
#include "value/view.h"
#include "weft/tensor.h"

namespace weft::pytorch {
namespace {

bool is_here(const at::Tensor& t) { return t.defined() && t.device().is_privateuseone(); }

// An argument or a result with each of its tensors replaced.
template <class Replace>
c10::IValue replaced(const c10::IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(replace(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : value.toOptionalTensorVector()) {
      list.push_back(t ? std::optional(replace(*t)) : std::nullopt);
    }
    return list;
  }
  return value;
}
template <class Visit>
void visit_tensors(const c10::IValue& value, const Visit& visit) {
  replaced(value, [&](const at::Tensor& t) {
    visit(t);
    return t;
  });
}

std::span<const c10::IValue> arguments_of(const c10::OperatorHandle& op,
                                          const torch::jit::Stack& stack) {
  return std::span(stack).last(op.schema().arguments().size());
}
bool is_written(const c10::OperatorHandle& op, size_t argument) {
  const auto* const alias = op.schema().arguments()[argument].alias_info();
  return alias != nullptr && alias->isWrite();
}

// ---- one tensor

// A tensor that is not strided, on another device: its parts are.
at::Tensor sparse_on(const at::Tensor& t, c10::Device device) {
  const auto options = t.options().device(device);
  if (t.is_sparse()) {
    return at::_sparse_coo_tensor_unsafe(t._indices().to(device), t._values().to(device), t.sizes(),
                                         options, t.is_coalesced());
  }
  const bool by_rows = t.layout() == at::kSparseCsr || t.layout() == at::kSparseBsr;
  const at::Tensor compressed = by_rows ? t.crow_indices() : t.ccol_indices();
  const at::Tensor plain = by_rows ? t.col_indices() : t.row_indices();
  return at::_sparse_compressed_tensor_unsafe(compressed.to(device), plain.to(device),
                                              t.values().to(device), t.sizes(), options);
}

// Copied through a view without axes of stride 0, dense and in the order of the strides. Windows:
// with the memory that they see.
at::Tensor copied(const at::Tensor& here) {
  if (!is_here(here) || here.numel() <= 1 || here.is_non_overlapping_and_dense()) {
    return here.defined() ? here.cpu() : here;
  }
  std::vector<int64_t> sizes = here.sizes().vec(), order(sizes.size()), back(sizes.size());
  const at::IntArrayRef strides = here.strides();
  for (size_t i = 0; i < sizes.size(); i++) {
    if (strides[i] == 0) sizes[i] = 1;
  }
  const at::Tensor once = here.as_strided(sizes, strides, here.storage_offset());
  if (repeats_elements(once)) {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); i++) last += (sizes[i] - 1) * strides[i];
    const at::Tensor seen = here.as_strided({last + 1}, {1}, here.storage_offset());
    return seen.cpu().as_strided(here.sizes(), strides, 0);
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return strides[size_t(a)] > strides[size_t(b)]; });
  for (size_t i = 0; i < order.size(); i++) back[size_t(order[i])] = int64_t(i);
  return once.permute(order).contiguous().cpu().permute(back).expand(here.sizes());
}

// A result of the CPU on the device, with its bits for conjugates and negatives.
at::Tensor moved(const at::Tensor& there, c10::Device device) {
  if (!there.defined()) return there;
  if (there.layout() != at::kStrided) return sparse_on(there, device);
  if (there.is_conj()) return moved(there.conj(), device).conj();
  if (there.is_neg()) return moved(there._neg_view(), device)._neg_view();
  return there.to(device);
}

// ---- a call

class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    find_shared();
    const std::span arguments = std::span(stack_).last(op_.schema().arguments().size());
    for (size_t i = 0; i < arguments.size(); i++) {
      if (arguments[i].isDevice()) {
        device_ = arguments[i].toDevice();
        arguments[i] = c10::Device(c10::kCPU);
      }
      const bool written = is_written(op_, i);
      arguments[i] =
          replaced(arguments[i], [&](const at::Tensor& t) { return on_cpu(t, written); });
    }
    op_.redispatchBoxed(c10::DispatchKeySet(key_), &stack_);
    write_back();
    const std::span results = std::span(stack_).last(op_.schema().returns().size());
    for (size_t i = 0; i < results.size(); i++) {
      const auto* const alias = op_.schema().returns()[i].alias_info();
      TORCH_CHECK(alias == nullptr || alias->isWrite(), "weft: no kernel for ", op_.operator_name(),
                  ", which gives a view: a copy is not one");
      results[i] = replaced(results[i], [&](const at::Tensor& t) { return back(t); });
    }
  }

 private:
  struct Operand {
    at::Tensor here, there;
    bool is_written;
  };
  // All of a storage.
  struct Shared {
    int uses = 0;
    bool is_written = false, is_repeated = false;
    size_t past_end = 0;  // bytes that a kernel which takes its output for dense would write
    at::Tensor here, there;

    bool is_copied_whole() const { return is_repeated || (is_written && uses > 1); }
  };

  // Storages that are written through a tensor that has an element more than once, or that more
  // than one operand has.
  void find_shared() {
    const std::span<const c10::IValue> arguments = arguments_of(op_, stack_);
    for (size_t i = 0; i < arguments.size(); i++) {
      visit_tensors(arguments[i], [&](const at::Tensor& t) {
        if (!is_here(t)) return;
        device_ = t.device();
        if (t.layout() != at::kStrided) return;
        Shared& storage = shared_[t.storage().unsafeGetStorageImpl()];
        storage.uses++;
        if (!is_written(op_, i)) return;
        storage.is_written = true;
        if (!repeats_elements(t)) return;
        storage.is_repeated = true;
        storage.past_end = std::max(storage.past_end, size_t(t.numel()) * t.itemsize());
      });
    }
  }

  at::Tensor on_cpu(const at::Tensor& here, bool written) {
    if (!is_here(here)) return here;
    for (Operand& known : operands_) {
      if (!known.here.is_same(here)) continue;
      known.is_written |= written;
      return known.there;
    }
    if (here.layout() != at::kStrided) {
      const bool is_coo = here.layout() == at::kSparse;
      key_ = is_coo && key_ != c10::DispatchKey::SparseCsrCPU ? c10::DispatchKey::SparseCPU
                                                              : c10::DispatchKey::SparseCsrCPU;
      operands_.push_back({here, sparse_on(here, c10::kCPU), written});
      return operands_.back().there;
    }
    Shared& storage = shared_.at(here.storage().unsafeGetStorageImpl());
    const at::Tensor there = storage.is_copied_whole() ? on_copy_of(storage, here) : copied(here);
    operands_.push_back({here, there, written});
    return there;
  }

  static at::Tensor on_copy_of(Shared& storage, const at::Tensor& here) {
    const size_t bytes = here.storage().nbytes();
    if (!storage.here.defined()) {
      const auto options =
          here.options().dtype(bytes % here.itemsize() == 0 ? here.scalar_type() : c10::kByte);
      const auto count = int64_t(bytes / options.dtype().itemsize());
      const auto more = int64_t(storage.past_end / options.dtype().itemsize());
      storage.here = at::empty({0}, options).set_(here.storage(), 0, {count}, {1});
      const at::Tensor memory = at::zeros({count + more}, options.device(c10::kCPU));
      storage.there = memory.narrow(0, 0, count);
      storage.there.copy_(storage.here);
    }
    at::Tensor there = at::empty({0}, here.options().device(c10::kCPU));
    there.set_(storage.there.storage(), here.storage_offset(), here.sizes(), here.strides());
    there._set_conj(here.is_conj());
    there._set_neg(here.is_neg());
    return there;
  }

  void write_back() {
    for (const auto& [storage, copy] : shared_) {
      if (copy.is_copied_whole()) copy.here.copy_(copy.there);
    }
    for (const Operand& operand : operands_) {
      const auto& [here, there, written] = operand;
      if (here.layout() != at::kStrided) {
        if (written) here.copy_(there);
        continue;
      }
      const bool is_resized = here.sizes() != there.sizes();
      if (!is_resized &&
          (!written || shared_.at(here.storage().unsafeGetStorageImpl()).is_copied_whole())) {
        continue;
      }
      if (is_resized) {
        here.resize_(there.sizes());
        here.unsafeGetTensorImpl()->set_sizes_and_strides(there.sizes(), there.strides());
      }
      here._set_conj(there.is_conj());
      here._set_neg(there.is_neg());
      here.copy_(there);
    }
  }

  at::Tensor back(const at::Tensor& there) const {
    for (const Operand& operand : operands_) {
      if (operand.there.is_same(there)) return operand.here;
    }
    return device_ ? moved(there, *device_) : there;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::map<const c10::StorageImpl*, Shared> shared_;
  std::vector<Operand> operands_;
  std::optional<c10::Device> device_;
  c10::DispatchKey key_ = c10::DispatchKey::CPU;
};

}  // namespace

bool repeats_elements(const at::Tensor& tensor) {
  if (!is_here(tensor) || tensor.layout() != at::kStrided) return false;
  if (tensor.is_non_overlapping_and_dense()) return false;
  return has_overlap(handle(tensor).view());
}

bool writes_repeated_elements(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::span<const c10::IValue> arguments = arguments_of(op, stack);
  bool found = false;
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!is_written(op, i)) continue;
    visit_tensors(arguments[i], [&](const at::Tensor& t) { found |= repeats_elements(t); });
  }
  return found;
}

void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) { Call(op, stack).run(); }

}  // namespace weft::pytorch
