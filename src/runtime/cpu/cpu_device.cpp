// Lower, render, compile, load; then a call per piece of the thread axis.
#include "runtime/cpu/cpu_device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/at_fork.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/small_vector.h"
#include "codegen/lower.h"
#include "codegen/opt/opt.h"
#include "codegen/target.h"
#include "ir/arena.h"
#include "ir/evaluate.h"
#include "ir/node.h"
#include "ir/op.h"
#include "ir/walk.h"
#include "render/render.h"
#include "rewrite/trace.h"
#include "runtime/buffer.h"
#include "runtime/caching_allocator.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/cpu_toolchain.h"
#include "runtime/cpu/host_cpu.h"
#include "runtime/cpu/llvm_library.h"
#include "runtime/cpu/parallel.h"
#include "runtime/debug.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/program.h"
#include "runtime/search_kernel.h"
#include "schedule/schedule.h"

namespace weft {
namespace {

// Freed memory that is kept: a quarter of the machine's.
CachingAllocator& allocator() {
  static auto& instance = *[] {
    const int64_t most = memory_of_machine();
    auto* made = new CachingAllocator("CPU", most, most / 4);
    static CachingAllocator* held = made;
    at_fork(ForkOrder::kMemory, [] { held->before_fork(); }, [] { held->after_fork(); });
    return made;
  }();
  return instance;
}

// What DEFINE_LOCALs of a kernel lie in while this thread runs it.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(memory_); }

