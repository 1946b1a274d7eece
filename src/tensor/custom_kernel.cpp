// The call as Values, one per output.
#include "tensor/custom_kernel.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/ref.h"
#include "ir/arena.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "runtime/device.h"
#include "tensor/kernel_bounds.h"
#include "tensor/operand.h"
#include "value/custom_kernel.h"
#include "value/movement.h"
#include "value/value.h"
#include "weft/tensor.h"

namespace weft {
namespace {

// The memory that a STORE writes to, or none where that is a register.
UOp stored_memory(UOp store) {
  UOp target = store.src(0);
  while (!target.srcs().empty() && !target.is(Op::DEFINE_GLOBAL)) target = target.src(0);
  return target;
}

void check_memory(UOp root, size_t outputs, size_t all) {
  for (UOp n : toposort(root)) {
    if (n.is(Op::DEFINE_GLOBAL) && size_t(n.number()) >= all) {
      throw SpecError(
          fmt::format("[custom_kernel] there is no memory {}; outputs and inputs are 0 to {}",
                      n.number(), all - 1));
    }
    if (n.is(Op::VARIABLE)) {
      throw SpecError(fmt::format(
          "[custom_kernel] variable {} has no value: sizes of a custom kernel are constants",
          n.name()));
    }
    if (!n.is(Op::STORE)) continue;
    const UOp memory = stored_memory(n);
    if (memory.is(Op::DEFINE_GLOBAL) && size_t(memory.number()) >= outputs) {
      throw SpecError(fmt::format(
          "[custom_kernel] memory {} is an input, and cannot be written; outputs are 0 to {}",
          memory.number(), outputs - 1));
    }
  }
}

}  // namespace

std::vector<Tensor> custom_kernel(const Graph& ast, std::string name,
                                  std::span<const CustomOutput> outputs,
                                  std::span<const Tensor> inputs, std::string_view device_name) {
  verify(ast.root, Stage::kKernel);
  check_memory(ast.root, outputs.size(), outputs.size() + inputs.size());
  Device& device =
      device_name.empty() && !inputs.empty() ? device_of(inputs[0]) : find_device(device_name);
  const Ref<CustomKernel> kernel = Ref<CustomKernel>::adopt(new CustomKernel);
  const auto arena = std::make_shared<Arena>();
  kernel->ast = {arena, import_graph(*arena, ast.root)};
  kernel->key = graph_hash(kernel->ast.root);
  kernel->name = std::move(name);
  for (const Tensor& input : inputs) {
    if (&device_of(input) != &device) {
      throw DeviceError(fmt::format("[custom_kernel] an input is on {}, the kernel on {}",
                                    input.device(), device.name()));
    }
    kernel->inputs.push_back(detached(read(input)));
  }
  std::vector<Tensor> results;
  results.reserve(outputs.size());
  kernel->outputs.reserve(outputs.size());
  for (const CustomOutput& output : outputs) {
    kernel->outputs.push_back({output.dtype, checked_numel("custom_kernel", output.shape)});
  }
  std::vector<KernelMemory> memory;
  for (const CustomKernel::Output& output : kernel->outputs) {
    memory.push_back({output.dtype, output.count});
  }
  for (const Ref<Value>& input : kernel->inputs) memory.push_back({input->dtype(), input->numel()});
  check_accesses(kernel->ast.root, memory);
  for (size_t i = 0; i < outputs.size(); i++) {
    results.push_back(
        tensor_of(Value::make_output(outputs[i].dtype, device, outputs[i].shape, kernel, i)));
  }
  return results;
}

}  // namespace weft
