// A table of programs by what the kernel is.
#include "engine/custom_kernels.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/ref.h"
#include "engine/explain.h"
#include "engine/prepare_schedule.h"
#include "ir/print.h"
#include "runtime/buffer.h"
#include "runtime/counters.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_flops.h"
#include "runtime/kernel_operations.h"
#include "runtime/program.h"
#include "schedule/schedule.h"
#include "value/custom_kernel.h"
#include "value/value.h"
#include "weft/scheduled_kernel.h"

namespace weft {
namespace {

constexpr size_t kMostPrograms = 1024;

struct Key {
  uint64_t low, high;
  std::string name;
  const Device* device;
  int beam;
  auto operator<=>(const Key&) const = default;
};

std::map<Key, std::shared_ptr<const PreparedKernel>>& programs() {
  static auto* const kPrograms = new std::map<Key, std::shared_ptr<const PreparedKernel>>;
  return *kPrograms;
}

// A name for a function in any language: the kernel may be called "double", or by a sentence.
std::string symbol_of(std::string_view name) {
  std::string out = "custom_";
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

}  // namespace

std::shared_ptr<const PreparedKernel> prepare_custom_kernel(const CustomKernel& kernel,
                                                            Device& device) {
  const Key key{kernel.key.low, kernel.key.high, kernel.name, &device, config().beam};
  const auto found = programs().find(key);
  if (found != programs().end()) return found->second;
  if (programs().size() >= kMostPrograms) programs().clear();
  auto made = std::make_shared<const PreparedKernel>(PreparedKernel{
      device.compile(kernel.ast.root, symbol_of(kernel.name)), KernelFlops(kernel.ast.root)});
  programs().emplace(key, made);
  return made;
}

std::vector<Ref<Buffer>> run_custom_kernel(const CustomKernel& kernel, Device& device,
                                           std::span<const Ref<Buffer>> inputs) {
  const std::shared_ptr<const PreparedKernel> prepared = prepare_custom_kernel(kernel, device);
  std::vector<Ref<Buffer>> outputs;
  std::vector<Buffer*> arguments;
  uint64_t bytes = 0;
  for (const CustomKernel::Output& output : kernel.outputs) {
    outputs.push_back(Buffer::make(device, output.dtype, output.count));
    arguments.push_back(outputs.back().get());
  }
  for (const Ref<Buffer>& input : inputs) arguments.push_back(input.get());
  for (const Buffer* argument : arguments) bytes += argument->bytes();
  const uint64_t flops = prepared->flops.count({});
  const bool is_explained = is_explaining();
  const uint64_t begin = shows(2) || is_explained ? now_ns() : 0;
  prepared->program->run(arguments, {});
  if (shows(2) || is_explained) {
    device.synchronize();
    const uint64_t taken = now_ns() - begin;
    const double least = least_nanoseconds(device.limits().machine, bytes, flops);
    const std::string operations = kernel_operations(kernel.ast.root);
    if (shows(2)) show_run({device.name(), kernel.name, taken, bytes, flops, least, operations});
    if (is_explained) {
      explain_run(*prepared->program, kernel.name, operations, {begin, taken, bytes, flops, least});
    }
  }
  count_kernel(bytes, flops);
  return outputs;
}

ScheduledKernel describe_custom_kernel(const CustomKernel& kernel, Device& device) {
  const std::shared_ptr<const PreparedKernel> prepared = prepare_custom_kernel(kernel, device);
  ScheduledKernel described{.name = kernel.name, .graph = print(kernel.ast.root)};
  described.buffers = kernel.outputs.size() + kernel.inputs.size();
  for (const CustomKernel::Output& output : kernel.outputs) {
    described.bytes += uint64_t(output.count) * uint64_t(output.dtype.item_bytes());
  }
  for (const Ref<Value>& input : kernel.inputs) {
    described.bytes += uint64_t(input->numel()) * uint64_t(input->dtype().item_bytes());
  }
  described.flops = prepared->flops.count({});
  described.source = prepared->program->source(kernel.ast.root);
  return described;
}

}  // namespace weft