  // Null when there is no memory.
  void* get(size_t bytes) {
    if (bytes > bytes_) {
      std::free(memory_);
      bytes_ = (bytes + 63) / 64 * 64;
      memory_ = std::aligned_alloc(64, bytes_);
      if (memory_ == nullptr) bytes_ = 0;
    }
    return memory_;
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

thread_local Scratch scratch_of_thread;

// The size of the loop that threads share; none: the kernel runs on one.
UOp thread_loop(UOp linear) {
  for (UOp n : linear.srcs()) {
    if (n.is(Op::RANGE) && n.axis() == AxisType::kThread) return n.src(0);
  }
  return UOp();
}

class CpuProgram : public Program {
 public:
  CpuProgram(UOp ast, Toolchain toolchain, std::string_view name, const OptList* opts = nullptr,
             Keep keep = Keep::kYes) {
    std::set<std::string> given;
    for (UOp n : toposort(ast)) {
      if (n.is(Op::VARIABLE)) given.emplace(n.name());
    }
    const Graph kernel = own(ast);
    const Target& target = target_of(toolchain);
    Trace trace;
    const bool is_shown = keep == Keep::kYes;  // not every candidate of a search
    Trace* traced = is_shown && shows(6) ? &trace : nullptr;
    const UOp linear = opts == nullptr ? lower(kernel.root, target, traced)
                                       : lower(kernel.root, target, *opts, traced);
    source_ = render(toolchain, linear, name);
    if (is_shown && shows(3))
      show_lowered({name, kernel.root, linear, target, source_, trace, opts});
    loaded_ = load_kernel(toolchain, source_, name, keep);
    function_ = loaded_->function();
    scratch_bytes_ = scratch_bytes(linear);
    for (const std::string& variable : variable_names(linear)) {
      places_.push_back(uint32_t(std::distance(given.begin(), given.find(variable))));
    }
    takes_all_ = places_.size() == given.size();
    if (const UOp count = thread_loop(linear)) {
      if (count.is_const()) {
        count_ = count.const_int();
      } else {
        variable_count_ = std::make_unique<VariableCount>(own(count), std::move(given));
      }
    }
  }

  void run(std::span<Buffer* const> arguments, std::span<const int64_t> variables) override {
    SmallVector<void*, 16> buffers;
    for (const Buffer* argument : arguments) {
      argument->check_lender();
      buffers.push_back(argument->memory());
    }
    SmallVector<int64_t, 8> taken;
    if (!takes_all_) {
      for (const uint32_t place : places_) taken.push_back(variables[place]);
    }
    const Call call{*this, buffers.data(), takes_all_ ? variables.data() : taken.data()};
    const int64_t count = variable_count_ ? variable_count_->of(variables) : count_;
    parallel_for(count, &Call::run, &call);
  }

  std::string_view source() const override { return source_; }

 private:
  struct Call {
    const CpuProgram& program;
    void* const* buffers;
    const int64_t* variables;

    static void run(const void* context, int64_t first, int64_t last) {
      const Call& self = *static_cast<const Call*>(context);
      const size_t bytes = self.program.scratch_bytes_;
      void* scratch = bytes == 0 ? nullptr : scratch_of_thread.get(bytes);
      self.program.function_(self.buffers, self.variables, scratch, first, last);
    }
  };

  // A size that depends on variables.
  struct VariableCount {
    VariableCount(Graph graph, std::set<std::string> all)
        : count(std::move(graph)), names(std::move(all)) {}

    int64_t of(std::span<const int64_t> variables) {
      Bindings bindings;
      size_t i = 0;
      for (const std::string& name : names) bindings.variables[name] = variables[i++];
      const std::lock_guard lock(mutex);
      return evaluate(count.root, bindings).at(0).ints().at(0);
    }

    Graph count;
    std::set<std::string> names;
    std::mutex mutex;
  };

  std::string source_;
  std::shared_ptr<const LoadedKernel> loaded_;
  KernelFunction* function_ = nullptr;
  size_t scratch_bytes_ = 0;
  std::vector<uint32_t> places_;  // of the function's variables among those of the kernel
  bool takes_all_ = true;
  int64_t count_ = 1;
  std::unique_ptr<VariableCount> variable_count_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(std::string name, std::optional<Toolchain> toolchain)
      : Device(std::move(name)), fixed_(toolchain) {}

  void* allocate(size_t bytes) override { return allocator().allocate(bytes); }
  void free(void* memory, size_t bytes) noexcept override { allocator().free(memory, bytes); }
  bool has_host_memory() const override { return true; }
  bool keeps_schedules() const override { return true; }
  void copy_in(void* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, const void* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }

  const KernelLimits& limits() const override { return target_of(Toolchain::kLlvm).limits; }
  // A kernel that is timed has the machine to itself.
  size_t compile_threads() const override { return config().beam > 0 ? 1 : host_cores(); }
  void start() override {
    if (is_started_.exchange(true) || fixed_ == Toolchain::kC) return;
    load_llvm_in_background();
  }
  std::string description() const override {
    const Toolchain used =
        fixed_.value_or(is_installed(Toolchain::kLlvm) ? Toolchain::kLlvm : Toolchain::kC);
    if (!is_installed(used)) return {};
    const Target& target = target_of(used);
    const std::string identity =
        used == Toolchain::kLlvm ? llvm_identity() : std::string(c_compiler_identity());
    return fmt::format("kernels by {}, {} cores, vectors of {} bytes, {} threads",
                       identity.substr(0, identity.find(' ')),  // its file
                       target.cores, target.vector_bytes, parallel_threads());
  }
  std::string missing() const override {
    if (fixed_ ? is_installed(*fixed_)
               : is_installed(Toolchain::kLlvm) || is_installed(Toolchain::kC)) {
      return {};
    }
    return fixed_ == Toolchain::kC      ? "there is no C compiler; install gcc or clang"
           : fixed_ == Toolchain::kLlvm ? "there is no LLVM 16 or newer; install libllvm19"
                                        : "there is neither LLVM 16 or newer nor a C compiler; "
                                          "install libllvm19, gcc or clang";
  }
  std::shared_ptr<Program> compile(UOp ast, std::string_view name) override {
    const Toolchain chain = toolchain();
    if (config().beam == 0) return std::make_shared<CpuProgram>(ast, chain, name);
    const OptList opts = search(ast, name, chain);
    return std::make_shared<CpuProgram>(ast, chain, name, &opts);
  }

 private:
  OptList search(UOp ast, std::string_view name, Toolchain chain) {
    const auto compile = [&](UOp kernel, const OptList& opts) {
      return std::make_shared<CpuProgram>(kernel, chain, name, &opts, Keep::kNo);
    };
    const KernelSearch settings{
        .device = *this,
        .target = target_of(chain),
        .machine = mix(identity_of(chain), uint64_t(config().threads)),
        .width = size_t(config().beam),
        .compile_threads = host_cores(),
        .compile = compile,
    };
    return searched_opts(ast, name, settings, *kernel_cache());
  }

  Toolchain toolchain() const {
    if (fixed_) return *fixed_;
    for (const Toolchain each : {Toolchain::kLlvm, Toolchain::kC}) {
      if (is_installed(each)) return each;
    }
    throw DeviceError(
        "[CPU] there is neither LLVM 16 or newer nor a C compiler; install one (apt install "
        "libllvm19, or clang, or gcc), or use WEFT_DEVICE=REF, which is slow");
  }

  const std::optional<Toolchain> fixed_;
  std::atomic<bool> is_started_ = false;
};

}  // namespace

Device& cpu_device() {
  static auto* device = new CpuDevice("CPU", std::nullopt);
  return *device;
}
Device& cpu_llvm_device() {
  static auto* device = new CpuDevice("CPU:LLVM", Toolchain::kLlvm);
  return *device;
}
Device& cpu_c_device() {
  static auto* device = new CpuDevice("CPU:C", Toolchain::kC);
  return *device;
}

}  // namespace weft
