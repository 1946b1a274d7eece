// Many kernels: lowered and rendered as functions of one source, compiled as the CPU device
// compiles, and called on arrays; or each a program of a device with workgroups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/array.h"
#include "ir/dtype.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "render/render.h"
#include "runtime/array_bytes.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/object_code.h"
#include "runtime/device.h"
#include "runtime/program.h"
#include "tests/gpu_devices.h"

namespace weft::test {

using Arrays = std::map<int64_t, Array>;

// One piece of memory of a kernel, between bytes that nobody may write.
class GuardedMemory {
 public:
  explicit GuardedMemory(const Array& array)
      : type_(array.dtype.element()), bytes_(array.data.size() * size_t(type_.item_bytes())) {
    memory_.assign(bytes_ + 2 * kGuard, kMark);
    bytes_of_bits(type_, array.data, content());
  }

  void* data() { return memory_.data() + kGuard; }
  std::vector<uint64_t> bits() { return bits_of_bytes(type_, content()); }
  bool is_whole() const {
    const auto is_mark = [](std::byte b) { return b == kMark; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, is_mark) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), is_mark);
  }

 private:
  static constexpr ptrdiff_t kGuard = 256;
  static constexpr std::byte kMark{0xfb};  // a NaN of every float

  std::span<std::byte> content() { return std::span(memory_).subspan(kGuard, bytes_); }

  DType type_;
  size_t bytes_;
  std::vector<std::byte> memory_;
};

// Kernels are read as long as they run.
class KernelBatch {
 public:
  explicit KernelBatch(Toolchain toolchain) : toolchain_(toolchain) {}
  explicit KernelBatch(Device& device) : device_(&device) {}

  // Its number. The optimisations are those given, or those that devices choose.
  size_t add(UOp ast, const std::optional<OptList>& opts = std::nullopt) {
    const Target& target = device_ != nullptr ? *device_->target() : target_of(toolchain_);
    return add_program(opts ? lower(ast, target, *opts) : lower(ast, target));
  }
  size_t add_program(UOp linear) {
    const std::string name = fmt::format("kernel{}", kernels_.size());
    Kernel kernel{.scratch = scratch_bytes(linear), .variables = variable_names(linear)};
    for (UOp n : linear.srcs()) {
      if (n.is(Op::RANGE) && n.axis() == AxisType::kThread) kernel.thread_loop = n.src(0);
    }
    if (device_ != nullptr) {
      programs_.push_back(device_->compile_list(linear, name));
    } else {
      add_source(render(toolchain_, linear, name));
    }
    kernels_.push_back(std::move(kernel));
    return kernels_.size() - 1;
  }

  // Throws CompileError.
  void compile() {
    if (device_ != nullptr) return;
    std::string text;
    for (const std::string& part : parts_) text += part;
    code_ = std::make_unique<ObjectCode>(
        toolchain_ == Toolchain::kLlvm ? compile_llvm(text, "batch") : compile_c(text, "batch"));
  }

  // The arrays after a call. A loop over threads is cut in two calls after its first `cut` places.
  // Throws when the function writes outside of them.
  Arrays run(size_t number, Arrays arrays, const std::map<std::string, int64_t>& variables = {},
             int64_t cut = 1) const {
    const Kernel& kernel = kernels_.at(number);
    if (device_ != nullptr) {
      std::vector<int64_t> given;
      for (const std::string& name : kernel.variables) given.push_back(variables.at(name));
      return run_on_device(*device_, *programs_.at(number), std::move(arrays), given);
    }
    auto* function =
        reinterpret_cast<KernelFunction*>(code_->function(fmt::format("kernel{}", number)));
    if (function == nullptr) throw std::runtime_error("the function is missing");
    std::vector<GuardedMemory> memory;
    std::vector<void*> pointers;
    memory.reserve(arrays.size());
    for (const auto& [id, array] : arrays) {
      memory.emplace_back(array);
      pointers.resize(size_t(id) + 1);
      pointers[size_t(id)] = memory.back().data();
    }
    std::vector<int64_t> values;
    for (const std::string& name : kernel.variables) values.push_back(variables.at(name));
    std::vector<std::byte> scratch(kernel.scratch + 64, std::byte{0xfb});
    std::byte* start = scratch.data() + (64 - uintptr_t(scratch.data()) % 64);
    const auto call = [&](int64_t first, int64_t last) {
      function(pointers.data(), values.data(), start, first, last);
    };
    if (kernel.thread_loop) {
      Bindings bindings{{}, variables};
      const int64_t count = evaluate(kernel.thread_loop, bindings).at(0).ints().at(0);
      cut = std::clamp<int64_t>(cut, 0, count);
      call(cut, count);  // in no order
      call(0, cut);
    } else {
      call(0, 1);
    }
    size_t i = 0;
    for (auto& [id, array] : arrays) {
      if (!memory[i].is_whole()) {
        throw std::runtime_error(fmt::format("argument {} is written outside of its bounds", id));
      }
      array.data = memory[i++].bits();
    }
    return arrays;
  }

 private:
  struct Kernel {
    size_t scratch = 0;
    std::vector<std::string> variables{};
    UOp thread_loop{};
  };

  // What several functions need (types, helpers, declarations) is said once.
  void add_source(const std::string& text) {
    std::istringstream lines(text);
    std::string line, item;
    bool is_open = false;
    while (std::getline(lines, line)) {
      item += line + "\n";
      if (line.ends_with("{") && !line.starts_with(" ")) is_open = true;
      if (line.starts_with("}")) is_open = false;
      if (is_open) continue;
      if (said_.insert(item).second) parts_.push_back(item);
      item.clear();
    }
  }

  Device* device_ = nullptr;  // null: the toolchain's
  Toolchain toolchain_ = Toolchain::kLlvm;
  std::vector<Kernel> kernels_;
  std::vector<std::shared_ptr<Program>> programs_;
  std::vector<std::string> parts_;
  std::set<std::string> said_;
  std::unique_ptr<ObjectCode> code_;
};

}  // namespace weft::test
