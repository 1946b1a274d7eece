// torch.autocast("weft"): the operators that PyTorch's CUDA device runs in a lower precision, in
// float32, or in the widest type of their operands.
#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace weft::pytorch {
namespace {

using namespace at;            // NOLINT: PyTorch's macros name its types
using namespace at::autocast;  // NOLINT

Tensor refused(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
              "autocast.\nMany models use a sigmoid layer right before the binary cross entropy "
              "layer.\nIn this case, combine the two layers using "
              "torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss. "
              " binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast.");
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define WEFT_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define WEFT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define WEFT_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WEFT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(WEFT_LOWER)
  AT_FORALL_FP32(WEFT_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(WEFT_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WEFT_PROMOTE)
  m.impl(TORCH_SELECTIVE_NAME("aten::binary_cross_entropy"), TORCH_FN(refused));
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
