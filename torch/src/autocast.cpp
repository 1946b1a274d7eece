// torch.autocast("weft"): which operators compute in the lower precision, which in float32, and
// which promote. The lists are PyTorch's own, those of CUDA.
#include <cstdint>
#include <optional>

#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace weft::pytorch {
namespace {

[[noreturn]] at::Tensor binary_cross_entropy_banned(const at::Tensor&, const at::Tensor&,
                                                    const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
              "autocast.\nMany models use a sigmoid layer right before the binary cross entropy "
              "layer.\nIn this case, combine the two layers using "
              "torch.nn.functional.binary_cross_entropy_with_logits\nor "
              "torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and "
              "BCEWithLogits are\nsafe to autocast.");
}

// NOLINTBEGIN: PyTorch's macros
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define WEFT_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define WEFT_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define WEFT_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WEFT_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  using namespace at;
  using namespace at::autocast;
  AT_FORALL_LOWER_PRECISION_FP(WEFT_LOWER_PRECISION)
  AT_FORALL_FP32(WEFT_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(WEFT_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WEFT_PROMOTE)
  m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy_banned));
}
// NOLINTEND

}  // namespace
}  // namespace weft::pytorch
